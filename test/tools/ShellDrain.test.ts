/** Output that is on its way when a command ends, on an event loop that was busy. */
import { spawn } from "node:child_process"
import { assert, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { drain } from "../../packages/core/src/child/ShellProcess.ts"

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
