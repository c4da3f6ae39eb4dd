/** Tests how output is read from Node streams. Spec: SL-603 in specs/shell.md. */
import { PassThrough } from "node:stream"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Program from "../../../packages/shell/src/transport/Program.ts"

const turn = Effect.async<void>((resume) => void setImmediate(() => resume(Effect.void)))

it.live("SL-603: a program that prints without end gives way after each portion, and all of it arrives", () =>
  Effect.gen(function* () {
    const chunk = Buffer.alloc(65_536, "x")
    const stdout = new PassThrough({ highWaterMark: 64 * chunk.length })
    const { program } = Program.makeProgram({ input: new PassThrough(), stdout, stderr: new PassThrough() })
    let bytes = 0
    program.listen((_, given) => (bytes += given.length))
    for (let count = 0; count < 32; count++) stdout.write(chunk)
    stdout.end()
    let [before, most] = [0, 0]
    // A turn here may be two of the event loop.
    for (let turns = 0; before < 32 * chunk.length; turns++) {
      assert.isBelow(turns, 1_000)
      yield* turn
      most = Math.max(most, bytes - before)
      before = bytes
    }
    assert.isAtMost(most, 2 * 262_144)
  })
)

it.live("SL-603: a program that is paused stays so when it has given way", () =>
  Effect.gen(function* () {
    const stdout = new PassThrough({ highWaterMark: 4_194_304 })
    const { program } = Program.makeProgram({ input: new PassThrough(), stdout, stderr: new PassThrough() })
    let bytes = 0
    program.listen((_, given) => {
      bytes += given.length
      program.pause()
    })
    stdout.write(Buffer.alloc(300_000))
    stdout.write(Buffer.alloc(300_000))
    for (let turns = 0; turns < 10; turns++) yield* turn
    assert.strictEqual(bytes, 300_000)
    program.resume()
    for (let turns = 0; turns < 10; turns++) yield* turn
    assert.strictEqual(bytes, 600_000)
  })
)
