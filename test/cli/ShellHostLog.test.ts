import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Logs from "../../packages/cli/src/terminal/Logs.ts"

it.effect("SL-171: a host logs warnings in whole lines up to its limit of bytes, and then nothing more", () =>
  Effect.gen(function* () {
    const lines: Array<string> = []
    const most = 1_000
    const bytes = () => Buffer.byteLength(lines.join(""))
    yield* Effect.gen(function* () {
      yield* Effect.logInfo("not a warning")
      for (let count = 1; count <= 20; count++) yield* Effect.logWarning(`é ${count} ${"x".repeat(60)}`)
      yield* Effect.logWarning("short")
    }).pipe(Effect.provide(Logs.limited((line) => void lines.push(line), most)))
    assert.isAtMost(bytes(), most)
    assert.isAbove(bytes() + Buffer.byteLength(lines[0] ?? ""), most)
    assert.isTrue(lines.every((line) => line.includes("x".repeat(60)) && line.endsWith("\n")))
  })
)
