"use strict"
/** Runs the bundled command once and stores V8's compiled code beside each loaded file. Used by bundle.mjs. */
const { writeFileSync } = require("node:fs")
const { join } = require("node:path")
const { setFlagsFromString } = require("node:v8")
const { load, loaded } = require("../bin/load.js")

process.on("exit", () => {
  // V8 rejects code that was stored under other flags. Commands change these two (support/Garbage.ts), so they get their
  // defaults back.
  for (const flag of ["--semi-space-growth-factor=2", "--heap-growing-percent=0"]) setFlagsFromString(flag)
  for (const [file, { script }] of loaded) writeFileSync(`${file}.cache`, script.createCachedData())
})
const [bundle, entry, ...words] = process.argv.slice(2)
const { main } = load(join(bundle, entry))
if (entry === "ctx.js") main(words)
else main("0", words)
