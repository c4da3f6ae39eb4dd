"use strict"
/**
 * Loads the bundle's files. V8's compiled code is stored beside each file (`.cache`): by the build, and in an installed package
 * by the first command that loads the file. V8 rejects the code of another version or machine, and then compiles the file as
 * usual. An update replaces the folder and so the stored code. Spec: CL-60, CL-292 in specs/cli.md.
 */
const { accessSync, constants, readFileSync, renameSync, rmSync, writeFileSync } = require("node:fs")
const { createRequire } = require("node:module")
const { dirname, join } = require("node:path")
const { Script } = require("node:vm")

/** The default of the flag that commands change (support/Garbage.ts). */
const defaults = ["--heap-growing-percent=0"]

/** The changed flags, by name. */
const changed = new Map()

/** Changes one flag of V8. The bundle changes flags with it too. */
const setFlagsFromString = (flag) => {
  changed.set(flag.split("=")[0], flag)
  require("node:v8").setFlagsFromString(flag)
}

/** Runs under the default flags: V8 rejects code that was stored under other flags. */
const underDefaults = (run) => {
  if (changed.size === 0) return run()
  const v8 = require("node:v8")
  for (const flag of defaults) v8.setFlagsFromString(flag)
  try {
    return run()
  } finally {
    for (const flag of changed.values()) v8.setFlagsFromString(flag)
  }
}

/** Loaded modules, by file. */
const loaded = new Map()

const readCache = (file) => {
  try {
    return readFileSync(`${file}.cache`)
  } catch {
    return undefined
  }
}

/** Stores the compiled code of these files. Another process may do the same or load them. */
const store = (files) => {
  // Flags belong to the process: another thread may have changed them.
  for (const flag of defaults) require("node:v8").setFlagsFromString(flag)
  for (const file of files) {
    const own = `${file}.${process.pid}.cache`
    try {
      writeFileSync(own, loaded.get(file).script.createCachedData())
      renameSync(own, `${file}.cache`)
    } catch (cause) {
      rmSync(own, { force: true })
      throw cause
    }
  }
}

/** Whether the next process can use the code that this one stores. */
const canStore = (file) => {
  // Under flags of the caller, stored code would replace that of every other process.
  if (process.execArgv.length > 0 || (process.env["NODE_OPTIONS"] ?? "") !== "") return false
  try {
    accessSync(dirname(file), constants.W_OK)
    return true
  } catch {
    return false
  }
}

/** Files whose stored code is missing or was rejected. */
const missing = new Set()

const storeMissing = () => {
  try {
    store(missing)
  } catch {
    // The disk is full, or the folder is gone: the next process compiles as well.
  }
}

const load = (file) => {
  const known = loaded.get(file)
  if (known !== undefined) return known.module.exports
  // The bundle is ASCII: a one-byte string takes half the time and memory.
  const source = readFileSync(file, "latin1")
  const text = `(function(exports,require,module,__filename,__dirname){${source}\n})`
  const script = underDefaults(() => new Script(text, { filename: file, cachedData: readCache(file) }))
  if (script.cachedDataRejected !== false && canStore(file)) {
    if (missing.size === 0) process.once("exit", storeMissing)
    missing.add(file)
  }
  const module = { exports: {} }
  loaded.set(file, { module, script })
  const elsewhere = createRequire(file)
  const folder = dirname(file)
  const required = (name) => {
    if (name.startsWith("./")) return load(join(folder, name))
    return name === "node:v8" ? { ...elsewhere(name), setFlagsFromString } : elsewhere(name)
  }
  script.runInThisContext()(module.exports, required, module, file, folder)
  return module.exports
}

module.exports = { load, loaded, setFlagsFromString, store }
