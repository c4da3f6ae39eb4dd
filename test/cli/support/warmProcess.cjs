"use strict"
/**
 * Runs one command after another in this process, so that the bundle is loaded once. `Warm.ts` sends each command and reads
 * its output up to a mark. A command that leaves a handle behind ends the process, as its own `process.exit` would.
 */
const { createReadStream } = require("node:fs")

const [bin] = process.argv.slice(2)
/** Signals and ends that a command may listen to. */
const events = ["SIGINT", "SIGTERM", "SIGHUP", "SIGPIPE", "exit", "uncaughtException", "unhandledRejection"]

let stdin
// A command without input reads an empty file.
Object.defineProperty(process, "stdin", {
  configurable: true,
  get: () => (stdin ??= createReadStream("/dev/null"))
})

const leave = process.exit.bind(process)
const handles = () => process.getActiveResourcesInfo().filter((name) => name !== "Immediate").length
const listeners = () => new Map(events.map((name) => [name, process.listeners(name)]))

/** Waits for the last callbacks of a command, then for nothing of it to be left. */
const settled = (before, then, turns = 20) => {
  if (handles() <= before) return then(true)
  if (turns === 0) return then(false)
  setImmediate(() => settled(before, then, turns - 1))
}

process.on("message", ({ cwd, env, mark, words }) => {
  // Key by key: an assignment reaches the real environment, which `homedir` reads.
  for (const name of Object.keys(process.env)) if (!(name in env)) delete process.env[name]
  Object.assign(process.env, env)
  process.chdir(cwd)
  process.argv = [process.execPath, bin, ...words]
  process.exitCode = undefined
  stdin = undefined
  const known = listeners()
  const before = handles()
  let ended = false
  process.exit = (code = process.exitCode ?? 0) => {
    if (ended) return
    ended = true
    process.exitCode = code
    process.emit("exit", code)
    for (const [name, kept] of known)
      for (const listener of process.listeners(name)) if (!kept.includes(listener)) process.off(name, listener)
    const status = process.exitCode
    settled(before, (clean) => {
      process.stderr.write(mark, () => process.stdout.write(mark, () => process.send({ mark, code: status, clean })))
      if (!clean) process.once("disconnect", () => leave(0))
    })
  }
  delete require.cache[bin]
  require(bin)
})
// The streams are opened now, so that they are not taken for handles of the first command.
void [process.stdout, process.stderr]
process.once("disconnect", () => leave(0))
process.send({ ready: true })
