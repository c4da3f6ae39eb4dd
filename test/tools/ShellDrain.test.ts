/** Output that is on its way when a command ends: on an event loop that was busy, or before anyone reads it. */
import { spawn } from "node:child_process"
import { assert, it } from "@effect/vitest"
import { Effect, Fiber, Stream } from "effect"
import { temporaryFolder } from "../support/Database.ts"
import { drain, runShell, type ShellProcess } from "../../packages/core/src/child/ShellProcess.ts"

it.live("TO-119, TO-62: what was printed before the end is read, however busy the event loop was", () =>
  Effect.gen(function* () {
    const child = spawn("sh", ["-c", "printf made"])
    let text = ""
    child.stdout.on("data", (bytes: Buffer) => (text += String(bytes)))
    const draining = yield* Effect.fork(drain(10))
    yield* Effect.yieldNow()
    // The output arrives and the time for it passes while nothing else runs.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 500)
    yield* Fiber.join(draining)
    assert.strictEqual(text, "made")
  })
)

const textOf = ({ output }: ShellProcess) =>
  Effect.map(Stream.runCollect(output), (chunks) => Buffer.concat([...chunks].map(({ bytes }) => bytes)).toString())

const run = (command: string) => runShell({ command, cwd: "/", env: process.env })

it.scopedLive("TO-119: what a command printed is read although it ended before its output had a reader", () =>
  Effect.gen(function* () {
    const shell = yield* run("printf made; printf ' too' >&2")
    yield* shell.exit
    // Node has handled the exit. It drops output that has no reader.
    yield* drain(10)
    yield* shell.end
    assert.strictEqual((yield* textOf(shell)).length, "made too".length)
  })
)

it.scopedLive("TO-119: output longer than every buffer is read to its end after the command's end", () =>
  Effect.gen(function* () {
    const shell = yield* run("head -c 300000 /dev/zero & head -c 300000 /dev/zero >&2; wait")
    const text = yield* Effect.fork(textOf(shell))
    yield* shell.exit
    yield* shell.end
    assert.strictEqual((yield* Fiber.join(text)).length, 600_000)
  })
)

/** Runs a program that has left the group when the command ends, and holds its output. Gives what was read. */
const leaving = Effect.fnUntraced(function* (program: string) {
  const cwd = yield* temporaryFolder
  const command = `mkfifo left; setsid sh -c 'echo $$ > left; exec ${program}' & cat left; printf made`
  const shell = yield* runShell({ command, cwd, env: process.env })
  const reading = yield* Effect.fork(textOf(shell))
  yield* shell.exit
  yield* shell.end
  const text = yield* Fiber.join(reading)
  process.kill(Number(/^(\d+)$/m.exec(text)?.[1]))
  return text
})

it.scopedLive("TO-119: a process that left the group and holds the output does not keep it open", () =>
  Effect.map(leaving("sleep 600"), (text) => assert.match(text, /^\d+\nmade$/))
)

it.scopedLive("TO-119: a process that left the group and prints without end does not keep the output open", () =>
  Effect.map(leaving("yes"), (text) => assert.match(text, /made/))
)
