/** How a provider's stream may end, and what hosted calls leave (TO-7..TO-9, TO-11, TU-14, TU-15). */
import { assert, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Stream, Struct } from "effect"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import type { SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { answerTo, newSession, runtime, say, scene } from "../support/Harness.ts"
import {
  callParts,
  failure,
  finish,
  held,
  says,
  type Script,
  ScriptedModel,
  streams,
  textParts
} from "../support/ScriptedModel.ts"
import { dataOf, eventsOf, failureOf, gatedTool, tool, transcript } from "./support/Runs.ts"

/** Runs one prompt with this answer and returns the run's failure. */
const answeredBy = Effect.fnUntraced(function* (id: SessionID, script: Script) {
  const sessions = yield* Sessions
  const model = yield* ScriptedModel
  yield* model.answer(script)
  yield* say(id, "go", { resume: false })
  return yield* failureOf(sessions.resume(id))
})

const hostedCall = {
  type: "tool-call",
  id: "h1",
  name: "web",
  params: { q: "x" },
  providerExecuted: true,
  metadata: { scripted: { side: "call" } }
} as const
const hostedResult = {
  type: "tool-result",
  id: "h1",
  name: "web",
  result: { hits: 3 },
  isFailure: false,
  providerExecuted: true,
  metadata: { scripted: { side: "result" } }
} as const
const web = tool("web", () => Effect.dieMessage("the provider runs it"))

it.scoped("TO-7: an error part fails the step, interrupts local calls, and nothing goes on or comes after", () =>
  Effect.gen(function* () {
    const { id, model, sessions } = yield* scene()
    const slow = yield* gatedTool("slow")
    yield* web
    const gate = yield* Deferred.make<void>()
    const error = { type: "error", error: { message: "the provider is on fire" } } as const
    yield* model.answer(
      held([hostedCall, ...callParts("c1", "slow", {})], gate, [error, ...textParts("t", "ignored"), finish()])
    )
    yield* say(id, "go", { resume: false })
    const run = yield* Effect.fork(failureOf(sessions.resume(id)))
    yield* slow.begun
    yield* Deferred.succeed(gate, undefined)
    assert.strictEqual(yield* Fiber.join(run), "ProviderFailed")
    assert.strictEqual(yield* slow.stopped, "c1")
    assert.deepStrictEqual(
      (yield* dataOf(id, "session.next.tool.failed")).map(({ callID, error: stored }) => [callID, stored.message]),
      [
        ["c1", "Tool execution interrupted"],
        ["h1", "no result from provider"]
      ]
    )
    assert.include((yield* dataOf(id, "session.next.step.failed"))[0]?.error.message, "on fire")
    assert.deepStrictEqual(yield* dataOf(id, "session.next.text.started"), [])
    assert.deepStrictEqual(yield* dataOf(id, "session.next.step.ended"), [])
    yield* model.request
    assert.strictEqual(yield* model.pending, 0)
  }).pipe(Effect.provide(runtime()))
)

it.scoped("TO-7: a call in the same piece as the error is not run", () =>
  Effect.gen(function* () {
    const { id } = yield* newSession()
    yield* tool("never", () => Effect.die("it ran"))
    const error = { type: "error", error: "no" } as const
    assert.strictEqual(
      yield* answeredBy(id, Stream.fromIterable([...callParts("c1", "never", {}), error])),
      "ProviderFailed"
    )
    assert.deepStrictEqual(
      (yield* dataOf(id, "session.next.tool.failed")).map(({ error: stored }) => stored.message),
      ["Tool execution interrupted"]
    )
  }).pipe(Effect.provide(runtime()))
)

it.scoped("TO-8: when the stream breaks, started tools are awaited, hosted calls fail, and joiners get the error", () =>
  Effect.gen(function* () {
    const { id, model, sessions } = yield* scene()
    const slow = yield* gatedTool("slow")
    yield* web
    const parts = [hostedCall, ...callParts("c1", "slow", {})]
    const dead = yield* Deferred.make<void>()
    const dies = Effect.zipRight(Deferred.succeed(dead, undefined), Effect.fail(failure("the line went dead")))
    yield* model.answer(Stream.concat(streams(...parts), Stream.execute(dies)))
    yield* say(id, "go", { resume: false })
    const first = yield* Effect.fork(failureOf(sessions.resume(id)))
    yield* slow.begun
    const joined = yield* Effect.fork(failureOf(sessions.resume(id)))
    yield* Deferred.await(dead)
    yield* Effect.replicateEffect(Effect.yieldNow(), 50)
    assert.deepStrictEqual(yield* dataOf(id, "session.next.step.failed"), [])
    yield* slow.open
    assert.strictEqual(yield* Fiber.join(first), "ProviderFailed")
    assert.strictEqual(yield* Fiber.join(joined), "ProviderFailed")
    assert.strictEqual((yield* dataOf(id, "session.next.tool.success"))[0]?.callID, "c1")
    assert.deepStrictEqual(
      (yield* dataOf(id, "session.next.tool.failed")).map(({ callID, error }) => [callID, error.message]),
      [["h1", "no result from provider"]]
    )
    assert.include((yield* dataOf(id, "session.next.step.failed"))[0]?.error.message, "the line went dead")
    const types = (yield* eventsOf(id)).map(({ type }) => type)
    assert.isBelow(types.indexOf("session.next.tool.success"), types.indexOf("session.next.step.failed"))
  }).pipe(Effect.provide(runtime()))
)

it.scoped("TO-8: an answer that ends without its end is a failed step", () =>
  Effect.gen(function* () {
    const { id } = yield* newSession()
    assert.strictEqual(yield* answeredBy(id, streams(...textParts("t", "half"))), "ProviderFailed")
    assert.include((yield* dataOf(id, "session.next.step.failed"))[0]?.error.message, "broke off")
  }).pipe(Effect.provide(runtime()))
)

it.scoped("TO-8: what comes after the end of an answer, a fault or silence, changes nothing", () =>
  Effect.gen(function* () {
    const { id } = yield* newSession()
    const late = Stream.concat(says("done"), Stream.fail(failure("late")))
    assert.isUndefined(yield* answeredBy(id, late))
    assert.isUndefined(yield* answeredBy(id, Stream.concat(says("done"), Stream.never)))
    assert.deepStrictEqual(yield* dataOf(id, "session.next.step.failed"), [])
  }).pipe(Effect.provide(runtime()))
)

it.scoped("TO-9: a hosted call without a result at a clean end fails as that, and the turn does not go on", () =>
  Effect.gen(function* () {
    const { id, model } = yield* scene()
    yield* web
    assert.isUndefined(yield* answeredBy(id, streams(hostedCall, finish())))
    assert.deepStrictEqual(
      (yield* dataOf(id, "session.next.tool.failed")).map(({ error, provider }) => [error.message, provider.executed]),
      [["no result from provider", true]]
    )
    yield* model.request
    assert.strictEqual(yield* model.pending, 0)
  }).pipe(Effect.provide(runtime()))
)

it.scoped("TO-11: call side and result side of a hosted call are kept apart, and both are shown again", () =>
  Effect.gen(function* () {
    const { id, model } = yield* scene()
    yield* web
    assert.isUndefined(yield* answeredBy(id, streams(hostedCall, hostedResult, finish())))
    const [, answer] = yield* transcript(id)
    const part = answer?.type === "assistant" ? answer.content[0] : undefined
    assert.deepStrictEqual(part?.type === "tool" ? part.provider : undefined, {
      executed: true,
      metadata: { scripted: { side: "call" } },
      resultMetadata: { scripted: { side: "result" } }
    })
    yield* answerTo(id, "go on", "more")
    yield* model.request
    const { prompt } = yield* model.request
    const shown = prompt.content.flatMap((message) => (message.role === "assistant" ? message.content : []))
    assert.deepStrictEqual(
      shown.map((each) => [each.type, each.options]),
      [
        ["tool-call", { scripted: { side: "call" } }],
        ["tool-result", { scripted: { side: "result" } }]
      ]
    )
    assert.deepStrictEqual(shown[1]?.type === "tool-result" ? shown[1].result : undefined, { hits: 3 })
  }).pipe(Effect.provide(runtime()))
)

it.scoped("TO-11: a hosted call that never got its result keeps its call side", () =>
  Effect.gen(function* () {
    const { id } = yield* newSession()
    yield* web
    yield* answeredBy(id, Stream.concat(streams(hostedCall), Stream.fail(failure("gone"))))
    const [, answer] = yield* transcript(id)
    const part = answer?.type === "assistant" ? answer.content[0] : undefined
    assert.deepInclude(part?.type === "tool" ? part.provider : {}, { metadata: { scripted: { side: "call" } } })
  }).pipe(Effect.provide(runtime()))
)

it.scoped("TU-14: fragments that are open at a failure are closed once, with what they have", () =>
  Effect.gen(function* () {
    const { id } = yield* newSession()
    const parts = [
      ...textParts("t", "half an ", "answer").slice(0, 3),
      { type: "reasoning-start", id: "r" } as const,
      { type: "reasoning-delta", id: "r", delta: "because" } as const
    ]
    yield* answeredBy(id, Stream.concat(streams(...parts), Stream.fail(failure("gone"))))
    assert.deepStrictEqual((yield* dataOf(id, "session.next.text.ended")).map(Struct.get("text")), ["half an answer"])
    assert.deepStrictEqual((yield* dataOf(id, "session.next.reasoning.ended")).map(Struct.get("text")), ["because"])
    const types = (yield* eventsOf(id)).map(({ type }) => type)
    assert.isBelow(types.indexOf("session.next.reasoning.ended"), types.indexOf("session.next.step.failed"))
  }).pipe(Effect.provide(runtime()))
)

const text = textParts("t", "a")
const call = callParts("c1", "echo", {})
const [start, delta] = text
const [, inputDelta, inputEnd, called] = call
const faults = {
  "a text that is started twice": [start, start],
  "a delta before its start": [delta],
  "an end before its start": [text[2]],
  "an input that is started twice": [call[0], call[0]],
  "input before its start": [inputDelta],
  "an input that ends before its start": [inputEnd],
  "a call that changes its name": [call[0], { ...called, name: "web" }],
  "a call that is made twice": [called, called],
  "a result before its call": [hostedResult],
  "two results": [hostedCall, hostedResult, hostedResult]
}

it.scoped.each(Object.keys(faults))("TU-15: %s fails the step and the run, typed, with its fragments closed", (name) =>
  Effect.gen(function* () {
    const { id, sessions } = yield* scene()
    yield* tool("echo", () => Effect.succeed("echo"))
    yield* web
    const parts = Object.entries(faults).find(([key]) => key === name)?.[1] ?? []
    const script = Stream.fromIterable([...parts, finish()].filter((part) => part !== undefined))
    // The parts are literals of the wire format.
    assert.strictEqual(yield* answeredBy(id, script as Script), "ProviderFailed")
    assert.include((yield* dataOf(id, "session.next.step.failed"))[0]?.error.message, "broke the order")
    const [, answer] = yield* transcript(id)
    const content = answer?.type === "assistant" ? answer.content : []
    assert.isTrue(content.every((part) => part.type === "tool" || part.text !== undefined))
    assert.isTrue(content.every((part) => part.type !== "tool" || ["completed", "error"].includes(part.state)))
    assert.deepStrictEqual(yield* sessions.active, [])
  }).pipe(Effect.provide(runtime()))
)

it.scoped("TU-15: a second result that reports an error is ignored", () =>
  Effect.gen(function* () {
    const { id } = yield* newSession()
    yield* web
    const again = { ...hostedResult, isFailure: true }
    assert.isUndefined(yield* answeredBy(id, streams(hostedCall, hostedResult, again, finish())))
    assert.strictEqual((yield* dataOf(id, "session.next.tool.success")).length, 1)
    assert.deepStrictEqual(yield* dataOf(id, "session.next.tool.failed"), [])
  }).pipe(Effect.provide(runtime()))
)

it.scoped("TU-15: a provider's result for a call that is ours to run is a fault", () =>
  Effect.gen(function* () {
    const { id } = yield* newSession()
    yield* tool("echo", () => Effect.succeed("ours"))
    const theirs = { ...hostedResult, id: "c1", name: "echo" }
    assert.strictEqual(yield* answeredBy(id, Stream.fromIterable([...call, theirs, finish()])), "ProviderFailed")
    assert.deepStrictEqual(
      (yield* dataOf(id, "session.next.tool.success")).map(({ content }) => content),
      [[{ type: "text", text: "ours" }]]
    )
  }).pipe(Effect.provide(runtime()))
)
