/** The coordinator's laws as a host sees them: CO-1, CO-6, PR-6, TL-6, WK-7, one process or two on one file. */
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Chunk, Effect, Exit, Fiber, Option, Scope, Stream, Struct } from "effect"
import { Sessions } from "../../../packages/core/src/session/Sessions.ts"
import { SessionID } from "../../../packages/log/src/domain/Identifiers.ts"
import { EventLog } from "../../../packages/log/src/log/EventLog.ts"
import { eventTypes, newSession, type Runtimes, say, temporaryFolder, userTexts } from "../../support/Harness.ts"
import { hastily } from "../../support/HastyClock.ts"
import { says, ScriptedModel } from "../../support/ScriptedModel.ts"

const atWork = Effect.gen(function* () {
  return { model: yield* ScriptedModel, sessions: yield* Sessions, log: yield* EventLog }
})

export const execution = ({ open, runtime }: Runtimes) => {
  it.scopedLive("CO-1: one session has one request at a time, two sessions overlap", () =>
    Effect.gen(function* () {
      const { model, sessions } = yield* atWork
      const [one, two] = [yield* newSession(), yield* newSession()]
      yield* say(one.id, "one")
      yield* model.request
      yield* say(one.id, "one again", { delivery: "queue" })
      yield* say(two.id, "two")
      // The next request is the other session's: the first has its drain.
      assert.deepStrictEqual(userTexts(yield* model.request), ["two"])
      assert.sameMembers([...(yield* sessions.active)], [one.id, two.id])
      yield* model.answer(says("a"))
      yield* model.answer(says("b"))
      yield* sessions.wait(two.id)
      yield* model.request
      yield* model.answer(says("c"))
      yield* sessions.wait(one.id)
      assert.deepStrictEqual(yield* sessions.active, [])
    }).pipe(Effect.provide(runtime()))
  )

  it.scopedLive("CO-6: an interrupt settles the turn, drops the reruns queued before it, and leaves the inbox", () =>
    Effect.gen(function* () {
      const { model, sessions } = yield* atWork
      const { id } = yield* newSession()
      yield* say(id, "first")
      yield* model.request
      const waiting = yield* say(id, "second", { delivery: "queue" })
      yield* sessions.interrupt(id)
      assert.deepStrictEqual(yield* sessions.active, [])
      assert.deepStrictEqual(yield* sessions.inbox(id), [waiting])
      assert.deepStrictEqual((yield* eventTypes(id)).slice(-2), [
        "session.next.step.failed",
        "session.next.activity.settled"
      ])
      assert.strictEqual((yield* sessions.get(id)).activity?.state, "interrupted")
      assert.strictEqual(yield* model.pending, 0)
      assert.deepStrictEqual(yield* sessions.interrupted, [])
      // What waits goes on when it is asked to.
      yield* model.answer(says("hello"))
      yield* sessions.resume(id)
      assert.deepStrictEqual(userTexts(yield* model.request), ["first", "second"])
    }).pipe(Effect.provide(runtime()))
  )

  it.scopedLive("CO-6: interrupting an idle session or none does nothing", () =>
    Effect.gen(function* () {
      const { log, sessions } = yield* atWork
      const { id } = yield* newSession()
      const waiting = yield* say(id, "hi", { resume: false })
      yield* sessions.interrupt(id)
      yield* sessions.interrupt(SessionID.make("ses_missing"))
      assert.strictEqual(yield* log.latest(id), waiting.admittedSeq)
      assert.deepStrictEqual(yield* sessions.inbox(id), [waiting])
    }).pipe(Effect.provide(runtime()))
  )

  it.scopedLive("CO-6: who waits for a run that is interrupted is told so", () =>
    Effect.gen(function* () {
      const { model, sessions } = yield* atWork
      const { id } = yield* newSession()
      const run = yield* Effect.fork(sessions.resume(id))
      yield* model.request
      yield* sessions.interrupt(id)
      assert.strictEqual((yield* Effect.flip(Fiber.join(run)))._tag, "RunInterrupted")
    }).pipe(Effect.provide(runtime()))
  )

  it.scopedLive(
    "CO-6: another process's interrupt stops the turn, settles it, and starts nothing that was queued",
    () =>
      Effect.gen(function* () {
        const filename = join(yield* temporaryFolder, "daybook.db")
        const [one, two] = [yield* open({ filename }), yield* open({ filename })]
        const id = yield* Effect.provide(
          Effect.gen(function* () {
            const { model } = yield* atWork
            const { id } = yield* newSession()
            yield* say(id, "first")
            yield* model.request
            yield* say(id, "second", { delivery: "queue" })
            return id
          }),
          one
        )
        yield* Effect.provide(
          Effect.gen(function* () {
            const { sessions } = yield* atWork
            yield* sessions.interrupt(id)
            assert.deepStrictEqual((yield* eventTypes(id)).slice(-2), [
              "session.next.step.failed",
              "session.next.activity.settled"
            ])
            assert.strictEqual((yield* sessions.inbox(id)).length, 1)
          }),
          two
        )
        yield* Effect.provide(
          Effect.gen(function* () {
            const { model, sessions } = yield* atWork
            yield* sessions.wait(id)
            assert.strictEqual(yield* model.pending, 0)
            assert.strictEqual((yield* sessions.inbox(id)).length, 1)
          }),
          one
        )
      }).pipe(hastily)
  )

  it.scopedLive("CO-1: a wake waits for another process's drain; a resume is refused with its owner", () =>
    Effect.gen(function* () {
      const filename = join(yield* temporaryFolder, "daybook.db")
      const [one, two] = [yield* open({ filename }), yield* open({ filename })]
      const id = yield* Effect.provide(
        Effect.gen(function* () {
          const { model } = yield* atWork
          const { id } = yield* newSession()
          yield* say(id, "first")
          yield* model.request
          return id
        }),
        one
      )
      const there = yield* Effect.provide(atWork, two)
      const busy = yield* Effect.flip(there.sessions.resume(id))
      assert.deepInclude(busy, { _tag: "SessionBusy", sessionID: id })
      yield* Effect.provide(say(id, "second", { delivery: "queue" }), two)
      assert.deepStrictEqual(yield* there.sessions.active, [id])
      // The first process answers both: its drain finds the second input when it looks again.
      const here = yield* Effect.provide(atWork, one)
      yield* here.model.answer(says("a"))
      yield* here.model.answer(says("b"))
      yield* there.sessions.wait(id)
      assert.deepStrictEqual(yield* there.sessions.inbox(id), [])
      const types = yield* Effect.provide(eventTypes(id), two)
      assert.strictEqual(types.filter((type) => type === "session.next.step.ended").length, 2)
      assert.strictEqual(yield* there.model.pending, 0)
    }).pipe(hastily)
  )

  it.scopedLive("PR-6: a wake with promoted work only asks no model; resume asks it, with nothing waiting", () =>
    Effect.gen(function* () {
      const { model, sessions } = yield* atWork
      const { id } = yield* newSession()
      yield* model.answer(says("hello"))
      yield* say(id, "hi", { id: "msg_once" })
      yield* sessions.wait(id)
      yield* model.request
      const before = yield* eventTypes(id)
      yield* say(id, "hi", { id: "msg_once" })
      yield* sessions.wait(id)
      assert.deepStrictEqual(yield* eventTypes(id), before)
      yield* model.answer(says("again"))
      yield* sessions.resume(id)
      assert.deepStrictEqual(userTexts(yield* model.request), ["hi"])
    }).pipe(Effect.provide(runtime()))
  )

  it.scopedLive("WK-7: a queued prompt is visible as waiting, is not sent early, and is not stuck", () =>
    Effect.gen(function* () {
      const { model, sessions } = yield* atWork
      const { id } = yield* newSession()
      yield* say(id, "first")
      yield* model.request
      const queued = yield* say(id, "queued", { delivery: "queue" })
      const steer = yield* say(id, "steer")
      assert.deepStrictEqual(yield* sessions.inbox(id), [queued, steer])
      yield* model.answer(says("a"))
      // The steer joins this activity, the queued input does not.
      assert.deepStrictEqual(userTexts(yield* model.request), ["first", "steer"])
      assert.deepStrictEqual(yield* sessions.inbox(id), [queued])
      yield* model.answer(says("b"))
      assert.deepStrictEqual(userTexts(yield* model.request), ["first", "steer", "queued"])
      yield* model.answer(says("c"))
      yield* sessions.wait(id)
      assert.deepStrictEqual(yield* sessions.inbox(id), [])
    }).pipe(Effect.provide(runtime()))
  )

  it.scopedLive(
    "WK-7: an inbox beyond a thousand is listed whole",
    () =>
      Effect.gen(function* () {
        const { sessions } = yield* atWork
        const { id } = yield* newSession()
        yield* Effect.forEach(
          Array.from({ length: 1_002 }, (_, index) => `text ${index}`),
          (text) => say(id, text, { resume: false }),
          { concurrency: 64, discard: true }
        )
        const inbox = yield* sessions.inbox(id)
        assert.strictEqual(inbox.length, 1_002)
        assert.deepStrictEqual(
          inbox.map(({ admittedSeq }) => admittedSeq),
          Array.from({ length: 1_002 }, (_, index) => index + 1)
        )
      }).pipe(Effect.provide(runtime({ inboxLimit: 2_000 }))),
    120_000
  )

  it.scoped("TL-6: events of a session that is not there fail with SessionNotFound", () =>
    Effect.gen(function* () {
      const { sessions } = yield* atWork
      const sessionID = SessionID.make("ses_missing")
      const streams = [sessions.events({ sessionID }), sessions.eventsMarked({ sessionID })]
      for (const stream of streams) {
        assert.strictEqual((yield* Effect.flip(Stream.runDrain(stream)))._tag, "SessionNotFound")
      }
    }).pipe(Effect.provide(runtime()))
  )

  it.scoped("TL-6: the creation is left out, and the cursor that it has is a legal gap", () =>
    Effect.gen(function* () {
      const { sessions } = yield* atWork
      const { id } = yield* newSession()
      yield* sessions.rename(id, "a")
      yield* sessions.rename(id, "b")
      const seqs = (after?: number) =>
        sessions.events({ sessionID: id, after }).pipe(
          Stream.take(after === 1 ? 1 : 2),
          Stream.runCollect,
          Effect.map((events) => Chunk.toReadonlyArray(events).map(({ seq }) => seq))
        )
      assert.deepStrictEqual(yield* seqs(), [1, 2])
      assert.deepStrictEqual(yield* seqs(0), [1, 2])
      assert.deepStrictEqual(yield* seqs(1), [2])
      const first = yield* sessions.history({ sessionID: id, limit: 1 })
      assert.deepInclude(first, { events: [], cursor: 0, hasMore: true })
      const rest = yield* sessions.history({ sessionID: id, after: first.cursor })
      assert.deepStrictEqual(rest.events.map(Struct.get("seq")), [1, 2])
      const marked = yield* Stream.runHead(
        Stream.filter(sessions.eventsMarked({ sessionID: id }), ({ type }) => type === "replay.complete")
      )
      assert.deepStrictEqual(marked, Option.some({ type: "replay.complete", cursor: 2 }))
    }).pipe(Effect.provide(runtime()))
  )

  it.scopedLive("CO-6: closing the runtime interrupts what runs and settles it on disk", () =>
    Effect.gen(function* () {
      const filename = join(yield* temporaryFolder, "daybook.db")
      const scope = yield* Scope.make()
      const first = yield* Scope.extend(open({ filename }), scope)
      const id = yield* Effect.provide(
        Effect.gen(function* () {
          const { model } = yield* atWork
          const { id } = yield* newSession()
          yield* say(id, "hi")
          yield* model.request
          return id
        }),
        first
      )
      yield* Scope.close(scope, Exit.void)
      const second = yield* open({ filename })
      yield* Effect.provide(
        Effect.gen(function* () {
          const { sessions } = yield* atWork
          assert.strictEqual((yield* sessions.get(id)).activity?.state, "interrupted")
          assert.deepStrictEqual(yield* sessions.interrupted, [])
          assert.deepStrictEqual((yield* eventTypes(id)).slice(-2), [
            "session.next.step.failed",
            "session.next.activity.settled"
          ])
        }),
        second
      )
    })
  )
}
