/** The conversation of test/request/Recorded.test.ts with 2,000 turns. DAYBOOK_TURNS and DAYBOOK_SEED choose. */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { holds } from "../request/support/Holds.ts"
import { temporaryFolder } from "../support/Harness.ts"

it.scopedLive("RQ-34: what the model saw at any of 2,000 turns is shown again, through many compactions", () =>
  Effect.gen(function* () {
    const turns = Number(process.env["DAYBOOK_TURNS"] ?? 2_000)
    const seed = Number(process.env["DAYBOOK_SEED"] ?? 1)
    const outcome = yield* holds(yield* temporaryFolder, turns, { seed, sample: 60 })
    console.log(`seed ${seed}: ${JSON.stringify(outcome)}`)
    assert.isAtLeast(outcome.compactions, turns / 50)
    assert.isAtLeast(outcome.compared, 60)
  })
)
