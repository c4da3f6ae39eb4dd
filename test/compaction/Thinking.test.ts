/** Summaries by models that think before they speak: what they think counts in the allowance of the answer. */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { answerTo, scene } from "../support/Harness.ts"
import { finish, says, streams } from "../support/ScriptedModel.ts"
import { asksForSummary, checkpointIn, exchange, long, narrow, summary } from "./support/Talks.ts"

it.scoped(
  "CP-26: an allowance that was spent without a word is asked for once more, as large as that of an answer",
  () =>
    Effect.gen(function* () {
      const { id, model } = yield* scene()
      for (const name of ["one", "two", "three"]) yield* exchange(id, name)
      yield* model.answer(streams(finish("length")))
      yield* model.answer(says(summary("To be told")))
      yield* answerTo(id, long("four", 150), "Four is done.")
      const [small, large, next] = [yield* model.request, yield* model.request, yield* model.request]
      assert.isTrue(asksForSummary(small) && asksForSummary(large))
      assert.strictEqual(small.settings.maxOutputTokens, 500)
      assert.isAbove(large.settings.maxOutputTokens ?? 0, 500)
      assert.include(checkpointIn(next), "To be told")
    }).pipe(Effect.provide(narrow({}, { outputTokens: 900 })))
)
