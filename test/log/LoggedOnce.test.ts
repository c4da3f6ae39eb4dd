import { assert, it } from "@effect/vitest"
import { Effect, Logger, LogLevel } from "effect"
import { loggedOnce } from "../../packages/log/src/support/LoggedOnce.ts"

it.effect("CU-61: of work that fails again and again one warning is logged, until it succeeds", () => {
  const levels: Array<string> = []
  const logger = Logger.make(({ logLevel }) => void levels.push(logLevel.label))
  return Effect.gen(function* () {
    const logged = loggedOnce("it failed")
    const results = yield* Effect.forEach(
      [Effect.fail("away"), Effect.fail("away"), Effect.succeed(1), Effect.fail("away")],
      (work) => logged(work, 0)
    )
    assert.deepStrictEqual(results, [0, 0, 1, 0])
    assert.deepStrictEqual(levels, ["WARN", "DEBUG", "WARN"])
  }).pipe(Effect.provide(Logger.replace(Logger.defaultLogger, logger)), Logger.withMinimumLogLevel(LogLevel.Debug))
})
