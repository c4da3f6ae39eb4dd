/** The kills of test/storage/Backup.test.ts, many times. DAYBOOK_RUNS and DAYBOOK_SEED choose. */
import { assert, it } from "@effect/vitest"
import { Effect, Random } from "effect"
import { survives } from "../support/BackupKills.ts"

it.live("ST-43, ST-48: after 200 kills at random operations every name holds a whole database", () =>
  Effect.gen(function* () {
    const seed = Number(process.env["DAYBOOK_SEED"] ?? (yield* Random.nextIntBetween(0, 2 ** 30)))
    assert.isAbove(yield* survives(Number(process.env["DAYBOOK_RUNS"] ?? 200), seed), 0)
  })
)
