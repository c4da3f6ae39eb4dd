"use strict"
/**
 * Ends the command on a version of Node on which SQLite's driver crashes, and mends `HOME`. Spec: PA-11 in specs/packages.md,
 * CL-20 in specs/cli.md.
 */
const { isAbsolute } = require("node:path")

const oldest = 22
const { node } = process.versions
if (Number.parseInt(node) < oldest) {
  process.stderr.write(`daybook: this is Node ${node}; Daybook needs Node ${oldest} or newer (nodejs.org/download)\n`)
  process.exit(2)
}

// Below such a home, files would be written into the current folder. Without `HOME`, Node asks the system for the home.
if (!isAbsolute(process.env.HOME ?? "/")) delete process.env.HOME
