/** The kills of test/retention/Kills.world.test.ts, many times. DAYBOOK_RUNS and DAYBOOK_SEED choose. */
import { it } from "@effect/vitest"
import { Effect, Random } from "effect"
import { survives } from "../retention/support/Kills.ts"

it.live("RT-11: after many kills at random steps of prune and restore nothing is lost and nothing half", () =>
  Effect.flatMap(Random.nextIntBetween(0, 2 ** 30), (seed) =>
    survives(Number(process.env["DAYBOOK_RUNS"] ?? 200), Number(process.env["DAYBOOK_SEED"] ?? seed))
  )
)
