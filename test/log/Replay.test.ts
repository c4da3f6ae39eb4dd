/** Taking events over from another log, on every store. */
import { SqlClient } from "@effect/sql"
import { assert, it } from "@effect/vitest"
import { Effect, Stream, TestClock } from "effect"
import { EventID, SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { EventLog, type ForeignEvent } from "../../packages/log/src/log/EventLog.ts"
import { stores } from "../support/Database.ts"
import {
  admitted,
  begin,
  contents,
  created,
  foreign,
  message,
  readAll,
  renamed,
  session,
  storeAs
} from "../support/Logs.ts"

/** A log of four events, taken out of the store again, with its projected rows. */
const exported = Effect.fnUntraced(function* (id: SessionID) {
  const log = yield* EventLog
  yield* log.append(id, [created, renamed("a"), admitted(message(), "later", "queue"), renamed("b")])
  const before = yield* contents
  const events = yield* foreign(id)
  yield* log.remove(id)
  return { before, events }
})

const withoutPositions = (rows: Record<string, ReadonlyArray<object>>) => ({
  ...rows,
  event_sequence: (rows["event_sequence"] ?? []).map((row) => ({ ...row, incarnation: undefined })),
  event: (rows["event"] ?? []).map((row) => ({ ...row, position: undefined }))
})

const changed = (events: ReadonlyArray<ForeignEvent>, at: number, change: Partial<ForeignEvent>) =>
  events.map((event, index) => (index === at ? { ...event, ...change } : event))

for (const [store, layer] of Object.entries(stores)) {
  it.layer(layer)(`replay, ${store}`, (it) => {
    it.effect("RP-1: replaying what is there already changes nothing, whatever the order of keys", () =>
      Effect.gen(function* () {
        const [log, id] = [yield* EventLog, session()]
        const { events } = yield* exported(id)
        yield* log.replay(events)
        const before = yield* contents
        yield* log.replay(events)
        const reversed = changed(events, 2, {
          data: Object.fromEntries(Object.entries(events[2]?.data ?? {}).toReversed())
        })
        yield* log.replay(reversed.slice(1, 3))
        assert.deepStrictEqual(yield* contents, before)
      })
    )

    it.effect("RP-1: another id, type or payload at a stored place is a divergence and changes nothing", () =>
      Effect.gen(function* () {
        const [log, id] = [yield* EventLog, session()]
        const { events } = yield* exported(id)
        yield* log.replay(events.slice(0, 3))
        const before = yield* contents
        const divergences = [
          changed(events, 1, { id: EventID.make("evt_other") }),
          changed(events, 1, { type: "session.next.interrupt.requested.1", data: {} }),
          changed(events, 1, { data: { title: "another" } })
        ]
        for (const divergent of divergences) {
          const refused = yield* Effect.flip(log.replay(divergent))
          assert.deepInclude(refused, { _tag: "ReplayRefused", reason: "divergence", seq: 1 })
        }
        assert.deepStrictEqual(yield* contents, before)
      })
    )

    it.effect("RP-2: a sequence number beyond the next is a gap; a later chunk goes on where the stored one ends", () =>
      Effect.gen(function* () {
        const [log, id] = [yield* EventLog, session()]
        const { before, events } = yield* exported(id)
        yield* log.replay(events.slice(0, 2))
        const gap = yield* Effect.flip(log.replay(events.slice(3)))
        assert.deepInclude(gap, { _tag: "ReplayRefused", reason: "gap", seq: 3 })
        const hole = yield* Effect.flip(log.replay([...events.slice(2, 3), ...events.slice(1, 2)]))
        assert.deepInclude(hole, { _tag: "ReplayRefused", reason: "gap", seq: 1 })
        assert.strictEqual(yield* log.latest(id), 1)
        yield* log.replay(events.slice(2))
        assert.deepStrictEqual(withoutPositions(yield* contents), withoutPositions(before))
      })
    )

    it.effect("RP-2: events of two sessions in one replay are refused", () =>
      Effect.gen(function* () {
        const log = yield* EventLog
        const [one, two] = [session(), session()]
        const { events: first } = yield* exported(one)
        const { events: second } = yield* exported(two)
        const refused = yield* Effect.flip(log.replay([...first, ...second]))
        assert.deepInclude(refused, { _tag: "ReplayRefused", reason: "mixed-sessions", seq: 0 })
        assert.strictEqual(yield* log.latest(one), -1)
      })
    )

    it.effect("RP-3: an event id that another session holds is refused, and nothing is stored", () =>
      Effect.gen(function* () {
        const [log, id, other] = [yield* EventLog, session(), session()]
        const { events } = yield* exported(id)
        const [holder] = yield* begin(other)
        const refused = yield* Effect.flip(log.replay(changed(events, 3, { id: holder.id })))
        assert.deepInclude(refused, { _tag: "ReplayRefused", reason: "event-id-taken", seq: 3 })
        assert.strictEqual(yield* log.latest(id), -1)
      })
    )

    it.effect("RP-3: an event id used twice within one replay is refused, and nothing is stored", () =>
      Effect.gen(function* () {
        const [log, id] = [yield* EventLog, session()]
        const { events } = yield* exported(id)
        const twice = changed(events, 3, { id: events[1]?.id ?? EventID.make("evt_none") })
        const refused = yield* Effect.flip(log.replay(twice))
        assert.deepInclude(refused, { _tag: "ReplayRefused", reason: "event-id-taken", seq: 3 })
        assert.strictEqual(yield* log.latest(id), -1)
      })
    )

    it.effect("RP-3: a payload that names another session than its envelope is refused", () =>
      Effect.gen(function* () {
        const [log, id] = [yield* EventLog, session()]
        const { events } = yield* exported(id)
        const data = { title: "a", sessionID: "ses_elsewhere" }
        const refused = yield* Effect.flip(log.replay(changed(events, 1, { data })))
        assert.deepInclude(refused, { _tag: "ReplayRefused", reason: "session-mismatch", seq: 1 })
        assert.strictEqual(yield* log.latest(id), -1)
      })
    )

    it.effect("EV-5: an event without a proper session id, or without any envelope, is an InvalidDurableEvent", () =>
      Effect.gen(function* () {
        const log = yield* EventLog
        const { events } = yield* exported(session())
        const before = yield* contents
        const broken: ReadonlyArray<unknown> = [
          { ...events[0], sessionID: undefined },
          { ...events[0], sessionID: 7 },
          { ...events[0], sessionID: "ses_a/b" },
          { ...events[0], seq: -1 },
          { ...events[0], data: "text" },
          null
        ]
        for (const event of broken) {
          // What arrives from a file or a network is not what the type says.
          const refused = yield* Effect.flip(log.replay([event as ForeignEvent]))
          assert.strictEqual(refused._tag, "InvalidDurableEvent")
        }
        const payload = yield* Effect.flip(log.replay(changed(events, 1, { data: { title: 7 } })))
        assert.strictEqual(payload._tag, "InvalidDurableEvent")
        assert.deepStrictEqual(yield* contents, before)
      })
    )

    it.effect("RP-4: a type that this build does not know is refused on replay", () =>
      Effect.gen(function* () {
        const [log, id] = [yield* EventLog, session()]
        const { events } = yield* exported(id)
        const refused = yield* Effect.flip(log.replay(changed(events, 1, { type: "session.next.renamed.99" })))
        assert.deepInclude(refused, { _tag: "ReplayRefused", reason: "unknown-type", seq: 1 })
        assert.strictEqual(yield* log.latest(id), -1)
      })
    )

    it.effect("LG-32, RP-4: on reads a stored unknown type is left out, and the cursor moves past it", () =>
      Effect.gen(function* () {
        const [log, id] = [yield* EventLog, session()]
        yield* begin(id, 3)
        for (const seq of [1, 3]) yield* storeAs(id, seq, { type: "session.next.later.3", data: '{"new":1}' })
        const page = yield* log.read({ sessionID: id })
        assert.deepStrictEqual(
          page.events.map(({ seq }) => seq),
          [0, 2]
        )
        assert.deepInclude(page, { cursor: 3, hasMore: false })
        const none = yield* log.read({ sessionID: id, after: 0, limit: 1 })
        assert.deepInclude(none, { events: [], cursor: 1, hasMore: true })
        const tailed = yield* log.tailMarked({ sessionID: id }).pipe(Stream.take(3), Stream.runCollect)
        assert.deepStrictEqual(
          [...tailed].map((item) => (item.type === "replay.complete" ? item.cursor : item.type)),
          ["session.created", "session.next.renamed", 3]
        )
      })
    )

    it.effect("RP-5: replaying an admitted queued prompt rebuilds one waiting input, wakes and calls nobody", () =>
      Effect.gen(function* () {
        const [log, sql, id] = [yield* EventLog, yield* SqlClient.SqlClient, session()]
        const { before, events } = yield* exported(id)
        const heard: Array<unknown> = []
        yield* Effect.scoped(
          Effect.gen(function* () {
            yield* log.listen((batch) => Effect.sync(() => heard.push(batch)))
            yield* log.replay(events)
          })
        )
        assert.deepStrictEqual(heard, [])
        assert.deepStrictEqual(
          yield* sql`SELECT delivery, admitted_seq, promoted_seq FROM session_input WHERE session_id = ${id}`,
          [{ delivery: "queue", admitted_seq: 2, promoted_seq: null }]
        )
        assert.deepStrictEqual(withoutPositions(yield* contents), withoutPositions(before))
      })
    )

    it.effect("RP-5: tails of the session are woken by a replay only when it is asked for", () =>
      Effect.gen(function* () {
        const [log, id] = [yield* EventLog, session()]
        const { events } = yield* exported(id)
        yield* log.replay(events.slice(0, 1))
        const tail = yield* log.tailMarked({ sessionID: id, after: 0 }).pipe(Stream.toQueueOfElements())
        yield* Effect.flatten(tail.take)
        yield* log.replay(events.slice(1, 2))
        // Every other fiber has settled: the tail waits.
        yield* TestClock.adjust("1 millis")
        assert.strictEqual(yield* tail.size, 0)
        yield* log.replay(events.slice(2), { notify: true })
        const seen = yield* Effect.all([tail.take, tail.take, tail.take].map(Effect.flatten))
        assert.deepStrictEqual(
          seen.map((item) => (item.type === "replay.complete" ? -1 : item.seq)),
          [1, 2, 3]
        )
      }).pipe(Effect.scoped)
    )

    it.effect(
      "RP-6: another owner's replay is ignored, or refused when strict; an exact one claims what nobody owns",
      () =>
        Effect.gen(function* () {
          const [log, sql, id] = [yield* EventLog, yield* SqlClient.SqlClient, session()]
          const { events } = yield* exported(id)
          yield* log.replay(events.slice(0, 2))
          yield* log.replay(events.slice(0, 2), { ownerID: "one" })
          assert.deepStrictEqual(yield* sql`SELECT replay_owner FROM event_sequence WHERE session_id = ${id}`, [
            { replay_owner: "one" }
          ])
          yield* log.replay(events, { ownerID: "two" })
          yield* log.replay(events)
          assert.strictEqual(yield* log.latest(id), 1)
          const refused = yield* Effect.flip(log.replay(events, { ownerID: "two", strictOwner: true }))
          assert.deepInclude(refused, { _tag: "ReplayRefused", reason: "foreign-owner" })
          yield* log.claimReplay(id, "two")
          yield* log.replay(events, { ownerID: "two" })
          assert.strictEqual(yield* log.latest(id), 3)
        })
    )

    it.effect("RP-6: a claimed session without events is still no session", () =>
      Effect.gen(function* () {
        const [log, id] = [yield* EventLog, session()]
        yield* log.claimReplay(id, "one")
        assert.strictEqual(yield* log.latest(id), -1)
        assert.strictEqual((yield* Effect.flip(log.read({ sessionID: id })))._tag, "SessionNotFound")
        assert.strictEqual((yield* Effect.flip(Stream.runHead(log.tail({ sessionID: id }))))._tag, "SessionNotFound")
        yield* log.append(id, [created], { expectedSeq: -1 })
        assert.strictEqual((yield* readAll(id)).length, 1)
      })
    )
  })
}
