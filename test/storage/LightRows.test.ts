/** What a row of `event` holds, where ids come from, and what a person sees of it in a shell. */
import { SqlClient } from "@effect/sql"
import { assert, it } from "@effect/vitest"
import { Context, Effect, Layer, TestClock } from "effect"
import type { SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { draft } from "../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import * as SqlHook from "../../packages/log/src/log/SqlHook.ts"
import { fileLog, logAt, memoryLog, temporaryDatabase } from "../support/Database.ts"
import { begin, created, foreign, readAll, renamed, session, storeAs } from "../support/Logs.ts"

const rows = (id: SessionID) =>
  Effect.flatMap(
    SqlClient.SqlClient,
    (sql) => sql<Record<string, unknown>>`SELECT * FROM event
      WHERE session = (SELECT session FROM event_sequence WHERE session_id = ${id}) ORDER BY seq`
  )

const names = Effect.flatMap(SqlClient.SqlClient, (sql) =>
  Effect.map(
    sql<{ readonly type: number; readonly name: string }>`SELECT type, name FROM event_type`,
    (found) => new Map(found.map(({ name, type }) => [name, type]))
  )
)

it.effect(
  "ST-22: a row refers to session and type by number, carries no id, and no number of a session is reused",
  () =>
    Effect.gen(function* () {
      const [log, one, two] = [yield* EventLog, session(), session()]
      yield* begin(one, 2)
      const [first, , third] = yield* rows(one)
      const types = yield* names
      assert.deepInclude(first, { session: 1, seq: 0, type: types.get("session.created.1"), id: null })
      assert.deepInclude(third, { session: 1, seq: 2, type: types.get("session.next.renamed.1"), id: null })
      yield* log.remove(one)
      yield* begin(one)
      yield* begin(two)
      const numbers = yield* Effect.forEach([one, two], rows)
      assert.deepStrictEqual(
        numbers.map(([row]) => row?.["session"]),
        [2, 3]
      )
    }).pipe(Effect.provide(memoryLog))
)

it.effect(
  "ST-23: a refused append adds no name, a stored one adds its names once, and permission events are negative",
  () =>
    Effect.gen(function* () {
      const [log, id] = [yield* EventLog, session()]
      yield* begin(id)
      const refused = SqlHook.check(() => "no" as const)
      assert.strictEqual(yield* Effect.flip(log.append(id, [renamed("a")], { commit: refused })), "no")
      assert.deepStrictEqual([...(yield* names).keys()], ["session.created.1"])
      const revoked = draft("session.next.permission.revoked", { number: 1, permission: "bash", resource: "*" })
      // The number that the refused append gave its name now belongs to another one.
      yield* log.append(id, [
        draft("session.next.interrupt.requested", {}),
        revoked,
        renamed("a"),
        renamed("b"),
        revoked
      ])
      assert.deepStrictEqual(Object.fromEntries(yield* names), {
        "session.created.1": 1,
        "session.next.interrupt.requested.1": 2,
        "session.next.permission.revoked.1": -1,
        "session.next.renamed.1": 3
      })
      assert.deepStrictEqual(
        (yield* readAll(id)).map(({ type }) => type.slice("session.".length)),
        [
          "created",
          "next.interrupt.requested",
          "next.permission.revoked",
          "next.renamed",
          "next.renamed",
          "next.permission.revoked"
        ]
      )
    }).pipe(Effect.provide(memoryLog))
)

it.effect("ST-24: the table of events has no index but those of places, stored ids and permission events", () =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const indexes = yield* sql<{ readonly name: string; readonly partial: number; readonly columns: string }>`
      SELECT l.name, l.partial, (SELECT group_concat(name) FROM pragma_index_info(l.name)) AS columns
      FROM pragma_index_list('event') l ORDER BY l.name`
    assert.deepStrictEqual(indexes, [
      { name: "event_id", partial: 1, columns: "id" },
      { name: "event_permission", partial: 1, columns: "position" },
      { name: "sqlite_autoindex_event_1", partial: 0, columns: "session,seq" }
    ])
  }).pipe(Effect.provide(memoryLog))
)

it.scopedLive("ST-23: a process reads and writes the names that another one added after it opened the database", () =>
  Effect.gen(function* () {
    const [filename, id] = [yield* temporaryDatabase, session()]
    const [ours, theirs] = [yield* Layer.build(logAt(filename)), yield* Layer.build(logAt(filename))]
    const [here, there] = [Context.get(ours, EventLog), Context.get(theirs, EventLog)]
    yield* here.append(id, [created])
    yield* there.append(id, [renamed("a"), draft("session.next.interrupt.requested", {})])
    yield* Effect.provide(storeAs(id, 2, { type: "session.next.later.9", data: "{}" }), theirs)
    yield* here.append(id, [renamed("b")])
    yield* there.append(id, [draft("session.next.interrupt.requested", {})])
    for (const log of [here, there]) {
      const { cursor, events } = yield* log.read({ sessionID: id })
      assert.strictEqual(cursor, 4)
      assert.deepStrictEqual(
        events.map(({ seq, type }) => [seq, type]),
        [
          [0, "session.created"],
          [1, "session.next.renamed"],
          [3, "session.next.renamed"],
          [4, "session.next.interrupt.requested"]
        ]
      )
    }
  })
)

it.scoped("ST-25: an event's id is made of its time, its database and its position, and stays the same", () =>
  Effect.gen(function* () {
    const [filename, ids] = [yield* temporaryDatabase, [session(), session()]]
    const append = Effect.gen(function* () {
      yield* TestClock.setTime(1_767_323_040_123)
      const first = yield* Effect.forEach(ids, (id) => begin(id, 2))
      yield* TestClock.adjust(1)
      const sql = yield* SqlClient.SqlClient
      const [row] = yield* sql<{ readonly identity: string }>`SELECT identity FROM log_identity`
      return { events: [...first.flat(), ...(yield* begin(session(), 40))], identity: row?.identity ?? "" }
    })
    const stored = yield* Effect.provide(append, logAt(filename))
    assert.match(stored.identity, /^[0-9a-f]{8}$/)
    assert.strictEqual(stored.events[0]?.id, `evt_019b7ca9797b${stored.identity}0000000001`)
    const found = stored.events.map(({ id }) => id)
    assert.strictEqual(new Set(found).size, found.length)
    assert.deepStrictEqual([...found].sort(), found)
    const again = yield* Effect.provide(
      Effect.forEach(ids, (id) => readAll(id)),
      logAt(filename)
    )
    assert.deepStrictEqual(again.flat(), stored.events.slice(0, 6))
    const other = yield* Effect.provide(append, fileLog)
    assert.notStrictEqual(other.identity, stored.identity)
  })
)

it.scopedLive(
  "ST-26: a log that is replayed to another database keeps its ids there, and is the same after it returns",
  () =>
    Effect.gen(function* () {
      const [one, two, id] = [yield* Layer.build(memoryLog), yield* Layer.build(memoryLog), session()]
      const events = yield* Effect.provide(Effect.zipRight(begin(id, 3), foreign(id)), one)
      yield* Effect.provide(begin(session(), 3), two)
      const [here, there] = [Context.get(one, EventLog), Context.get(two, EventLog)]
      yield* there.replay(events)
      yield* there.append(id, [renamed("there")])
      const copied = yield* Effect.provide(foreign(id), two)
      assert.deepStrictEqual(copied.slice(0, 4), events)
      const stored = yield* Effect.provide(rows(id), two)
      assert.deepStrictEqual(
        stored.map((row) => row["id"]),
        [...events.map((event) => event.id), null]
      )
      yield* here.replay(copied)
      assert.deepStrictEqual(yield* Effect.provide(foreign(id), one), copied)
      yield* here.remove(id)
      yield* here.replay(copied)
      assert.deepStrictEqual(yield* Effect.provide(foreign(id), one), copied)
      for (const { id: event, seq } of copied) {
        assert.deepStrictEqual([yield* here.placeOf(id, event), yield* there.placeOf(id, event)], [seq, seq])
      }
    })
)

it.scopedLive("ST-26: an id that the place of another event gives, or that another row stores, is refused", () =>
  Effect.gen(function* () {
    const [one, two, id, other] = [yield* Layer.build(memoryLog), yield* Layer.build(memoryLog), session(), session()]
    const events = yield* Effect.provide(Effect.zipRight(begin(id, 1), foreign(id)), one)
    const [here, there] = [Context.get(one, EventLog), Context.get(two, EventLog)]
    yield* there.replay(events)
    const stolen = events.map((event) => ({ ...event, sessionID: other }))
    for (const log of [here, there]) {
      const refused = yield* Effect.flip(log.replay(stolen))
      assert.deepInclude(refused, { _tag: "ReplayRefused", reason: "event-id-taken", seq: 0 })
      assert.strictEqual(yield* log.latest(other), -1)
    }
  })
)

it.effect("ST-27: the view events shows each event's session, id, type and time as text, also of a replayed one", () =>
  Effect.gen(function* () {
    const [log, sql, id] = [yield* EventLog, yield* SqlClient.SqlClient, session()]
    yield* TestClock.setTime(1_767_323_040_007)
    yield* begin(id, 1)
    const events = yield* foreign(id)
    const shown = events.map((event, index) => ({
      session_id: id,
      seq: event.seq,
      id: event.id,
      type: event.type,
      created: "2026-01-02T03:04:00.007Z",
      data: index === 0 ? '{"location":{"directory":"/work"}}' : '{"title":"title 1"}'
    }))
    const select = sql`SELECT session_id, seq, id, type, created, data FROM events ORDER BY position`
    assert.deepStrictEqual(yield* select, shown)
    yield* log.remove(id)
    yield* log.replay(events)
    assert.deepStrictEqual(yield* select, shown)
  }).pipe(Effect.provide(memoryLog))
)
