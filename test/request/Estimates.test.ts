/** What requests cost that no provider counted, and budgets of cost where nobody knows the price. */
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Duration, Effect, Stream } from "effect"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import { SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { brief, counted, full, long, narrow } from "../compaction/support/Talks.ts"
import { crash } from "../runner/support/Crash.ts"
import { dataOf, failureOf } from "../runner/support/Runs.ts"
import { newSession, runtime, say, scene, temporaryFolder } from "../support/Harness.ts"
import {
  callParts,
  failure,
  finish,
  held,
  otherRef,
  says,
  type Script,
  ScriptedModel,
  streams,
  textParts
} from "../support/ScriptedModel.ts"

const price = { input: 1, output: 10, cacheRead: 0, cacheWrite: 0 }
const quiet = { agents: [brief("look")] }
const priced = Effect.provide(runtime(quiet, { price }))

const run = Effect.fnUntraced(function* (id: SessionID, text: string) {
  yield* say(id, text, { resume: false })
  return yield* failureOf(Effect.flatMap(Sessions, (sessions) => sessions.resume(id)))
})

const spentBy = (id: SessionID) =>
  Effect.map(
    Effect.flatMap(Sessions, (sessions) => sessions.get(id)),
    ({ cost, tokens }) => ({ cost, input: tokens.input, output: tokens.output })
  )

/** Forty characters of an answer: 10 tokens. */
const begun = textParts("t", "x".repeat(40)).slice(0, 2)
const inputOf = (id: SessionID) =>
  Effect.map(dataOf(id, "session.next.step.started"), (steps) => steps.at(-1)?.inputEstimate ?? -1)

describe("EX-B5: an unfinished step is charged with an estimate", () => {
  const broke: Script = Stream.concat(streams(...begun), Stream.fail(failure("the line is dead")))
  for (const [name, script, output] of [
    ["that the provider broke off", streams(...begun), 10],
    ["whose connection was lost", broke, 10],
    ["that the provider failed", streams(...begun, { type: "error", error: { type: "api_error", message: "no" } }), 10],
    [
      "whose reasoning was cut",
      streams({ type: "reasoning-start", id: "r" }, { type: "reasoning-delta", id: "r", delta: "12345" }),
      2
    ],
    ["whose call was cut", streams(...callParts("c", "look", { much: "x".repeat(100) }).slice(0, 2)), 28],
    ["that broke the order of its stream", streams(...begun, { type: "text-start", id: "t" }), 10],
    ["whose connection was lost before a word", Stream.fail(failure("the line is dead")), 0]
  ] as ReadonlyArray<readonly [string, Script, number]>) {
    it.scoped(`EX-B5: a step ${name} counts its request and its output so far`, () =>
      Effect.gen(function* () {
        const { id, model, sessions } = yield* scene()
        yield* model.answer(script)
        assert.strictEqual(yield* run(id, long("one", 200)), "ProviderFailed")
        const input = yield* inputOf(id)
        assert.isAbove(input, 200)
        const spent = yield* spentBy(id)
        assert.deepInclude(spent, { input, output })
        assert.closeTo(spent.cost, (input + output * 10) / 1_000_000, 1e-12)
        const [failed] = yield* dataOf(id, "session.next.step.failed")
        assert.deepInclude(failed, { estimated: true })
        const { estimated } = yield* sessions.usage(id)
        assert.deepStrictEqual(estimated.tokens, input + output)
        const shown = (yield* sessions.messages({ sessionID: id })).items.at(-1)
        assert.deepInclude(shown, { estimated: true })
        yield* sessions.setBudget(id, { tokens: input + output })
        assert.strictEqual(yield* run(id, "two"), "BudgetExceeded")
      }).pipe(priced)
    )
  }

  it.scoped("EX-B5: so is one that is interrupted, and a child's counts for its parent", () =>
    Effect.gen(function* () {
      const [sessions, model] = [yield* Sessions, yield* ScriptedModel]
      const parent = yield* newSession()
      const child = yield* sessions.create({ location: parent.location, parentID: parent.id })
      const seen = yield* Deferred.make<void>()
      const silent = Stream.concat(held(begun, yield* Deferred.make<void>()), Stream.never)
      yield* model.answer(
        Stream.tap(silent, ({ type }) => (type === "text-delta" ? Deferred.succeed(seen, undefined) : Effect.void))
      )
      yield* say(child.id, "go")
      yield* Deferred.await(seen)
      yield* sessions.interrupt(child.id)
      const { input, output } = yield* spentBy(child.id)
      assert.strictEqual(input, yield* inputOf(child.id))
      assert.isAbove(input, 0)
      assert.include([0, 10], output)
      yield* sessions.setBudget(parent.id, { tokens: input })
      assert.strictEqual(yield* run(parent.id, "more"), "BudgetExceeded")
    }).pipe(priced)
  )

  it.scopedLive("EX-B5: so is one whose process died: what it used is read from the log", () =>
    Effect.gen(function* () {
      const id = SessionID.make("ses_died")
      const folder = yield* temporaryFolder
      const filename = join(folder, "daybook.db")
      yield* crash(folder, filename, id)
      yield* Effect.gen(function* () {
        const model = yield* ScriptedModel
        yield* model.answer(says("So far."))
        assert.isUndefined(yield* run(id, "go on"))
        const [started] = yield* dataOf(id, "session.next.step.started")
        const [failed] = yield* dataOf(id, "session.next.step.failed")
        assert.strictEqual(failed?.tokens?.input, started?.inputEstimate)
        assert.isAbove(failed?.tokens?.output ?? 0, 0)
        assert.isTrue(failed?.estimated)
      }).pipe(Effect.provide(runtime({ filename })))
    })
  )
})

it.scoped("EX-B5: what the provider counted takes the place of the estimate", () =>
  Effect.gen(function* () {
    const { id, model, sessions } = yield* scene()
    yield* model.answer(counted("One.", 60, 39))
    assert.isUndefined(yield* run(id, "one"))
    assert.deepInclude(yield* spentBy(id), { input: 60, output: 39 })
    assert.deepStrictEqual((yield* sessions.usage(id)).estimated, { cost: 0, tokens: 0 })
    assert.notProperty((yield* dataOf(id, "session.next.step.ended"))[0], "estimated")
  }).pipe(priced)
)

it.scoped("EX-B5: a finished step that the provider did not count is estimated as well", () =>
  Effect.gen(function* () {
    const { id, model } = yield* scene()
    const usage = { inputTokens: undefined, outputTokens: undefined, totalTokens: undefined }
    yield* model.answer(Stream.fromIterable([...textParts("t", "x".repeat(40)), { ...finish(), usage }]))
    assert.isUndefined(yield* run(id, "one"))
    assert.deepInclude(yield* spentBy(id), { input: yield* inputOf(id), output: 10 })
    assert.isTrue((yield* dataOf(id, "session.next.step.ended"))[0]?.estimated)
  }).pipe(priced)
)

const failed = (error: unknown): Script => streams({ type: "error", error })
for (const [name, script] of [
  ["refused", failed({ statusCode: 401, message: "no key" })],
  ["too long", failed({ type: "invalid_request_error", message: "prompt is too long" })],
  ["turned away by a busy provider", failed({ type: "overloaded_error", message: "busy" })],
  ["sent to nobody", Stream.fail(Object.assign(failure("no"), { cause: { code: "ECONNREFUSED" } }))]
] as const) {
  it.scoped(`EX-B9, EX-B5: a request that was ${name} costs nothing`, () =>
    Effect.gen(function* () {
      const { id, model } = yield* scene()
      yield* model.answer(script)
      assert.strictEqual(yield* run(id, "one"), "ProviderFailed")
      assert.deepStrictEqual(yield* spentBy(id), { cost: 0, input: 0, output: 0 })
    }).pipe(priced)
  )
}

it.scoped("EX-B9, EX-B5: an attempt that came to nothing and is made again is charged, and a refused one is not", () =>
  Effect.gen(function* () {
    const { id, model } = yield* scene()
    yield* model.answer(Stream.fail(Object.assign(failure("no"), { cause: { code: "ECONNRESET" } })))
    yield* model.answer(failed({ type: "overloaded_error", message: "busy" }))
    yield* model.answer(counted("At last.", 60, 39))
    assert.isUndefined(yield* run(id, "one"))
    const retried = yield* dataOf(id, "session.next.retried")
    const input = yield* inputOf(id)
    assert.deepStrictEqual(
      retried.map(({ tokens }) => tokens?.input),
      [input, undefined]
    )
    assert.deepInclude(yield* spentBy(id), { input: 60 + input, output: 39 })
  }).pipe(
    Effect.provide(
      runtime(quiet, { price, policy: { retry: { times: 2, baseDelay: Duration.zero, maxDelay: Duration.zero } } })
    )
  )
)

it.scoped("EX-B5: a summary that breaks off is charged with an estimate", () =>
  Effect.gen(function* () {
    const model = yield* ScriptedModel
    const id = yield* full
    const before = yield* spentBy(id)
    yield* model.answer(Stream.concat(streams(...begun), Stream.fail(failure("the line is dead"))))
    yield* model.answer(counted("Done.", 100, 10))
    assert.isUndefined(yield* run(id, long("four", 300)))
    const [failed] = yield* dataOf(id, "session.next.compaction.failed")
    assert.isTrue(failed?.estimated)
    assert.isAbove(failed?.tokens?.input ?? 0, 500)
    const after = yield* spentBy(id)
    assert.strictEqual(after.input, before.input + 100 + (failed?.tokens?.input ?? 0))
    assert.strictEqual(after.output, before.output + 10 + 10)
  }).pipe(Effect.provide(narrow({}, { price })))
)

describe("EX-B6: a budget of cost where the price is not known", () => {
  it.scoped("EX-B6: it is refused when it is set, with what to do, and nothing is stored", () =>
    Effect.gen(function* () {
      const { id, sessions } = yield* scene()
      for (const budget of [{ cost: 1 }, { cost: 0, tokens: 100 }]) {
        const error = yield* Effect.flip(sessions.setBudget(id, budget))
        assert.strictEqual(error._tag, "PriceUnknown")
        assert.match(error.message, /scripted\/one is not known.*budget in tokens.*"prices"/)
      }
      assert.deepStrictEqual(yield* dataOf(id, "session.next.budget.set"), [])
      yield* sessions.setBudget(id, { tokens: 100 })
      yield* sessions.setBudget(id, {})
    }).pipe(Effect.provide(runtime(quiet)))
  )

  it.scoped("EX-B6: the host's is refused before the first request, of children too", () =>
    Effect.gen(function* () {
      const [sessions, model] = [yield* Sessions, yield* ScriptedModel]
      const parent = yield* newSession()
      const child = yield* sessions.create({ location: parent.location, parentID: parent.id })
      for (const { id } of [parent, child]) {
        assert.strictEqual(yield* run(id, "one"), "PriceUnknown")
        assert.strictEqual((yield* sessions.get(id)).activity?.error?.type, "PriceUnknown")
        assert.deepStrictEqual(yield* dataOf(id, "session.next.step.started"), [])
      }
      assert.strictEqual(yield* model.pending, 0)
    }).pipe(Effect.provide(runtime({ ...quiet, budget: { cost: 1 } })))
  )

  it.scoped("EX-B6: it is refused after a switch to a model without a price, and named prices come first", () =>
    Effect.gen(function* () {
      const { id, model, sessions } = yield* scene()
      yield* sessions.setBudget(id, { cost: 1 })
      yield* model.answer(counted("One.", 1_000_000, 0))
      assert.isUndefined(yield* run(id, "one"))
      assert.closeTo((yield* sessions.get(id)).cost, 0.5, 1e-4)
      yield* sessions.switchModel(id, otherRef)
      assert.strictEqual(yield* run(id, "two"), "PriceUnknown")
    }).pipe(
      Effect.provide(
        runtime({ ...quiet, prices: { "scripted/one": { input: 0.5, output: 0, cacheRead: 0, cacheWrite: 0 } } })
      )
    )
  )

  it.scoped("EX-B6: a price of 0 is one", () =>
    Effect.gen(function* () {
      const { id, model, sessions } = yield* scene()
      yield* sessions.setBudget(id, { cost: 1 })
      yield* model.answer(says("Free."))
      assert.isUndefined(yield* run(id, "one"))
    }).pipe(Effect.provide(runtime(quiet, { price: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 } })))
  )
})
