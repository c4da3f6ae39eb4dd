/** A few kills; test/long/PruneKills.test.ts runs many. Spec: specs/log.md. */
import { it } from "@effect/vitest"
import { survives } from "./support/Kills.ts"

it.live(
  "RT-11: after kills at random steps of prune and restore nothing is lost and nothing half",
  () => survives(5, 1),
  120_000
)
