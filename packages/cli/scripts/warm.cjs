"use strict"
/** Runs the bundled command once and stores V8's compiled code of each loaded file. Used by bundle.mjs. */
const { join } = require("node:path")
const { load, loaded, store } = require("../bin/load.js")

process.on("exit", () => store(loaded.keys()))
const [bundle, entry, ...words] = process.argv.slice(2)
const { main } = load(join(bundle, entry))
main(words)
