"use strict"
/** Ends the command on a version of Node on which SQLite's driver crashes. Spec: PA-11 in specs/packages.md. */
const oldest = 22
const { node } = process.versions
if (Number.parseInt(node) < oldest) {
  process.stderr.write(`daybook: this is Node ${node}; Daybook needs Node ${oldest} or newer (nodejs.org/download)\n`)
  process.exit(2)
}
