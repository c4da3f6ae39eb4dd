/** Taking events over from another log, on every store. */
import { SqlClient } from "@effect/sql"
import { assert, it } from "@effect/vitest"
import { Effect, Stream, Struct } from "effect"
import { SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import { stores } from "../support/Database.ts"
import { admitted, begin, contents, created, foreign, message, renamed, session, storeAs } from "../support/Logs.ts"

/** A log of four events, taken out of the store again, with its projected rows. */
const exported = Effect.fnUntraced(function* (id: SessionID) {
  const log = yield* EventLog
  yield* log.append(id, [created, renamed("a"), admitted(message(), "later", "queue"), renamed("b")])
  const before = yield* contents
  const events = yield* foreign(id)
  yield* log.remove(id)
  return { before, events }
})

const withoutPositions = (tables: Record<string, ReadonlyArray<object>>) =>
  Object.fromEntries(
    Object.entries(tables).map(([table, rows]) => [
      table,
      rows.map((row) => ({
        ...row,
        session: undefined,
        incarnation: undefined,
        position: undefined,
        // A replayed event stores the id that its old position gave it; the checksum covers the id.
        id: table === "event" ? undefined : Object(row).id
      }))
    ])
  )

for (const [store, layer] of Object.entries(stores)) {
  it.layer(layer)(`replay, ${store}`, (it) => {
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

    it.effect("LG-32, RP-4: on reads a stored unknown type is left out, and the cursor moves past it", () =>
      Effect.gen(function* () {
        const [log, id] = [yield* EventLog, session()]
        yield* begin(id, 3)
        for (const seq of [1, 3]) yield* storeAs(id, seq, { type: "session.next.later.3", data: '{"new":1}' })
        const page = yield* log.read({ sessionID: id })
        assert.deepStrictEqual(page.events.map(Struct.get("seq")), [0, 2])
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
          yield* sql`SELECT delivery, admitted_seq, promoted_seq FROM session_input WHERE session = (SELECT session FROM event_sequence WHERE session_id = ${id})`,
          [{ delivery: "queue", admitted_seq: 2, promoted_seq: null }]
        )
        assert.deepStrictEqual(withoutPositions(yield* contents), withoutPositions(before))
      })
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
  })
}
