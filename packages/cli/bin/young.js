"use strict"
/**
 * Bounds V8's young generation for a server. Without the bound it takes up to 100 MB of a server with a hundred streams. V8 reads
 * the flag only at its start, so the process replaces itself; its pid, streams and signals stay. Windows, and Node before 22.15,
 * cannot replace a process and serve without the bound. Spec: CL-840 in specs/cli.md.
 */
const flag = "--max-semi-space-size"
const megabytes = 16

/** Whether this file or an operator has set the bound. */
const isSet = () => [...process.execArgv, process.env["NODE_OPTIONS"] ?? ""].some((word) => word.includes(flag))

const bound = () => {
  if (isSet()) {
    // V8 rejects stored code if a flag has another value than when the code was stored (load.js).
    require("node:v8").setFlagsFromString(`${flag}=0`)
  } else if (process.execve !== undefined && process.platform !== "win32") {
    const words = [process.execPath, ...process.execArgv, `${flag}=${megabytes}`, ...process.argv.slice(1)]
    process.execve(process.execPath, words, process.env)
  }
}

module.exports = { bound }
