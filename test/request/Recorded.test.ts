/**
 * Method: a conversation generated from a seed against models with a small window, so that it is pruned and compacted many
 * times; every request is kept as the model got it. Then a new runtime on the same file shows the turns again from the
 * log. `test/long/Recorded.test.ts` does the same with 2,000 turns.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { temporaryFolder } from "../support/Harness.ts"
import { holds } from "./support/Holds.ts"

describe("a recorded conversation", () => {
  it.scopedLive(
    "RQ-34: what the model saw at any turn is shown again from the log, through many compactions",
    () =>
      Effect.gen(function* () {
        const outcome = yield* holds(yield* temporaryFolder, 120, { seed: 7, sample: 16 })
        assert.isAtLeast(outcome.turns, 120)
        assert.isAtLeast(outcome.compactions, 5)
        assert.isAtLeast(outcome.prunings, 1)
        assert.isAtLeast(outcome.previews, 5)
      }),
    120_000
  )
})
