/** The kills of test/undo/Kill.process.world.test.ts, many times. DAYBOOK_RUNS and DAYBOOK_SEED choose. */
import { it } from "@effect/vitest"
import { Effect, Random } from "effect"
import { survives } from "../undo/support/Kills.ts"

it.live("UN-25, UN-31, UN-43: after many kills of snapshots, undos and erasures files and stores are whole", () =>
  Effect.flatMap(Random.nextIntBetween(0, 2 ** 30), (seed) =>
    survives(Number(process.env["DAYBOOK_RUNS"] ?? 200), Number(process.env["DAYBOOK_SEED"] ?? seed))
  )
)
