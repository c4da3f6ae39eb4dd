/** The kills of test/session/Processes.world.test.ts, many times. DAYBOOK_RUNS and DAYBOOK_SEED choose. */
import { it } from "@effect/vitest"
import { Effect, Random } from "effect"
import { survives } from "../session/support/Kills.ts"

it.live("IN-10: prompts that were acknowledged before a kill -9 are there once, after many kills", () =>
  Effect.flatMap(Random.nextIntBetween(0, 2 ** 31), (seed) =>
    survives(Number(process.env["DAYBOOK_RUNS"] ?? 200), Number(process.env["DAYBOOK_SEED"] ?? seed))
  )
)
