import { assert, it } from "@effect/vitest"
import { Effect, Fiber, Option } from "effect"
import { afterEach, vi } from "vitest"
import * as Signal from "../../packages/cli/src/support/Signal.ts"

afterEach(() => vi.restoreAllMocks())

it.effect.each([
  ["SIGINT", 130],
  ["SIGTERM", 143],
  ["SIGHUP", 129]
] as const)("CL-123: the first %s is waited for, the second ends the process with %i", ([name, code]) =>
  Effect.gen(function* () {
    const exits: Array<unknown> = []
    vi.spyOn(process, "exit").mockImplementation((given) => {
      exits.push(given)
      return undefined as never
    })
    yield* Effect.scoped(
      Effect.gen(function* () {
        const waiting = yield* Effect.fork(yield* Signal.first)
        yield* Effect.yieldNow()
        assert.isTrue(Option.isNone(yield* Fiber.poll(waiting)))
        process.emit(name)
        yield* Fiber.join(waiting)
        assert.deepStrictEqual(exits, [])
        process.emit(name)
        assert.deepStrictEqual(exits, [code])
      })
    )
    assert.strictEqual(process.listenerCount("SIGHUP"), 0)
  })
)
