/** Compactions by need: when there is one, and when there is none. Method: a small window, sizes by preview. */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import type { SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { dataOf, failureOf } from "../runner/support/Runs.ts"
import { answerTo, newSession, open, say, scene, temporaryFolder, userTexts } from "../support/Harness.ts"
import { otherRef, says, ScriptedModel } from "../support/ScriptedModel.ts"
import {
  asksForSummary,
  brief,
  compaction,
  compactions,
  counted,
  exchange,
  full,
  long,
  narrow,
  summary
} from "./support/Talks.ts"

it.scopedLive("CM-2: a request of the budget's size goes out as it is; one token more is compacted first", () =>
  Effect.gen(function* () {
    const filename = `${yield* temporaryFolder}/daybook.db`
    const options = { filename, agents: [brief()], compaction }
    const [ids, tokens] = yield* Effect.scoped(
      Effect.flatMap(open(options, {}), (services) =>
        Effect.gen(function* () {
          const sessions = yield* Sessions
          const made: Array<SessionID> = []
          const sizes: Array<number> = []
          for (let nth = 0; nth < 3; nth++) {
            const { id } = yield* newSession()
            yield* exchange(id, "one")
            yield* exchange(id, "two")
            yield* say(id, "go on", { resume: false })
            sizes.push((yield* sessions.request({ sessionID: id })).estimate.total)
            made.push(id)
          }
          assert.deepStrictEqual(new Set(sizes).size, 1)
          return [made, sizes[0] ?? 0] as const
        }).pipe(Effect.provide(services))
      )
    )
    const outcomes: Array<number> = []
    for (const [nth, more] of [1, 0, -1].entries()) {
      const [id = ids[0]] = [ids[nth]]
      if (id === undefined) continue
      yield* Effect.scoped(
        Effect.flatMap(
          open(options, { contextTokens: tokens + compaction.reserveTokens + more, outputTokens: 500 }),
          (services) =>
            Effect.gen(function* () {
              const [sessions, model] = [yield* Sessions, yield* ScriptedModel]
              yield* model.answer(says(summary("To see the edge")))
              yield* model.answer(says("Done."))
              yield* sessions.resume(id)
              outcomes.push((yield* compactions(id)).length)
            }).pipe(Effect.provide(services))
        )
      )
    }
    assert.deepStrictEqual(outcomes, [0, 0, 2])
  })
)

it.scoped("CP-47: tokens and cost of a summary are the session's", () =>
  Effect.gen(function* () {
    const [sessions, model] = [yield* Sessions, yield* ScriptedModel]
    const id = yield* full
    const before = yield* sessions.get(id)
    yield* model.answer(counted(summary("To pay"), 1_000, 100))
    yield* model.answer(counted("Four is done.", 10, 5))
    yield* say(id, long("four", 300))
    const after = yield* sessions.wait(id)
    assert.strictEqual(after.tokens.input - before.tokens.input, 1_010)
    assert.strictEqual(after.tokens.output - before.tokens.output, 105)
    assert.closeTo(after.cost - before.cost, (1_010 * 1 + 105 * 10) / 1_000_000, 1e-12)
    const [ended] = yield* dataOf(id, "session.next.compaction.ended")
    assert.closeTo(ended?.cost ?? 0, (1_000 + 100 * 10) / 1_000_000, 1e-12)
  }).pipe(Effect.provide(narrow({}, { price: { input: 1, output: 10, cacheRead: 0, cacheWrite: 0 } })))
)

it.scoped("CM-12: with compaction turned off, and with a window that is not known, nothing is compacted", () =>
  Effect.gen(function* () {
    const off = Effect.gen(function* () {
      const id = yield* full
      for (const name of ["four", "five"]) yield* exchange(id, name, { prompt: 1_500 })
      assert.deepStrictEqual(yield* compactions(id), [])
    })
    yield* Effect.provide(off, narrow({ compaction: { ...compaction, enabled: false } }))
    yield* Effect.provide(off, narrow({}, { contextTokens: 0 }))
  })
)

it.scoped(
  "CM-12: a request that is too large after its compaction goes out once; the next turn may compact again",
  () =>
    Effect.gen(function* () {
      const model = yield* ScriptedModel
      const id = yield* full
      // It was asked for 500 tokens, and gave what it liked.
      yield* model.answer(says(summary(long("goal", 1_800))))
      yield* answerTo(id, long("four", 200), "Four is done.")
      assert.strictEqual(yield* model.pending, 2)
      assert.strictEqual((yield* compactions(id)).length, 2)
      yield* model.answer(says(summary("Short now")))
      yield* answerTo(id, "five", "Five is done.")
      assert.strictEqual(yield* model.pending, 4)
      assert.strictEqual((yield* compactions(id)).length, 4)
    }).pipe(Effect.provide(narrow()))
)

it.scoped("CM-5: what holds nothing to summarize is not compacted, and nothing is written of it", () =>
  Effect.gen(function* () {
    const { id, model } = yield* scene()
    const request = yield* exchange(id, "one", { prompt: 2_500 })
    assert.strictEqual(userTexts(request).length, 1)
    assert.deepStrictEqual(yield* compactions(id), [])
    assert.strictEqual(yield* model.pending, 0)
  }).pipe(Effect.provide(narrow()))
)

/** A small session that its provider counted as larger than the budget. */
const overcounted = Effect.gen(function* () {
  const { id, model, sessions } = yield* scene()
  yield* exchange(id, "one", { prompt: 300 })
  yield* model.answer(counted(long("two-answer", 100), 2_100, 100))
  yield* say(id, long("two", 300))
  yield* sessions.wait(id)
  yield* model.request
  return id
})

it.scoped("CM-13: what the provider counted at the last step is the least that the request has", () =>
  Effect.gen(function* () {
    const [sessions, model] = [yield* Sessions, yield* ScriptedModel]
    const id = yield* overcounted
    const { estimate } = yield* sessions.request({ sessionID: id })
    assert.isBelow(estimate.total, 1_500)
    yield* model.answer(says(summary("To believe it")))
    yield* answerTo(id, "three", "Three is done.")
    assert.isTrue(asksForSummary(yield* model.request))
    // The count was of what is not shown any more.
    yield* model.request
    yield* exchange(id, "four", { prompt: 10 })
    assert.strictEqual((yield* compactions(id)).length, 2)
  }).pipe(Effect.provide(narrow()))
)

it.scoped("CM-13: another model's count tells nothing of this one's", () =>
  Effect.gen(function* () {
    const sessions = yield* Sessions
    const id = yield* overcounted
    yield* sessions.switchModel(id, otherRef)
    const request = yield* exchange(id, "three", { prompt: 10 })
    assert.strictEqual(request.model, "two")
    assert.deepStrictEqual(yield* compactions(id), [])
  }).pipe(Effect.provide(narrow()))
)

it.scoped("CP-47: the budget is looked at before a summary is asked for", () =>
  Effect.gen(function* () {
    const [sessions, model] = [yield* Sessions, yield* ScriptedModel]
    const id = yield* full
    yield* sessions.setBudget(id, { tokens: 40 })
    assert.strictEqual(
      yield* Effect.flatMap(say(id, long("four", 300), { resume: false }), () => failureOf(sessions.resume(id))),
      "BudgetExceeded"
    )
    assert.deepStrictEqual(yield* compactions(id), [])
    assert.strictEqual(yield* model.pending, 0)
  }).pipe(Effect.provide(narrow()))
)
