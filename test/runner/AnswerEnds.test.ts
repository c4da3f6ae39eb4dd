/** Answers that end without being whole: cut, filtered, refused, empty or paused. */
import type { Response } from "@effect/ai"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Effect, Layer, Stream, Struct } from "effect"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import type { SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { brief } from "../compaction/support/Talks.ts"
import {
  allUserTexts,
  answerTo,
  newSession,
  open,
  runtime,
  say,
  scene,
  temporaryFolder,
  userTexts
} from "../support/Harness.ts"
import { callParts, calls, finish, says, type Script, ScriptedModel, textParts } from "../support/ScriptedModel.ts"
import { dataOf, eventsOf, tool } from "./support/Runs.ts"

type Parts = ReadonlyArray<Response.StreamPartEncoded>

const answer = (reason: Response.FinishReason, ...parts: ReadonlyArray<Parts>): Script =>
  Stream.fromIterable([...parts.flat(), finish(reason)])

const thinking: Parts = [
  { type: "reasoning-start", id: "r" },
  { type: "reasoning-delta", id: "r", delta: "Hm." },
  { type: "reasoning-end", id: "r" }
]
const hosted: Parts = [
  { type: "tool-call", id: "h1", name: "web", params: {}, providerExecuted: true },
  { type: "tool-result", id: "h1", name: "web", result: {}, isFailure: false, providerExecuted: true }
]
const refuses = (...parts: ReadonlyArray<Parts>): Script =>
  Stream.fromIterable([...parts.flat(), { ...finish("content-filter"), metadata: { daybook: { refusal: true } } }])
const nothing = answer("stop")

/** Prompts a new session, and returns it once these answers have settled it. */
const answered = Effect.fnUntraced(function* (...scripts: ReadonlyArray<Script>) {
  const { id, model, sessions } = yield* scene()
  for (const script of scripts) yield* model.answer(script)
  yield* say(id, "go")
  yield* sessions.wait(id)
  return id
})

const endOf = (id: SessionID) =>
  Effect.map(dataOf(id, "session.next.activity.settled"), (all) => {
    const { error, outcome } = all.at(-1) ?? {}
    return [outcome, error?.type, error?.message]
  })

const cut = ["completed", "answer.cut", "The answer was cut off at the model's output limit, after 5 tokens."]
const filtered = ["completed", "answer.filtered", "The provider's filter withheld the answer."]
const cutShort = ["completed", "answer.filtered", "The provider's filter withheld the rest of the answer."]
const refused = ["completed", "answer.refused", "The model refused to answer."]
const empty = ["completed", "answer.empty", "The model answered nothing."]
const callless = ["completed", "answer.empty", "The model announced a tool call and made none."]
const whole = ["completed", undefined, undefined]

const some = textParts("t", "Some words")
const ends: ReadonlyArray<readonly [string, string, ReadonlyArray<Script>, ReadonlyArray<string | undefined>]> = [
  ["EX-T41", "cut off in its text", [answer("length", some)], cut],
  ["EX-T41", "cut off while thinking", [answer("length", thinking)], cut],
  ["EX-T41", "filtered before its first word", [answer("content-filter")], filtered],
  ["EX-T41", "filtered after some words", [answer("content-filter", some)], cutShort],
  ["EX-T41", "refused with words", [refuses(some)], refused],
  ["EX-T41", "refused without words", [refuses()], refused],
  ["EX-T41", "empty twice", [nothing, nothing], empty],
  ["EX-T41", "thinking only, twice", [answer("stop", thinking), answer("stop", thinking)], empty],
  ["EX-T41", "white space only, twice", [says(" \n\t\u200b"), says("\n")], empty],
  ["EX-T41", "for calls, without any, twice", [answer("tool-calls"), answer("tool-calls")], empty],
  ["EX-T41", "for calls, with words alone, twice", [answer("tool-calls", some), answer("tool-calls", some)], callless],
  ["EX-T44", "empty, then a text", [nothing, says("Here.")], whole],
  ["EX-T44", "empty, then cut off", [nothing, answer("length", some)], cut],
  ["EX-T41", "a hosted call alone", [answer("stop", hosted)], whole],
  ["EX-T41", "of a reason that is not known", [answer("unknown", some)], whole]
]

for (const [clause, name, scripts, end] of ends) {
  it.scoped(`${clause}: an activity whose answer is ${name} says so in the log`, () =>
    Effect.gen(function* () {
      yield* tool("web", () => Effect.dieMessage("the provider runs it"))
      const id = yield* answered(...scripts)
      assert.deepStrictEqual(yield* endOf(id), end)
      const { activity } = yield* (yield* Sessions).get(id)
      assert.deepStrictEqual([activity?.state, activity?.error?.type, activity?.error?.message], end)
      assert.strictEqual(yield* (yield* ScriptedModel).pending, scripts.length)
    }).pipe(Effect.provide(runtime()))
  )
}

it.scoped("EX-T40: an answer of only a problem is settled in the commit of its step", () =>
  Effect.gen(function* () {
    const id = yield* answered(answer("length", some))
    const types = (yield* eventsOf(id)).map(({ type }) => type)
    assert.deepStrictEqual(types.slice(-2), ["session.next.step.ended", "session.next.activity.settled"])
  }).pipe(Effect.provide(runtime()))
)

it.scoped("EX-T41: a count that the provider does not give is not in the sentence", () =>
  Effect.gen(function* () {
    const usage = { inputTokens: undefined, outputTokens: undefined, totalTokens: undefined }
    const id = yield* answered(Stream.fromIterable([...some, { type: "finish", reason: "length", usage }]))
    assert.strictEqual((yield* endOf(id))[2], "The answer was cut off at the model's output limit.")
  }).pipe(Effect.provide(runtime()))
)

it.scoped("EX-T42: a refusal has a finish of its own in the log", () =>
  Effect.gen(function* () {
    const id = yield* answered(refuses(some))
    assert.deepStrictEqual((yield* dataOf(id, "session.next.step.ended")).map(Struct.get("finish")), ["refusal"])
  }).pipe(Effect.provide(runtime()))
)

it.scoped("EX-T43: after a pause the model goes on, from an answer that was not complete", () =>
  Effect.gen(function* () {
    const id = yield* answered(answer("pause", some), says("and the rest"))
    const model = yield* ScriptedModel
    yield* model.request
    const { prompt } = yield* model.request
    assert.deepStrictEqual(
      prompt.content.map(({ role }) => role).filter((role) => role !== "system"),
      ["user", "assistant", "user"]
    )
    assert.match(allUserTexts({ prompt }).at(-1) ?? "", /was cut off\. Continue it where it ends/)
    assert.deepStrictEqual(yield* endOf(id), whole)
  }).pipe(Effect.provide(runtime()))
)

it.scoped("EX-T43: a hosted call that a pause leaves without a result is shown with one", () =>
  Effect.gen(function* () {
    yield* tool("web", () => Effect.dieMessage("the provider runs it"))
    yield* answered(answer("pause", hosted.slice(0, 1)), says("found"))
    const model = yield* ScriptedModel
    yield* model.request
    const { prompt } = yield* model.request
    assert.deepStrictEqual(
      prompt.content.flatMap((message) =>
        message.role === "assistant" ? message.content.map(({ type }) => type) : []
      ),
      ["tool-call", "tool-result"]
    )
    assert.strictEqual(prompt.content.at(-1)?.role, "user")
  }).pipe(Effect.provide(runtime()))
)

it.scoped("EX-T43: pauses are turns, and the limit of turns ends them", () =>
  Effect.gen(function* () {
    const id = yield* answered(answer("pause", some), answer("pause", some))
    assert.deepStrictEqual((yield* endOf(id)).slice(0, 2), ["failed", "TurnLimitExceeded"])
  }).pipe(Effect.provide(runtime({ agents: [{ ...brief(), name: "build", turnLimit: 2 }] })))
)

it.scoped("EX-T44: the empty answer is not in the next request, which ends with a reminder", () =>
  Effect.gen(function* () {
    yield* answered(answer("stop", thinking), says("Here."))
    const model = yield* ScriptedModel
    yield* model.request
    const { prompt } = yield* model.request
    assert.deepStrictEqual(
      prompt.content.map(({ role }) => role).filter((role) => role !== "system"),
      ["user", "user"]
    )
    assert.deepStrictEqual(userTexts({ prompt }), ["go"])
    assert.match(allUserTexts({ prompt }).at(-1) ?? "", /^<reminder>\nYour last answer had no text/)
  }).pipe(Effect.provide(runtime()))
)

it.scoped("EX-T44: a second empty answer to a prompt is not asked again, whatever came in between", () =>
  Effect.gen(function* () {
    yield* tool("look", () => Effect.succeed("seen"))
    const id = yield* answered(nothing, calls(callParts("c1", "look", {})), nothing)
    assert.deepStrictEqual(yield* endOf(id), empty)
    assert.strictEqual(yield* (yield* ScriptedModel).pending, 3)
  }).pipe(Effect.provide(runtime({ agents: [{ ...brief("look"), name: "build" }] })))
)

it.scoped("EX-T44: an empty answer to the next prompt is asked again", () =>
  Effect.gen(function* () {
    const id = yield* answered(nothing, nothing)
    const model = yield* ScriptedModel
    yield* model.answer(nothing)
    yield* answerTo(id, "and now?", "Here.")
    assert.deepStrictEqual(yield* endOf(id), whole)
  }).pipe(Effect.provide(runtime()))
)

it.scoped("EX-T44: an empty answer in the last turn that the limit allows is not asked again", () =>
  Effect.gen(function* () {
    const id = yield* answered(nothing)
    assert.deepStrictEqual(yield* endOf(id), empty)
  }).pipe(Effect.provide(runtime({ agents: [{ ...brief(), name: "build", turnLimit: 1 }] })))
)

it.scopedLive("EX-T44: a restart between the two requests does not ask a third time", () =>
  Effect.gen(function* () {
    const filename = join(yield* temporaryFolder, "daybook.db")
    const id = yield* Effect.gen(function* () {
      const [model, { id }] = [yield* ScriptedModel, yield* newSession()]
      yield* model.answer(nothing)
      yield* say(id, "go")
      yield* model.request
      yield* model.request
      return id
    }).pipe((first) => Effect.scoped(Effect.flatMap(open({ filename }), (opened) => Effect.provide(first, opened))))
    yield* Effect.gen(function* () {
      const model = yield* ScriptedModel
      yield* model.answer(nothing)
      yield* (yield* Sessions).resume(id)
      assert.deepStrictEqual(yield* endOf(id), empty)
      assert.strictEqual(yield* model.pending, 1)
    }).pipe(Effect.provide(Layer.fresh(runtime({ filename }))))
  })
)

it.scoped("EX-T45: an answer that its provider ends with an error is a failed request", () =>
  Effect.gen(function* () {
    const id = yield* answered(answer("error", some))
    assert.deepStrictEqual(yield* endOf(id), [
      "failed",
      "ProviderFailed",
      "scripted: the provider: the answer ended with an error"
    ])
    assert.deepStrictEqual(
      (yield* dataOf(id, "session.next.step.failed")).map(({ error }) => error.type),
      ["provider"]
    )
  }).pipe(Effect.provide(runtime()))
)

it.scoped("EX-T46: a structured answer that the model refuses fails with the words of the refusal's kind", () =>
  Effect.gen(function* () {
    const { id, model, sessions } = yield* scene()
    yield* model.answer(refuses(some))
    yield* model.answer(refuses(some))
    yield* sessions.prompt({ sessionID: id, prompt: { text: "go", output: { schema: { type: "object" } } } })
    yield* sessions.wait(id)
    assert.deepStrictEqual(yield* endOf(id), [
      "failed",
      "StructuredOutputFailed",
      "the model did not give a valid structured answer: The model refused to answer."
    ])
  }).pipe(Effect.provide(runtime()))
)
