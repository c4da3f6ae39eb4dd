/** What sessions may spend: the limit stops before the next request, is visible, and can be raised. */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import type { SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { asksForSummary, brief, counted, exchange, long, narrow, summary } from "../compaction/support/Talks.ts"
import { dataOf, failureOf, tool } from "../runner/support/Runs.ts"
import { eventTypes, newSession, runtime, say, scene } from "../support/Harness.ts"
import { callParts, calls, says, ScriptedModel } from "../support/ScriptedModel.ts"

const price = { input: 1, output: 10, cacheRead: 0, cacheWrite: 0 }
const quiet = { agents: [brief("look")] }

/** One prompt, run: the tag of the run's failure, if it fails. */
const run = Effect.fnUntraced(function* (id: SessionID, text: string) {
  yield* say(id, text, { resume: false })
  return yield* failureOf(Effect.flatMap(Sessions, (sessions) => sessions.resume(id)))
})

it.scoped("EX-B8, EX-B1: a spent limit of tokens stops before the next request, and the session says so", () =>
  Effect.gen(function* () {
    const { id, model, sessions } = yield* scene()
    yield* sessions.setBudget(id, { tokens: 100 })
    yield* model.answer(counted("One.", 60, 39))
    assert.isUndefined(yield* run(id, "one"))
    // 99 of 100: one more request may go out, whatever it comes to.
    yield* model.answer(counted("Two.", 500, 10))
    assert.isUndefined(yield* run(id, "two"))
    assert.strictEqual(yield* run(id, "three"), "BudgetExceeded")
    assert.strictEqual(yield* model.pending, 2)
    const session = yield* sessions.get(id)
    assert.strictEqual(session.activity?.state, "failed")
    assert.strictEqual(session.activity?.error?.type, "BudgetExceeded")
    assert.strictEqual(
      session.activity?.error?.message,
      `${id} and its children spent 609 tokens of their budget of 100 tokens; raise the budget to continue`
    )
    assert.strictEqual((yield* dataOf(id, "session.next.step.started")).length, 2)
  }).pipe(Effect.provide(runtime(quiet)))
)

it.scoped("EX-B8, EX-B1: exactly the limit is spent", () =>
  Effect.gen(function* () {
    const { id, model, sessions } = yield* scene()
    yield* sessions.setBudget(id, { tokens: 100 })
    yield* model.answer(counted("One.", 60, 40))
    yield* run(id, "one")
    assert.strictEqual(yield* run(id, "two"), "BudgetExceeded")
  }).pipe(Effect.provide(runtime(quiet)))
)

it.scoped("EX-B1: a limit of cost counts dollars, in the middle of an activity too", () =>
  Effect.gen(function* () {
    const [sessions, model] = [yield* Sessions, yield* ScriptedModel]
    yield* tool("look", () => Effect.succeed("seen"))
    const { id } = yield* newSession()
    yield* sessions.setBudget(id, { cost: 0.00005 })
    yield* model.answer(calls(callParts("c", "look", {})))
    assert.strictEqual(yield* run(id, "one"), "BudgetExceeded")
    assert.strictEqual(yield* model.pending, 1)
    const { activity, cost } = yield* sessions.get(id)
    assert.closeTo(cost, 0.00006, 1e-12)
    assert.include(activity?.error?.message, "spent $0.0001 of their budget of $0.0001")
    // The call has its result: nothing of the turn is lost.
    assert.strictEqual((yield* dataOf(id, "session.next.tool.success")).length, 1)
  }).pipe(Effect.provide(runtime(quiet, { price })))
)

it.scoped("EX-B2: what children spend counts, and a child stops at its parent's limit", () =>
  Effect.gen(function* () {
    const [sessions, model] = [yield* Sessions, yield* ScriptedModel]
    const parent = yield* newSession()
    const child = yield* sessions.create({ location: parent.location, parentID: parent.id })
    const grandchild = yield* sessions.create({ location: parent.location, parentID: child.id })
    const stranger = yield* newSession()
    yield* sessions.setBudget(parent.id, { tokens: 100 })
    yield* model.answer(counted("Deep.", 90, 20))
    assert.isUndefined(yield* run(grandchild.id, "one"))
    for (const { id } of [parent, child, grandchild]) {
      assert.strictEqual(yield* run(id, "more"), "BudgetExceeded")
      assert.include((yield* sessions.get(id)).activity?.error?.message, parent.id)
    }
    yield* model.answer(says("Free."))
    assert.isUndefined(yield* run(stranger.id, "one"))
    assert.deepInclude((yield* sessions.usage(parent.id)).total.tokens, { input: 90, output: 20 })
  }).pipe(Effect.provide(runtime(quiet)))
)

it.scoped("EX-B2: a child's own limit is the child's alone", () =>
  Effect.gen(function* () {
    const [sessions, model] = [yield* Sessions, yield* ScriptedModel]
    const parent = yield* newSession()
    const child = yield* sessions.create({ location: parent.location, parentID: parent.id })
    yield* sessions.setBudget(child.id, { tokens: 10 })
    yield* model.answer(says("One."))
    yield* run(child.id, "one")
    assert.strictEqual(yield* run(child.id, "two"), "BudgetExceeded")
    yield* model.answer(says("Mine."))
    assert.isUndefined(yield* run(parent.id, "one"))
  }).pipe(Effect.provide(runtime(quiet)))
)

it.scoped("EX-B3: the host's limit holds for sessions without one, once for a family; an own one takes its place", () =>
  Effect.gen(function* () {
    const [sessions, model] = [yield* Sessions, yield* ScriptedModel]
    const parent = yield* newSession()
    const child = yield* sessions.create({ location: parent.location, parentID: parent.id })
    yield* model.answer(says("One."))
    yield* run(child.id, "one")
    assert.strictEqual(yield* run(child.id, "two"), "BudgetExceeded")
    assert.strictEqual(yield* run(parent.id, "two"), "BudgetExceeded")
    yield* sessions.setBudget(parent.id, {})
    yield* model.answer(says("No limit."))
    assert.isUndefined(yield* run(child.id, "three"))
    assert.deepStrictEqual((yield* sessions.get(parent.id)).budget, {})
  }).pipe(Effect.provide(runtime({ ...quiet, budget: { tokens: 10 } })))
)

it.scoped("EX-B4: a budget that is raised lets the session go on with what it was at", () =>
  Effect.gen(function* () {
    const { id, model, sessions } = yield* scene()
    yield* sessions.setBudget(id, { tokens: 10 })
    yield* model.answer(says("One."))
    yield* run(id, "one")
    assert.strictEqual(yield* run(id, "two"), "BudgetExceeded")
    yield* model.request
    yield* sessions.setBudget(id, { tokens: 1_000 })
    yield* model.answer(says("Two."))
    yield* sessions.resume(id)
    assert.include(JSON.stringify((yield* model.request).prompt), "two")
    const { activity } = yield* sessions.get(id)
    assert.strictEqual(activity?.state, "completed")
    assert.isUndefined(activity?.error)
    assert.strictEqual((yield* dataOf(id, "session.next.prompt.promoted")).length, 2)
  }).pipe(Effect.provide(runtime(quiet)))
)

it.scoped("EX-B4: amounts that are none are refused, with the field that is wrong", () =>
  Effect.gen(function* () {
    const { id, sessions } = yield* scene()
    for (const amounts of [{ tokens: -1 }, { tokens: 1.5 }, { cost: Number.NaN }, { cost: Infinity }]) {
      const error = yield* Effect.flip(sessions.setBudget(id, amounts))
      assert.strictEqual(error._tag, "InvalidInput")
      assert.match(error.message, /^budget/)
    }
    assert.isUndefined((yield* sessions.get(id)).budget)
  }).pipe(Effect.provide(runtime(quiet)))
)

it.scoped("EX-B8, EX-B1: a summary that spends the rest stops the request after it", () =>
  Effect.gen(function* () {
    const { id, model, sessions } = yield* scene()
    for (const name of ["one", "two", "three"]) yield* exchange(id, name)
    yield* sessions.setBudget(id, { tokens: 100 })
    yield* model.answer(counted(summary("To spend"), 90, 10))
    assert.strictEqual(yield* run(id, long("four", 300)), "BudgetExceeded")
    assert.isTrue(asksForSummary(yield* model.request))
    assert.strictEqual(yield* model.pending, 0)
    assert.include(yield* eventTypes(id), "session.next.compaction.ended")
  }).pipe(Effect.provide(narrow()))
)
