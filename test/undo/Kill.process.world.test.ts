/** A few of the kills of test/long/UndoKills.test.ts. */
import { it } from "@effect/vitest"
import { survives } from "./support/Kills.ts"

it.live(
  "UN-25, UN-31, UN-43: killed snapshots, undos and erasures leave files whole and are finished by the next run",
  () => survives(3, 1),
  120_000
)
