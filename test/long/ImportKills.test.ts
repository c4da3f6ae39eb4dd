/** The kills of test/formats/import/Kills.world.test.ts, many times. DAYBOOK_RUNS and DAYBOOK_SEED choose. */
import { assert, it } from "@effect/vitest"
import { Effect, Random } from "effect"
import { survives } from "../support/ImportKills.ts"

it.live("IM-41: after 200 kills at random statements, the import again equals one clean import", () =>
  Effect.gen(function* () {
    const seed = Number(process.env["DAYBOOK_SEED"] ?? (yield* Random.nextIntBetween(0, 2 ** 30)))
    assert.isAbove(yield* survives(Number(process.env["DAYBOOK_RUNS"] ?? 200), seed), 0)
  }).pipe(Effect.scoped)
)
