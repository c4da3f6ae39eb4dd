/** Old results that are left out of requests: what is shown, what stays stored, and how it is taken back. */
import { Tool } from "@effect/ai"
import { assert, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import { HostTools } from "../../packages/core/src/tool/HostTools.ts"
import { define } from "../../packages/core/src/tool/ToolDefinition.ts"
import type { SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { dataOf, resultsIn, transcript } from "../runner/support/Runs.ts"
import { answerTo, eventTypes, newSession, open, say, temporaryFolder } from "../support/Harness.ts"
import { callParts, calls, says, ScriptedModel } from "../support/ScriptedModel.ts"
import {
  asksForSummary,
  brief,
  compaction,
  counted,
  exchange,
  long,
  narrow,
  summary,
  tooLong,
  window
} from "./support/Talks.ts"

const options = { agents: [brief("look")], compaction }

const look = Effect.flatMap(HostTools, (host) =>
  host.register([
    define(Tool.make("look", { parameters: { size: Schema.Int }, success: Schema.String }), {
      handler: ({ size }) => Effect.succeed(long("seen", size))
    })
  ])
)

/** A prompt whose answer calls the tool once for each size. */
const looks = Effect.fnUntraced(function* (id: SessionID, name: string, ...sizes: ReadonlyArray<number>) {
  const model = yield* ScriptedModel
  yield* model.answer(calls(...sizes.map((size, nth) => callParts(`${name}${nth}`, "look", { size }))))
  yield* answerTo(id, name, `${name} is done.`)
  yield* model.request
  return yield* model.request
})

/** Long results, then two prompts after them: what is older than those may go. */
const filledWith = Effect.fnUntraced(function* (size: number) {
  yield* look
  const { id } = yield* newSession()
  yield* looks(id, "first", size, size)
  yield* looks(id, "second", 300)
  yield* exchange(id, "third", { prompt: 100 })
  return id
})
const filled = filledWith(500)

/** An agent with much to say, so that what it says is most of what is refused. */
const talkative = narrow(
  { ...options, agents: [{ ...brief("look"), prompt: long("Be brief.", 3_000) }] },
  { contextTokens: 7_000 }
)

const isPlaceholder = (result: unknown): boolean =>
  String(result).startsWith("[The result of look is no longer shown: ")

it.scoped("CP-36: where leaving old results out is enough, nothing is summarized", () =>
  Effect.gen(function* () {
    const model = yield* ScriptedModel
    const id = yield* filled
    const request = yield* exchange(id, "fourth", { prompt: 450 })
    assert.isFalse(asksForSummary(request))
    assert.strictEqual(yield* model.pending, 0)
    assert.deepStrictEqual(
      resultsIn(request).map(([callID, result]) => [callID, isPlaceholder(result)]),
      [
        ["first0", true],
        ["first1", true],
        ["second0", false]
      ]
    )
    assert.strictEqual((yield* dataOf(id, "session.next.context.pruned")).length, 1)
    assert.notInclude((yield* eventTypes(id)).join(), "compaction")
  }).pipe(Effect.provide(narrow(options)))
)

it.scoped("CP-35: what is left out stays stored, and unprune shows it again", () =>
  Effect.gen(function* () {
    const sessions = yield* Sessions
    const id = yield* filled
    const before = yield* transcript(id)
    yield* exchange(id, "fourth", { prompt: 450 })
    assert.deepStrictEqual((yield* transcript(id)).slice(0, before.length), before)
    assert.isAbove((yield* sessions.get(id)).prunedSeq ?? -1, -1)
    const results = Effect.map(sessions.request({ sessionID: id }), ({ messages }) =>
      messages.flatMap(({ content, role }) =>
        role === "tool" && typeof content !== "string"
          ? content.map((part) => ("result" in part ? isPlaceholder(part.result) : undefined))
          : []
      )
    )
    assert.deepStrictEqual(yield* results, [true, true, false])
    yield* sessions.unprune(id)
    assert.deepStrictEqual(yield* results, [false, false, false])
    const events = (yield* eventTypes(id)).length
    yield* sessions.unprune(id)
    assert.strictEqual((yield* eventTypes(id)).length, events)
  }).pipe(Effect.provide(narrow(options)))
)

it.scopedLive("CP-33: what is left out stays so after a restart, and what an earlier turn was shown does not", () =>
  Effect.gen(function* () {
    const filename = `${yield* temporaryFolder}/daybook.db`
    const id = yield* Effect.scoped(
      Effect.flatMap(open({ ...options, filename }, window), (services) =>
        Effect.provide(
          Effect.gen(function* () {
            const session = yield* filled
            yield* exchange(session, "fourth", { prompt: 450 })
            return session
          }),
          services
        )
      )
    )
    yield* Effect.scoped(
      Effect.flatMap(open({ ...options, filename }, window), (services) =>
        Effect.gen(function* () {
          yield* look
          const sessions = yield* Sessions
          const request = yield* exchange(id, "fifth", { prompt: 10, answer: 10 })
          assert.deepStrictEqual(
            resultsIn(request).map(([, result]) => isPlaceholder(result)),
            [true, true, false]
          )
          const [first] = (yield* transcript(id)).filter(({ type }) => type === "assistant").slice(2)
          const shown = yield* sessions.request({ sessionID: id, at: first?.seq ?? 0 })
          assert.notInclude(JSON.stringify(shown.messages), "no longer shown")
        }).pipe(Effect.provide(services))
      )
    )
  })
)

it.scoped("CP-37: with pruning turned off alone, the conversation is summarized instead", () =>
  Effect.gen(function* () {
    const model = yield* ScriptedModel
    const id = yield* filled
    yield* model.answer(says(summary("To keep results")))
    yield* answerTo(id, long("fourth", 600), "Fourth is done.")
    assert.isTrue(asksForSummary(yield* model.request))
    assert.deepStrictEqual(yield* dataOf(id, "session.next.context.pruned"), [])
  }).pipe(Effect.provide(narrow({ ...options, compaction: { ...compaction, prune: false } })))
)

it.scoped("CP-39: an overflow after results were left out is met by a compaction, once", () =>
  Effect.gen(function* () {
    const [sessions, model] = [yield* Sessions, yield* ScriptedModel]
    const id = yield* filledWith(1_000)
    yield* model.answer(tooLong)
    yield* model.answer(says(summary("To fit at last")))
    yield* model.answer(says("Fourth is done."))
    yield* say(id, long("fourth", 450))
    const session = yield* sessions.wait(id)
    assert.strictEqual(yield* model.pending, 3)
    assert.strictEqual(session.activity?.state, "completed")
    const types = (yield* eventTypes(id)).join()
    assert.isAbove(types.indexOf("context.pruned"), -1)
    assert.isBelow(types.indexOf("context.pruned"), types.indexOf("compaction.started"))
  }).pipe(Effect.provide(talkative))
)

it.scoped("CM-13: after results were left out, the count of the step before them is no bound any more", () =>
  Effect.gen(function* () {
    const [sessions, model] = [yield* Sessions, yield* ScriptedModel]
    const id = yield* filledWith(1_000)
    yield* model.answer(counted("It is long.", 6_200, 20))
    yield* say(id, "how long is it?")
    yield* sessions.wait(id)
    yield* model.request
    assert.isBelow((yield* sessions.request({ sessionID: id })).estimate.total, 6_000)
    // By its own size it would fit: the provider's count says that it does not, and so results go.
    yield* model.answer(tooLong)
    yield* model.answer(says(summary("To measure anew")))
    yield* answerTo(id, "fourth", "Done.")
    assert.strictEqual((yield* dataOf(id, "session.next.context.pruned")).length, 1)
    const [ended] = yield* dataOf(id, "session.next.compaction.ended")
    assert.isBelow(ended?.tokensBefore ?? Infinity, 4_500)
  }).pipe(Effect.provide(talkative))
)
