"use strict"
/**
 * Runs one command after another in this process, so that the bundle is loaded once. `Warm.ts` sends each command and reads
 * its output up to a mark. A command ends with `process.exit`, or when nothing keeps the event loop alive. A command that
 * leaves a handle behind ends the process, as its own `process.exit` would.
 */
const { createReadStream, openSync } = require("node:fs")
const { Readable } = require("node:stream")
const { ReadStream } = require("node:tty")

const [bin] = process.argv.slice(2)
const signals = ["SIGINT", "SIGTERM", "SIGHUP"]
/** Signals and ends that a command may listen to. */
const events = [...signals, "SIGPIPE", "exit", "beforeExit", "uncaughtException", "unhandledRejection"]
const isTerminal = process.stdout.isTTY === true
/** The size of a read from a pipe. */
const portion = 65_536

let input = Buffer.alloc(0)
let stdin
const openStdin = () => {
  if (isTerminal) return new ReadStream(openSync("/dev/tty", "r+"))
  // A command without input reads an empty file.
  if (input.length === 0) return createReadStream("/dev/null")
  const parts = []
  for (let at = 0; at < input.length; at += portion) parts.push(Buffer.from(input.subarray(at, at + portion)))
  return Readable.from(parts, { objectMode: false })
}
Object.defineProperty(process, "stdin", { configurable: true, get: () => (stdin ??= openStdin()) })

/** How many signals arrived. A signal that the command does not handle ends the process, as it does without this listener. */
let signalled = 0
for (const name of signals) {
  const count = () => {
    signalled++
    if (process.listenerCount(name) > 1) return
    process.off(name, count)
    process.kill(process.pid, name)
  }
  process.on(name, count)
}

const leave = process.exit.bind(process)
const handles = () => process.getActiveResourcesInfo().filter((name) => name !== "Immediate").length
const listeners = () => new Map(events.map((name) => [name, process.listeners(name)]))

/** Waits for the last callbacks of a command, then for nothing of it to be left. */
const settled = (before, then, turns = 20) => {
  if (handles() <= before) return then(true)
  if (turns === 0) return then(false)
  setImmediate(() => settled(before, then, turns - 1))
}

process.on("message", ({ cwd, env, input: bytes, mark, words }) => {
  // Key by key: an assignment reaches the real environment, which `homedir` reads.
  for (const name of Object.keys(process.env)) if (!(name in env)) delete process.env[name]
  Object.assign(process.env, env)
  process.chdir(cwd)
  process.argv = [process.execPath, bin, ...words]
  process.exitCode = undefined
  input = Buffer.from(bytes)
  stdin = undefined
  signalled = 0
  // Only the command keeps the event loop alive.
  process.channel.unref()
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
    if (isTerminal) stdin?.destroy()
    settled(before, (clean) => {
      process.channel.ref()
      const report = () => process.send({ mark, code: status, clean, signalled })
      if (isTerminal) process.stdout.write(mark, report)
      else process.stderr.write(mark, () => process.stdout.write(mark, report))
      if (!clean) process.once("disconnect", () => leave(0))
    })
  }
  process.once("beforeExit", () => process.exit())
  delete require.cache[bin]
  require(bin)
})
// The streams are opened now, so that they are not taken for handles of the first command.
void [process.stdout, process.stderr]
process.once("disconnect", () => leave(0))
process.send({ ready: true })
