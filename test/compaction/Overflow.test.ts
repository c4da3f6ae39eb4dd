/** A provider that refuses a request as too long: one compaction, one more request, and never a loop. */
import { Tool } from "@effect/ai"
import { assert, it } from "@effect/vitest"
import { Deferred, Effect, Schema } from "effect"
import type { Agent } from "../../packages/core/src/domain/Agent.ts"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import { HostTools } from "../../packages/core/src/tool/HostTools.ts"
import { define } from "../../packages/core/src/tool/ToolDefinition.ts"
import type { SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { dataOf, failureOf, transcript } from "../runner/support/Runs.ts"
import { allUserTexts, eventTypes, say, scene } from "../support/Harness.ts"
import { callParts, calls, finish, held, says, ScriptedModel, streams, textParts } from "../support/ScriptedModel.ts"
import {
  asksForSummary,
  brief,
  checkpointIn,
  compaction,
  full,
  long,
  narrow,
  summary,
  tooLong
} from "./support/Talks.ts"

/** A window that the catalogue thinks is wider than it is, and an agent with much to say. */
const model = { contextTokens: 100_000 }
const talkative = (...tools: ReadonlyArray<string>): Agent => ({ ...brief(...tools), prompt: long("Be brief.", 2_000) })
const wide = narrow({ agents: [talkative()] }, model)

const tail = (id: SessionID, from: string) =>
  Effect.map(eventTypes(id), (types) => {
    const short = types.map((type) => type.replace("session.next.", ""))
    return short.slice(short.lastIndexOf(from))
  })

/** Prompts without a run, then runs: the tag of the run's failure, if it fails. */
const run = Effect.fnUntraced(function* (id: SessionID, text = "four") {
  yield* say(id, text, { resume: false })
  return yield* failureOf(Effect.flatMap(Sessions, (sessions) => sessions.resume(id)))
})

it.scoped("CM-10: an overflow causes one compaction and one more request, three in all", () =>
  Effect.gen(function* () {
    const model = yield* ScriptedModel
    const id = yield* full
    yield* model.answer(tooLong)
    yield* model.answer(says(summary("To fit")))
    yield* model.answer(says("Four is done."))
    assert.isUndefined(yield* run(id))
    assert.strictEqual(yield* model.pending, 3)
    const [refused, asked, final] = [yield* model.request, yield* model.request, yield* model.request]
    assert.strictEqual(allUserTexts(refused).length, 4)
    assert.isTrue(asksForSummary(asked))
    assert.include(checkpointIn(final), "To fit")
    assert.deepStrictEqual(yield* tail(id, "activity.started"), [
      "activity.started",
      "prompt.promoted",
      "step.started",
      "step.failed",
      "compaction.started",
      "compaction.ended",
      "request.framed",
      "step.started",
      "text.started",
      "text.ended",
      "step.ended",
      "activity.settled"
    ])
    const [failed] = yield* dataOf(id, "session.next.step.failed")
    assert.strictEqual(failed?.error.type, "context-overflow")
  }).pipe(Effect.provide(wide))
)

it.scoped("CM-10: the step's start alone is no output: a refusal after it is recovered from as well", () =>
  Effect.gen(function* () {
    const model = yield* ScriptedModel
    const id = yield* full
    yield* model.answer(
      streams({ type: "response-metadata", id: "r1", modelId: "m" }, { type: "error", error: "prompt is too long" })
    )
    yield* model.answer(says(summary("To fit")))
    yield* model.answer(says("Four is done."))
    assert.isUndefined(yield* run(id))
    assert.strictEqual(yield* model.pending, 3)
  }).pipe(Effect.provide(wide))
)

it.scoped("CM-11: a second overflow is the run's failure, and the session can go on later", () =>
  Effect.gen(function* () {
    const model = yield* ScriptedModel
    const id = yield* full
    yield* model.answer(tooLong)
    yield* model.answer(says(summary("To fit")))
    yield* model.answer(tooLong)
    assert.strictEqual(yield* run(id), "ProviderFailed")
    assert.strictEqual(yield* model.pending, 3)
    const session = yield* Effect.flatMap(Sessions, (sessions) => sessions.get(id))
    assert.strictEqual(session.activity?.state, "failed")
    assert.strictEqual(session.activity?.error?.type, "ProviderFailed")
    const [, last] = (yield* transcript(id)).filter(({ type }) => type === "assistant").slice(-2)
    assert.isTrue(last?.type === "assistant" && last.finish === "error" && last.error?.type === "context-overflow")
    yield* model.answer(says("Now it fits."))
    assert.isUndefined(yield* run(id, "again"))
  }).pipe(Effect.provide(wide))
)

it.scoped("CM-11: where nothing can be compacted, the first overflow is the run's failure", () =>
  Effect.gen(function* () {
    const { id, model } = yield* scene()
    yield* model.answer(tooLong)
    assert.strictEqual(yield* run(id), "ProviderFailed")
    assert.strictEqual(yield* model.pending, 1)
    assert.notInclude((yield* eventTypes(id)).join(), "compaction")
  }).pipe(Effect.provide(wide))
)

it.scoped("CM-11: an overflow after output, and one after a tool has run, is the run's failure", () =>
  Effect.gen(function* () {
    const [model, host] = [yield* ScriptedModel, yield* HostTools]
    let runs = 0
    yield* host.register([
      define(Tool.make("look", { success: Schema.String }), { handler: () => Effect.sync(() => `seen ${(runs += 1)}`) })
    ])
    const id = yield* full
    const overflow = { type: "error", error: "prompt is too long" } as const
    yield* model.answer(streams(...textParts("t", "So far"), overflow))
    assert.strictEqual(yield* run(id), "ProviderFailed")
    yield* model.answer(streams(...callParts("c", "look", {}), overflow))
    assert.strictEqual(yield* run(id, "five"), "ProviderFailed")
    assert.strictEqual(yield* model.pending, 2)
    assert.isAtMost(runs, 1)
    assert.notInclude((yield* eventTypes(id)).join(), "compaction")
  }).pipe(Effect.provide(narrow({ agents: [talkative("look")] }, model)))
)

it.scoped("CM-11: a summary that fails leaves the overflow as the run's failure", () =>
  Effect.gen(function* () {
    const model = yield* ScriptedModel
    const id = yield* full
    yield* model.answer(tooLong)
    yield* model.answer(tooLong)
    assert.strictEqual(yield* run(id), "ProviderFailed")
    assert.strictEqual(yield* model.pending, 2)
    assert.deepStrictEqual(yield* tail(id, "compaction.started"), [
      "compaction.started",
      "compaction.failed",
      "activity.settled"
    ])
  }).pipe(Effect.provide(wide))
)

it.scoped("CM-12: with compaction turned off an overflow is the run's failure", () =>
  Effect.gen(function* () {
    const model = yield* ScriptedModel
    const id = yield* full
    yield* model.answer(tooLong)
    assert.strictEqual(yield* run(id), "ProviderFailed")
    assert.strictEqual(yield* model.pending, 1)
    assert.notInclude((yield* eventTypes(id)).join(), "compaction")
  }).pipe(Effect.provide(narrow({ compaction: { ...compaction, enabled: false } }, model)))
)

it.scoped("CM-11: an interrupt during the summary of an overflow ends the run as interrupted", () =>
  Effect.gen(function* () {
    const [sessions, model] = [yield* Sessions, yield* ScriptedModel]
    const id = yield* full
    yield* model.answer(tooLong)
    yield* model.answer(held(textParts("s", "## Goal"), yield* Deferred.make<void>(), [finish()]))
    yield* say(id, "four")
    yield* model.request
    assert.isTrue(asksForSummary(yield* model.request))
    yield* sessions.interrupt(id)
    const session = yield* sessions.wait(id)
    assert.strictEqual(session.activity?.state, "interrupted")
    assert.deepStrictEqual(yield* tail(id, "compaction.started"), [
      "compaction.started",
      "compaction.failed",
      "activity.settled"
    ])
  }).pipe(Effect.provide(wide))
)

it.scoped("CM-12: an overflow right after a compaction by need is not answered by another", () =>
  Effect.gen(function* () {
    const model = yield* ScriptedModel
    const id = yield* full
    yield* model.answer(says(summary("By need")))
    yield* model.answer(tooLong)
    assert.strictEqual(yield* run(id, long("four", 300)), "ProviderFailed")
    assert.strictEqual(yield* model.pending, 2)
    assert.strictEqual((yield* dataOf(id, "session.next.compaction.started")).length, 1)
  }).pipe(Effect.provide(narrow()))
)

it.scoped("CM-10: a later turn of the same activity may overflow and be recovered again", () =>
  Effect.gen(function* () {
    const [model, host] = [yield* ScriptedModel, yield* HostTools]
    yield* host.register([
      define(Tool.make("look", { success: Schema.String }), { handler: () => Effect.succeed(long("seen", 300)) })
    ])
    const id = yield* full
    yield* model.answer(tooLong)
    yield* model.answer(says(summary("First")))
    yield* model.answer(calls(callParts("c1", "look", {})))
    yield* model.answer(tooLong)
    yield* model.answer(says(summary("Second")))
    yield* model.answer(says("Done."))
    assert.isUndefined(yield* run(id))
    const requests = yield* Effect.replicateEffect(model.request, yield* model.pending)
    assert.strictEqual(requests.length, 6)
    const [, , , , asked] = requests
    assert.match(asked === undefined ? "" : (allUserTexts(asked)[0] ?? ""), /^<previous-summary>\n## Goal\nFirst/)
    const activities = yield* dataOf(id, "session.next.activity.started")
    assert.strictEqual(activities.length, 4)
  }).pipe(Effect.provide(narrow({ agents: [talkative("look")] }, model)))
)
