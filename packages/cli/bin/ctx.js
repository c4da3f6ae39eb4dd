#!/usr/bin/env node
"use strict"
require("./node.js")
/** Starts the bundled command `ctx`. CommonJS, because it starts faster. Spec: CL-60, CL-100 in specs/cli.md. */
const { existsSync } = require("node:fs")
const { join } = require("node:path")

const file = join(__dirname, "..", "dist", "bundle", "ctx.js")
if (existsSync(file)) {
  require("./load.js").load(file).main(process.argv.slice(2))
} else {
  process.stderr.write("ctx: the command has not been built: npm run build\n")
  process.exitCode = 70
}
