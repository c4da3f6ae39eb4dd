/** What a session did: turns, calls, duration. Cost and tokens are tested with the steps. */
import { assert, it } from "@effect/vitest"
import { Effect, Stream, TestClock } from "effect"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import { ActivityID, MessageID, SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { draft } from "../../packages/log/src/events/SessionEvents.ts"
import { answerTo, runtime, say, scene } from "../support/Harness.ts"
import { callParts, calls, failure, ref, says } from "../support/ScriptedModel.ts"

it.effect(
  "PJ-16: metrics count the turns that ended, the calls, and the time of the activities, a running one included",
  () =>
    Effect.gen(function* () {
      const { id, model, sessions } = yield* scene()
      assert.deepInclude(yield* sessions.metrics(id), { turns: 0, toolCalls: 0, durationMs: 0, cost: 0 })
      yield* say(id, "What is here?")
      yield* model.request
      yield* TestClock.adjust("5 seconds")
      assert.strictEqual((yield* sessions.metrics(id)).durationMs, 5_000)
      yield* model.answer(calls(callParts("c1", "glob", { pattern: "a" }), callParts("c2", "glob", { pattern: "b" })))
      yield* model.request
      yield* TestClock.adjust("2 seconds")
      yield* model.answer(says("Nothing."))
      yield* sessions.wait(id)
      // Time between activities does not count.
      yield* TestClock.adjust("1 hour")
      const { cost, tokens } = yield* sessions.get(id)
      assert.deepStrictEqual(yield* sessions.metrics(id), { turns: 2, toolCalls: 2, durationMs: 7_000, cost, tokens })
      yield* say(id, "And now?")
      yield* model.request
      yield* TestClock.adjust("1 second")
      yield* model.answer(Stream.fail(failure("overloaded")))
      yield* Effect.exit(sessions.wait(id))
      assert.deepInclude(yield* sessions.metrics(id), { turns: 3, toolCalls: 2, durationMs: 8_000 })
    }).pipe(Effect.provide(runtime()))
)

it.effect("PJ-16: an activity whose process died ended when it last stored an event, whenever it is settled", () =>
  Effect.gen(function* () {
    const { id, log, sessions } = yield* scene()
    const assistantMessageID = MessageID.make("msg_cut")
    const step = { assistantMessageID, agent: "build", model: ref }
    yield* TestClock.adjust("1 minute")
    yield* log.append(
      id,
      [
        draft("session.next.activity.started", { activityID: ActivityID.make("act_cut"), trigger: "resume" }),
        draft("session.next.step.started", step)
      ],
      { times: [60_000, 63_000] }
    )
    yield* TestClock.adjust("1 day")
    // A prompt of the next day is not work of that activity.
    yield* say(id, "Go on.", { resume: false })
    assert.isTrue(yield* sessions.settle(id))
    assert.deepInclude(yield* sessions.metrics(id), { turns: 1, durationMs: 3_000 })
  }).pipe(Effect.provide(runtime()))
)

it.effect("PJ-16: a fork counts from the fork on", () =>
  Effect.gen(function* () {
    const { id, model, sessions } = yield* scene()
    yield* model.answer(calls(callParts("c1", "glob", { pattern: "a" })))
    yield* answerTo(id, "What is here?", "Nothing.")
    const { session } = yield* sessions.fork({ sessionID: id })
    assert.deepInclude(yield* sessions.metrics(session.id), { turns: 0, toolCalls: 0, durationMs: 0 })
    yield* model.answer(says("Still nothing."))
    yield* say(session.id, "Look again.")
    yield* sessions.wait(session.id)
    assert.deepInclude(yield* sessions.metrics(session.id), { turns: 1, toolCalls: 0 })
  }).pipe(Effect.provide(runtime()))
)

it.effect("IB-9: the metrics of a missing session are SessionNotFound", () =>
  Effect.gen(function* () {
    const missing = yield* Effect.flip((yield* Sessions).metrics(SessionID.make("ses_missing")))
    assert.strictEqual(missing._tag, "SessionNotFound")
  }).pipe(Effect.provide(runtime()))
)
