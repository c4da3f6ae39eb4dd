/** The kills of test/files/Crash.world.test.ts, many times. DAYBOOK_RUNS and DAYBOOK_SEED choose. */
import { it } from "@effect/vitest"
import { Effect, Random } from "effect"
import { survives } from "../files/support/Kills.ts"

it.live("FL-8: after many kills at random file operations the tree equals a fresh export", () =>
  Effect.flatMap(Random.nextIntBetween(0, 2 ** 30), (seed) =>
    survives(Number(process.env["DAYBOOK_RUNS"] ?? 500), Number(process.env["DAYBOOK_SEED"] ?? seed))
  )
)
