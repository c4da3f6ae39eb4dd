/** Replay and following: the laws of tails, on every store. Order is held by queues and gates, never by time. */
import { SqlClient } from "@effect/sql"
import { assert, it } from "@effect/vitest"
import { Chunk, Clock, Context, Effect, Exit, Fiber, Layer, Scope, Stream, Struct, TestClock } from "effect"
import { MessageID } from "../../packages/log/src/domain/Identifiers.ts"
import { draft } from "../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import { OutsideClock } from "../../packages/log/src/log/SqlEventLog.ts"
import * as Tails from "../../packages/log/src/log/Tails.ts"
import { following, settled, take, takeSeqs } from "../contracts/TailContract.ts"
import { memoryLog, stores } from "../support/Database.ts"
import { begin, readAll, renamed, session } from "../support/Logs.ts"

/** What a tail at this place receives without waiting; undefined if it must read the database. */
const recentAt = (tail: Tails.Tail, after: number, incarnation: number) =>
  Effect.suspend(() => {
    const neverLooked = -1
    tail.moved(after, incarnation, neverLooked)
    return tail.next
  })

it.scoped("LG-12: the database is asked for commits of other processes only while a tail is open", () =>
  Effect.gen(function* () {
    const clock = yield* Effect.clock
    const built = yield* Effect.provideService(Layer.build(memoryLog), OutsideClock, clock)
    const log = Context.get(built, EventLog)
    /** Whether something wakes within the time between two looks. */
    const looks = Effect.gen(function* () {
      yield* settled
      const now = yield* Clock.currentTimeMillis
      return Chunk.some(yield* TestClock.sleeps(), (at) => at <= now + 50)
    })
    const id = session()
    yield* Effect.provideService(begin(id), EventLog, log)
    const tailing = yield* Scope.make()
    assert.isFalse(yield* looks)
    yield* Stream.toQueue(log.tail({ sessionID: id })).pipe(Scope.extend(tailing))
    assert.isTrue(yield* looks)
    yield* Scope.close(tailing, Exit.void)
    yield* TestClock.adjust("50 millis")
    assert.isFalse(yield* looks)
  })
)

for (const [store, layer] of Object.entries(stores)) {
  it.layer(layer)(`tails, ${store}`, (it) => {
    it("TL-2: a session keeps state only while it has tails", () => {
      const tails = Tails.make()
      const open = [tails.follow("ses_a"), tails.follow(undefined)]
      tails.follow("ses_a").close()
      assert.deepStrictEqual(tails.followed(), ["ses_a", "*"])
      for (const tail of open) tail.close()
      assert.deepStrictEqual(tails.followed(), [])
    })

    it.effect("TL-3: rings before a tail looks are one ring, and a ring carries no data", () =>
      Effect.gen(function* () {
        const tails = Tails.make()
        const tail = tails.follow("ses_a")
        tails.ringAll()
        tails.ringAll()
        tails.reset("ses_a")
        assert.isUndefined(yield* tail.next)
        tail.look()
        const again = yield* Effect.fork(tail.next)
        yield* Effect.yieldNow()
        assert.isNull(again.unsafePoll())
        tails.ringAll()
        yield* Fiber.join(again)
      })
    )

    it.effect("TL-3: a ring that woke an interrupted reader wakes the tail's next reader", () =>
      Effect.gen(function* () {
        const tails = Tails.make()
        const tail = tails.follow("ses_a")
        const interrupted = yield* Effect.fork(tail.next)
        yield* Effect.yieldNow()
        yield* Fiber.interrupt(interrupted)
        tails.ringAll()
        yield* tail.next
      })
    )

    it.effect("LG-33: the kept events hold at most 1 Mi characters, and always the newest event", () =>
      Effect.gen(function* () {
        const log = yield* EventLog
        const id = session()
        yield* begin(id)
        const tails = Tails.make()
        const tail = tails.follow(id)
        yield* recentAt(tail, -1, (yield* log.head(id)).incarnation)
        const said = Effect.fnUntraced(function* (characters: number) {
          const text = "x".repeat(characters)
          const messageID = MessageID.make(`msg_${yield* log.latest(id)}`)
          const events = yield* log.append(id, [draft("session.next.synthetic", { messageID, text })])
          tails.announce([{ incarnation: (yield* log.head(id)).incarnation, events }])
          return events[0].seq
        })
        const kept = Effect.fnUntraced(function* (after: number) {
          const { incarnation } = yield* log.head(id)
          return [...((yield* recentAt(tail, after, incarnation))?.events ?? [])]
        })
        const first = yield* said(300_000)
        yield* said(300_000)
        const third = yield* said(300_000)
        assert.lengthOf(yield* kept(first - 1), 3)
        const fourth = yield* said(300_000)
        assert.deepStrictEqual(yield* kept(first - 1), [])
        assert.lengthOf(yield* kept(third), 1)
        yield* said(2_000_000)
        assert.deepStrictEqual(yield* kept(third), [])
        assert.lengthOf(yield* kept(fourth), 1)
        tail.close()
      })
    )

    it.effect("LG-33, TL-3: a ring of another process sends the tail to the rows, past what this process kept", () =>
      Effect.gen(function* () {
        const tails = Tails.make()
        const [tail, other] = [tails.follow("ses_a"), tails.follow("ses_a")]
        const [first] = yield* begin(session("a"))
        for (const one of [tail, other]) one.moved(-1, first.position)
        tails.announce([{ incarnation: first.position, events: [first] }])
        const kept = yield* recentAt(tail, -1, first.position)
        assert.deepStrictEqual([...(kept?.events ?? [])], [first])
        assert.strictEqual(yield* recentAt(other, -1, first.position), kept)
        assert.isUndefined(yield* recentAt(tail, -1, first.position + 1))
        tails.ringAll()
        assert.isUndefined(yield* recentAt(tail, -1, first.position))
      })
    )

    it.effect("LG-97: events that all tails have are not kept, and those that one lacks are", () =>
      Effect.gen(function* () {
        const tails = Tails.make()
        const id = session()
        const [tail, other] = [tails.follow(id), tails.follow(id)]
        const [first] = yield* begin(id)
        const { position: incarnation } = first
        for (const one of [tail, other]) one.moved(-1, incarnation)
        tails.announce([{ incarnation, events: [first] }])
        tail.moved(first.seq, incarnation)
        assert.deepStrictEqual([...((yield* recentAt(tail, -1, incarnation))?.events ?? [])], [first])
        other.moved(first.seq, incarnation)
        assert.isUndefined(yield* recentAt(tail, -1, incarnation))
        tails.announce([{ incarnation, events: [first] }])
        tail.moved(first.seq, incarnation)
        other.close()
        assert.isUndefined(yield* recentAt(tail, -1, incarnation))
      })
    )

    it.effect(
      "LG-8: events that an interrupted pull was given are given again, until the tail has moved past them",
      () =>
        Effect.gen(function* () {
          const tails = Tails.make()
          const id = session()
          const tail = tails.follow(id)
          const [first] = yield* begin(id)
          tail.moved(-1, first.position)
          const interrupted = yield* Effect.fork(tail.next)
          yield* Effect.yieldNow()
          tails.announce([{ incarnation: first.position, events: [first] }])
          yield* Fiber.interrupt(interrupted)
          const again = yield* tail.next
          assert.deepStrictEqual([...(again?.events ?? [])], [first])
          tail.moved(0, first.position, again?.rings)
          const later = yield* Effect.fork(tail.next)
          yield* Effect.yieldNow()
          assert.isNull(later.unsafePoll())
          yield* Fiber.interrupt(later)
        })
    )

    it.effect("TL-9: a cursor ahead of the log, or below what is kept, is a typed error on read and on tail", () =>
      Effect.gen(function* () {
        const [log, sql, id] = [yield* EventLog, yield* SqlClient.SqlClient, session()]
        yield* begin(id, 5)
        const ahead = [
          yield* Effect.flip(log.read({ sessionID: id, after: 6 })),
          yield* Effect.flip(Stream.runHead(log.tail({ sessionID: id, after: 6 })))
        ]
        for (const error of ahead) assert.deepInclude(error, { _tag: "CursorAhead", cursor: 6, latest: 5 })
        yield* sql`DELETE FROM event WHERE session = (SELECT session FROM event_sequence WHERE session_id = ${id}) AND seq <= 2`
        yield* sql`UPDATE event_sequence SET floor = 2 WHERE session_id = ${id}`
        const expired = [
          yield* Effect.flip(log.read({ sessionID: id, after: 1 })),
          yield* Effect.flip(log.read({ sessionID: id })),
          yield* Effect.flip(Stream.runHead(log.tail({ sessionID: id, after: 0 })))
        ]
        for (const error of expired) assert.deepInclude(error, { _tag: "CursorExpired", floor: 2 })
        assert.deepStrictEqual((yield* readAll(id, 2)).map(Struct.get("seq")), [3, 4, 5])
      })
    )

    it.scoped("TL-9: a tail that pruning overtakes fails with CursorExpired, it does not jump the gap", () =>
      Effect.gen(function* () {
        const [log, sql, id] = [yield* EventLog, yield* SqlClient.SqlClient, session()]
        yield* begin(id, 1100)
        const tail = yield* following({ sessionID: id }, 1)
        yield* takeSeqs(tail, 1)
        yield* sql`DELETE FROM event WHERE session = (SELECT session FROM event_sequence WHERE session_id = ${id}) AND seq <= 900`
        yield* sql`UPDATE event_sequence SET floor = 900 WHERE session_id = ${id}`
        yield* log.append(id, [renamed("later")])
        const drained = yield* Effect.exit(Effect.forever(take(tail)))
        const failure = Exit.isFailure(drained) ? String(drained.cause) : ""
        assert.include(failure, "CursorExpired")
      })
    )

    it.effect("TL-9: a hole that no pruning made is an error that names the missing row", () =>
      Effect.gen(function* () {
        const [log, sql, id] = [yield* EventLog, yield* SqlClient.SqlClient, session()]
        yield* begin(id, 5)
        yield* sql`DELETE FROM event WHERE session = (SELECT session FROM event_sequence WHERE session_id = ${id}) AND seq = 3`
        const { cursor } = yield* log.read({ sessionID: id })
        assert.strictEqual(cursor, 2)
        const failure = yield* Effect.flip(log.read({ sessionID: id, after: cursor }))
        assert.deepInclude(failure, { _tag: "EventUnreadable", sessionID: id, seq: 3 })
      })
    )
  })
}

it.scoped(
  "LG-98: each run of a pull gives the next events, an interrupted run loses none, and the tail leaves with its scope",
  () =>
    Effect.gen(function* () {
      const log = yield* EventLog
      const id = session()
      yield* begin(id)
      const scope = yield* Scope.make()
      const pull = yield* Scope.extend(log.pull({ sessionID: id }), scope)
      const nextSeqs = Effect.repeat(pull, { until: Chunk.isNonEmpty }).pipe(
        Effect.map((events) => Array.from(events, ({ seq }) => seq))
      )
      assert.deepStrictEqual(yield* nextSeqs, [0])
      const waiting = yield* Effect.fork(nextSeqs)
      yield* settled
      yield* Fiber.interrupt(waiting)
      const [stored] = yield* log.append(id, [renamed("later")])
      assert.deepStrictEqual(yield* nextSeqs, [stored.seq])
      assert.deepStrictEqual(yield* log.tailing(id), [stored.seq])
      yield* Scope.close(scope, Exit.void)
      assert.deepStrictEqual(yield* log.tailing(id), [])
    }).pipe(Effect.provide(memoryLog))
)
