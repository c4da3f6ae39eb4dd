/** Names of sessions: who gives them, when, what they cost, and what they never do. */
import { assert, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Scope, Stream } from "effect"
import { Naming } from "../../packages/core/src/session/Naming.ts"
import type { NamingMode } from "../../packages/core/src/session/SessionOptions.ts"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import type { SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import { newSession, open, runtime, say, scene, temporaryFolder } from "../support/Harness.ts"
import { calls, callParts, failure, held, says, ScriptedModel, textParts } from "../support/ScriptedModel.ts"

const naming = (mode: NamingMode = "model", options: Parameters<typeof runtime>[0] = {}) =>
  Effect.provide(runtime({ naming: mode, ...options }))

const price = { input: 1_000, output: 1_000, cacheRead: 0, cacheWrite: 0 }

const renames = (sessionID: SessionID) =>
  Effect.map(
    Effect.flatMap(EventLog, (log) => log.read({ sessionID })),
    ({ events }) => events.flatMap((event) => (event.type === "session.next.renamed" ? [event.data] : []))
  )

/** Runs a first turn, and waits for the name. */
const firstTurn = Effect.fnUntraced(function* (sessionID: SessionID, text = "Fix the login page, please.") {
  const [sessions, model] = [yield* Sessions, yield* ScriptedModel]
  yield* say(sessionID, text)
  yield* model.request
  yield* sessions.wait(sessionID)
})

const named = (sessionID: SessionID) => Effect.flatMap(Naming, ({ settled }) => settled(sessionID))

it.effect("NM-1: after its first turn, a session is named by its model, once", () =>
  Effect.gen(function* () {
    const { id, model, sessions } = yield* scene()
    yield* model.answer(says("I fixed it."))
    yield* model.answer(says('"Login page fix."'))
    yield* firstTurn(id)
    const asked = yield* model.request
    yield* named(id)
    assert.strictEqual(asked.tools.length, 0)
    assert.include(JSON.stringify(asked.prompt), "I fixed it.")
    assert.strictEqual((yield* sessions.get(id)).title, "Login page fix")
    yield* model.answer(says("Fine."))
    yield* firstTurn(id, "And now?")
    yield* named(id)
    assert.deepStrictEqual(
      (yield* renames(id)).map(({ by, title }) => [title, by]),
      [["Login page fix", "model"]]
    )
    assert.strictEqual(yield* model.pending, 0)
  }).pipe(naming())
)

it.effect("NM-2: a provisional title is shown until the session is named", () =>
  Effect.gen(function* () {
    const [sessions, model] = [yield* Sessions, yield* ScriptedModel]
    const { id, title } = yield* sessions.create({
      location: { directory: "/tmp" },
      title: "Fix the login page",
      provisional: true
    })
    assert.strictEqual(title, "Fix the login page")
    yield* model.answer(says("I fixed it."))
    yield* model.answer(says("Login page"))
    yield* firstTurn(id)
    yield* named(id)
    const session = yield* sessions.get(id)
    assert.strictEqual(session.title, "Login page")
    assert.isUndefined(session.provisional)
  }).pipe(naming())
)

it.effect(
  "NM-4: if the request for a title fails, or its answer is none, the beginning of the prompt is the name",
  () =>
    Effect.gen(function* () {
      const [sessions, model] = [yield* Sessions, yield* ScriptedModel]
      for (const answer of [
        Stream.fail(failure("overloaded")),
        says("I am not sure what title you would like here.")
      ]) {
        const { id } = yield* newSession()
        yield* model.answer(says("I fixed it."))
        yield* model.answer(answer)
        yield* firstTurn(id)
        yield* model.request
        yield* named(id)
        const { activity, title } = yield* sessions.get(id)
        assert.deepStrictEqual([title, activity?.state], ["Fix the login page, please.", "completed"])
        assert.strictEqual((yield* renames(id))[0]?.by, "prompt")
      }
    }).pipe(naming())
)

it.effect("NM-4: a session that has used up its budget is named by its prompt, and no model is asked", () =>
  Effect.gen(function* () {
    const { id, model, sessions } = yield* scene()
    yield* model.answer(says("I fixed it."))
    yield* firstTurn(id)
    yield* named(id)
    assert.strictEqual((yield* sessions.get(id)).title, "Fix the login page, please.")
    assert.strictEqual(yield* model.pending, 0)
  }).pipe(naming("model", { budget: { tokens: 5 } }))
)

it.effect("NM-5: a name that a person gave is never replaced, and no model is asked", () =>
  Effect.gen(function* () {
    const [sessions, model] = [yield* Sessions, yield* ScriptedModel]
    const { id } = yield* sessions.create({ location: { directory: "/tmp" }, title: "Mine" })
    yield* model.answer(says("I fixed it."))
    yield* firstTurn(id)
    yield* named(id)
    assert.strictEqual((yield* sessions.get(id)).title, "Mine")
    assert.strictEqual(yield* model.pending, 0)
  }).pipe(naming())
)

it.effect(
  "NM-5: a name that a person gives while the model is asked stays; NM-6: what the request used is counted",
  () =>
    Effect.gen(function* () {
      const { id, model, sessions } = yield* scene()
      const gate = yield* Deferred.make<void>()
      yield* model.answer(says("I fixed it."))
      yield* model.answer(held([], gate, [...textParts("t", "Login page"), { type: "finish", reason: "stop", usage }]))
      yield* firstTurn(id)
      yield* model.request
      const before = yield* sessions.get(id)
      yield* sessions.rename(id, "Mine")
      yield* Deferred.succeed(gate, undefined)
      yield* named(id)
      const after = yield* sessions.get(id)
      assert.strictEqual(after.title, "Mine")
      assert.strictEqual(after.tokens.output - before.tokens.output, 7)
      assert.isUndefined((yield* renames(id)).at(-1)?.by)
    }).pipe(naming())
)

const usage = { inputTokens: 90, outputTokens: 7, totalTokens: 97 }

it.effect("NM-6: cost and tokens of the request are in the event, and in the session's totals", () =>
  Effect.gen(function* () {
    const { id, model, sessions } = yield* scene()
    yield* model.answer(says("I fixed it."))
    yield* model.answer(
      Stream.fromIterable([...textParts("t", "Login page"), { type: "finish", reason: "stop", usage }])
    )
    yield* firstTurn(id)
    yield* named(id)
    const [renamed] = yield* renames(id)
    assert.deepInclude(renamed, { by: "model", cost: 0.097 })
    assert.deepInclude(renamed?.tokens, { input: 90, output: 7 })
    // The turn spent 10 and 5 tokens.
    const { cost, tokens } = yield* sessions.get(id)
    assert.deepStrictEqual([tokens.input, tokens.output], [100, 12])
    assert.closeTo(cost, 0.112, 1e-9)
    assert.strictEqual((yield* sessions.usage(id)).estimated.cost, 0)
  }).pipe(Effect.provide(runtime({ naming: "model" }, { price })))
)

it.scoped(
  "NM-6: an interrupted request leaves the beginning of the prompt as the name, with an estimate of its tokens",
  () =>
    Effect.gen(function* () {
      const filename = `${yield* temporaryFolder}/daybook.db`
      const first = yield* Scope.make()
      const opened = yield* Scope.extend(open({ filename, naming: "model" }), first)
      const id = yield* Effect.gen(function* () {
        const { id, model } = yield* scene()
        yield* model.answer(says("I fixed it."))
        yield* model.answer(Stream.never)
        yield* firstTurn(id)
        yield* model.request
        return id
      }).pipe(Effect.provide(opened))
      yield* Scope.close(first, Exit.void)
      yield* Effect.gen(function* () {
        assert.strictEqual((yield* (yield* Sessions).get(id)).title, "Fix the login page, please.")
        assert.deepInclude((yield* renames(id))[0], { by: "prompt", estimated: true })
      }).pipe(Effect.provide(yield* open({ filename })))
    })
)

it.effect("NM-7: no turn waits for the name: the next one runs while the model is asked", () =>
  Effect.gen(function* () {
    const { id, model, sessions } = yield* scene()
    const gate = yield* Deferred.make<void>()
    yield* model.answer(says("I fixed it."))
    yield* model.answer(held([], gate, [...textParts("t", "Login page"), { type: "finish", reason: "stop", usage }]))
    yield* firstTurn(id)
    yield* model.request
    yield* model.answer(says("Fine."))
    yield* firstTurn(id, "And now?")
    assert.strictEqual((yield* sessions.get(id)).activity?.state, "completed")
    yield* Deferred.succeed(gate, undefined)
    yield* named(id)
    assert.strictEqual((yield* sessions.get(id)).title, "Login page")
  }).pipe(naming())
)

it.effect("NM-8: with `prompt` no model is asked; with `off`, the default, a session is not named", () =>
  Effect.gen(function* () {
    for (const [mode, title] of [
      ["prompt", "Fix the login page, please."],
      ["off", undefined],
      [undefined, undefined]
    ] as const) {
      yield* Effect.gen(function* () {
        const { id, model, sessions } = yield* scene()
        yield* model.answer(says("I fixed it."))
        yield* firstTurn(id)
        yield* named(id)
        assert.strictEqual((yield* sessions.get(id)).title, title)
        assert.strictEqual(yield* model.pending, 0)
      }).pipe(Effect.provide(runtime(mode === undefined ? {} : { naming: mode })))
    }
  })
)

it.effect(
  "NM-9: after a turn that failed no model is asked, and a provisional title waits for one that completes",
  () =>
    Effect.gen(function* () {
      const [sessions, model] = [yield* Sessions, yield* ScriptedModel]
      const untitled = yield* newSession()
      const provisional = yield* sessions.create({
        location: { directory: "/tmp" },
        title: "Fix the",
        provisional: true
      })
      for (const { id } of [untitled, provisional]) {
        yield* model.answer(Stream.fail(failure("overloaded")))
        yield* firstTurn(id)
        yield* named(id)
      }
      assert.strictEqual(yield* model.pending, 0)
      assert.strictEqual((yield* sessions.get(untitled.id)).title, "Fix the login page, please.")
      assert.deepStrictEqual(yield* renames(provisional.id), [])
      yield* model.answer(says("Now it works."))
      yield* model.answer(says("Login page"))
      yield* firstTurn(provisional.id, "Again.")
      yield* named(provisional.id)
      assert.strictEqual((yield* sessions.get(provisional.id)).title, "Login page")
    }).pipe(naming())
)

it.effect("NM-1: the name comes after the whole turn, its tools included", () =>
  Effect.gen(function* () {
    const { id, model, sessions } = yield* scene()
    yield* model.answer(calls(callParts("c1", "glob", { pattern: "*.nothing" })))
    yield* say(id, "What is here?")
    yield* model.request
    yield* model.answer(says("Nothing."))
    const second = yield* model.request
    assert.isAbove(second.tools.length, 0)
    yield* model.answer(says("Empty folder"))
    yield* sessions.wait(id)
    yield* named(id)
    assert.strictEqual((yield* sessions.get(id)).title, "Empty folder")
  }).pipe(naming())
)
