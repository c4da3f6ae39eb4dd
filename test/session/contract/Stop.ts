/** Stopping one activity by its id, and settling what a dead process left: EX-E9, EX-E10 in specs/execution.md. */
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Chunk, Context, Effect, Fiber, Option, Stream, Struct } from "effect"
import { Sessions } from "../../../packages/core/src/session/Sessions.ts"
import { SessionOwner } from "../../../packages/log/src/coordination/SessionOwner.ts"
import { ActivityID, MessageID, type SessionID } from "../../../packages/log/src/domain/Identifiers.ts"
import { draft } from "../../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../../packages/log/src/log/EventLog.ts"
import { eventTypes, newSession, type Runtimes, say, temporaryFolder, userTexts } from "../../support/Harness.ts"
import { hastily } from "../../support/HastyClock.ts"
import { holdingAt } from "../../support/Holding.ts"
import { says, ScriptedModel } from "../../support/ScriptedModel.ts"

const atWork = Effect.gen(function* () {
  return { model: yield* ScriptedModel, sessions: yield* Sessions, log: yield* EventLog }
})

/** The activity that runs now. */
const runningOf = (id: SessionID) =>
  Effect.flatMap(Sessions, (sessions) =>
    Effect.map(sessions.get(id), ({ activity }) => {
      assert.strictEqual(activity?.state, "running")
      return ActivityID.make(activity?.id ?? "")
    })
  )

/** How each activity ended, in the order of their ends. */
const outcomes = Effect.fnUntraced(function* (id: SessionID) {
  const { events } = yield* (yield* EventLog).read({ sessionID: id })
  return events.flatMap(({ data, type }) =>
    type === "session.next.activity.settled" ? [[data.activityID, data.outcome] as const] : []
  )
})

export const stopping = ({ open, runtime }: Runtimes) => {
  it.scopedLive("EX-E9: the named activity is stopped and settled, and what waits goes on in another", () =>
    Effect.gen(function* () {
      const { model, sessions } = yield* atWork
      const { id } = yield* newSession()
      const run = yield* Effect.fork(sessions.resume(id))
      yield* model.request
      const first = yield* runningOf(id)
      yield* say(id, "second", { delivery: "queue" })
      yield* sessions.interrupt(id, { activityID: first })
      assert.deepStrictEqual((yield* outcomes(id))[0], [first, "interrupted"])
      assert.strictEqual((yield* Effect.flip(Fiber.join(run)))._tag, "RunInterrupted")
      assert.deepStrictEqual(userTexts(yield* model.request), ["second"])
      const second = yield* runningOf(id)
      yield* model.answer(says("done"))
      yield* sessions.wait(id)
      assert.deepStrictEqual(yield* outcomes(id), [
        [first, "interrupted"],
        [second, "completed"]
      ])
    }).pipe(Effect.provide(runtime()))
  )

  it.scopedLive("EX-E9: an activity that has ended, is unknown, or is another session's is none to stop", () =>
    Effect.gen(function* () {
      const { model, sessions } = yield* atWork
      const [{ id }, other] = [yield* newSession(), yield* newSession()]
      yield* say(id, "first")
      yield* model.request
      const first = yield* runningOf(id)
      yield* say(id, "second", { delivery: "queue" })
      yield* model.answer(says("a"))
      yield* model.request
      const second = yield* runningOf(id)
      yield* say(other.id, "theirs")
      yield* model.request
      const theirs = yield* runningOf(other.id)
      for (const activityID of [first, theirs, ActivityID.make("act_nobody")]) {
        yield* sessions.interrupt(id, { activityID })
      }
      yield* model.answer(says("b"))
      yield* model.answer(says("c"))
      yield* sessions.wait(id)
      yield* sessions.wait(other.id)
      yield* sessions.interrupt(id, { activityID: second })
      assert.deepStrictEqual(yield* outcomes(id), [
        [first, "completed"],
        [second, "completed"]
      ])
      assert.deepStrictEqual(yield* outcomes(other.id), [[theirs, "completed"]])
    }).pipe(Effect.provide(runtime()))
  )

  it.scopedLive("EX-E12, EX-E9: an interrupt that comes while its activity settles does not reach the successor", () =>
    Effect.gen(function* () {
      // Holds the commit of the first activity's end.
      const hold = yield* holdingAt(({ type }) => type === "session.next.activity.settled")
      yield* Effect.gen(function* () {
        const { model, sessions } = yield* atWork
        const { id } = yield* newSession()
        yield* say(id, "first")
        yield* model.request
        const first = yield* runningOf(id)
        yield* say(id, "second", { delivery: "queue" })
        yield* model.answer(says("a"))
        yield* hold.reached
        const stopping = yield* Effect.fork(sessions.interrupt(id, { activityID: first }))
        yield* Effect.yieldNow()
        yield* hold.open
        yield* Fiber.join(stopping)
        assert.deepStrictEqual(userTexts(yield* model.request), ["first", "second"])
        yield* model.answer(says("b"))
        yield* sessions.wait(id)
        assert.deepStrictEqual(
          (yield* outcomes(id)).map(([, outcome]) => outcome),
          ["completed", "completed"]
        )
        assert.strictEqual((yield* eventTypes(id)).filter((type) => type === "session.next.activity.started").length, 2)
      }).pipe(
        Effect.provide(runtime({ filename: join(yield* temporaryFolder, "daybook.db"), projectors: [hold.projector] }))
      )
    })
  )

  it.scopedLive("EX-E9: an owner in another process is asked to stop that activity, and goes on with what waits", () =>
    Effect.gen(function* () {
      const filename = join(yield* temporaryFolder, "daybook.db")
      const [one, two] = [yield* open({ filename }), yield* open({ filename })]
      const here = yield* Effect.provide(atWork, one)
      const { id } = yield* Effect.provide(newSession(), one)
      yield* Effect.provide(say(id, "first"), one)
      yield* here.model.request
      const first = yield* Effect.provide(runningOf(id), one)
      yield* Effect.provide(say(id, "second", { delivery: "queue" }), one)
      const there = yield* Effect.provide(atWork, two)
      yield* there.sessions.interrupt(id, { activityID: first })
      assert.deepStrictEqual(yield* Effect.provide(outcomes(id), two), [[first, "interrupted"]])
      assert.deepStrictEqual(userTexts(yield* here.model.request), ["first", "second"])
      const second = yield* Effect.provide(runningOf(id), two)
      // The one that has ended is no reason to stop its successor, although the owner is asked again.
      yield* there.sessions.interrupt(id, { activityID: first })
      assert.strictEqual(yield* Effect.provide(runningOf(id), two), second)
      yield* here.model.answer(says("b"))
      yield* here.sessions.wait(id)
      assert.deepStrictEqual(yield* Effect.provide(outcomes(id), two), [
        [first, "interrupted"],
        [second, "completed"]
      ])
      assert.strictEqual(yield* there.model.pending, 0)
    }).pipe(hastily)
  )

  /** What a process leaves that dies in the middle of a tool's call. */
  const left = Effect.fnUntraced(function* (id: SessionID) {
    const log = yield* EventLog
    const assistantMessageID = MessageID.make(`msg_left_${id.slice(4)}`)
    const activityID = ActivityID.make("act_left")
    yield* log.append(id, [
      draft("session.next.activity.started", { activityID, trigger: "resume" }),
      draft("session.next.step.started", { assistantMessageID, agent: "build", model: { providerID: "p", id: "m" } }),
      draft("session.next.tool.input.started", { assistantMessageID, callID: "call", name: "bash" })
    ])
    return yield* log.latest(id)
  })

  it.scopedLive("EX-E10: what a dead process left is settled once, as interrupted, and nothing runs", () =>
    Effect.gen(function* () {
      const { log, model, sessions } = yield* atWork
      const { id } = yield* newSession()
      const waiting = yield* say(id, "waiting", { resume: false })
      const after = yield* left(id)
      const settled = yield* Effect.replicateEffect(sessions.settle(id), 3)
      assert.deepStrictEqual(settled, [true, false, false])
      const { events } = yield* log.read({ sessionID: id, after })
      assert.deepStrictEqual(
        events.map(({ data, type }) => [
          type,
          "error" in data && data.error && "type" in data.error ? data.error.type : ""
        ]),
        [
          ["session.next.tool.failed", "tool.interrupted"],
          ["session.next.step.failed", "process.ended"],
          ["session.next.activity.settled", "process.ended"]
        ]
      )
      assert.strictEqual((yield* sessions.get(id)).activity?.state, "interrupted")
      assert.deepStrictEqual(yield* sessions.inbox(id), [waiting])
      assert.deepStrictEqual(yield* sessions.active, [])
      assert.strictEqual(yield* model.pending, 0)
      assert.isFalse(yield* (yield* SessionOwner).isOwned(id))
    }).pipe(Effect.provide(runtime()))
  )

  it.scopedLive("EX-E10: of two processes that settle at once one does", () =>
    Effect.gen(function* () {
      const filename = join(yield* temporaryFolder, "daybook.db")
      const processes = [yield* open({ filename }), yield* open({ filename })]
      const [one] = processes
      if (one === undefined) return
      for (let round = 0; round < 5; round += 1) {
        const { id } = yield* Effect.provide(newSession(), one)
        const after = yield* Effect.provide(left(id), one)
        const settled = yield* Effect.forEach(processes, (process) => Context.get(process, Sessions).settle(id), {
          concurrency: "unbounded"
        })
        assert.strictEqual(settled.filter((did) => did).length, 1)
        assert.strictEqual(yield* Context.get(one, EventLog).latest(id), after + 3)
      }
    }).pipe(hastily)
  )

  it.scopedLive("EX-E10: a session that somebody alive works on is left alone, here and elsewhere", () =>
    Effect.gen(function* () {
      const filename = join(yield* temporaryFolder, "daybook.db")
      const [one, two] = [yield* open({ filename }), yield* open({ filename })]
      const here = yield* Effect.provide(atWork, one)
      const there = yield* Effect.provide(atWork, two)
      const { id } = yield* Effect.provide(newSession(), one)
      yield* Effect.provide(say(id, "first"), one)
      yield* here.model.request
      const before = yield* here.log.latest(id)
      assert.isFalse(yield* here.sessions.settle(id))
      assert.isFalse(yield* there.sessions.settle(id))
      assert.strictEqual(yield* here.log.latest(id), before)
      yield* here.model.answer(says("a"))
      yield* here.sessions.wait(id)
      const [outcome] = yield* Effect.provide(outcomes(id), one)
      assert.strictEqual(outcome?.[1], "completed")
    }).pipe(hastily)
  )

  it.scopedLive("EX-E10: with nothing to settle nothing is written", () =>
    Effect.gen(function* () {
      const { log, sessions } = yield* atWork
      const { id } = yield* newSession()
      const written = yield* Effect.fork(Stream.runCollect(Stream.take(log.feed({ after: 0 }), 2)))
      assert.isFalse(yield* sessions.settle(id))
      yield* sessions.rename(id, "after")
      const events = Chunk.toReadonlyArray(yield* Fiber.join(written))
      assert.deepStrictEqual(events.map(Struct.get("type")), ["session.created", "session.next.renamed"])
      assert.isTrue(Option.isNone(yield* (yield* SessionOwner).foreign(id)))
    }).pipe(Effect.provide(runtime()))
  )
}
