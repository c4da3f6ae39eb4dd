"use strict"
/**
 * Loads the bundle's files. The build stores V8's compiled code beside each file (`.cache`). V8 rejects the code of another
 * version or machine, and then compiles the file as usual. Spec: CL-60 in specs/cli.md.
 */
const { readFileSync } = require("node:fs")
const { createRequire } = require("node:module")
const { dirname, join } = require("node:path")
const { Script } = require("node:vm")

/** Loaded modules, by file. */
const loaded = new Map()

const readCache = (file) => {
  try {
    return readFileSync(`${file}.cache`)
  } catch {
    return undefined
  }
}

const load = (file) => {
  const known = loaded.get(file)
  if (known !== undefined) return known.module.exports
  // The bundle is ASCII: a one-byte string takes half the time and memory.
  const source = readFileSync(file, "latin1")
  const script = new Script(`(function(exports,require,module,__filename,__dirname){${source}\n})`, {
    filename: file,
    cachedData: readCache(file)
  })
  const module = { exports: {} }
  loaded.set(file, { module, script })
  const elsewhere = createRequire(file)
  const folder = dirname(file)
  const require = (name) => (name.startsWith("./") ? load(join(folder, name)) : elsewhere(name))
  script.runInThisContext()(module.exports, require, module, file, folder)
  return module.exports
}

module.exports = { load, loaded }
