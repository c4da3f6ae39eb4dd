/**
 * A byte that changed on the disk is never served. Method: one character of one column of one row is changed under the
 * log, wherever it is and whatever it is part of, and every way of reading meets it.
 */
import { readFileSync, writeFileSync } from "node:fs"
import { crc32 } from "node:zlib"
import { SqlClient } from "@effect/sql"
import { assert, it } from "@effect/vitest"
import { Effect, FastCheck as fc, Stream } from "effect"
import type { SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { draft } from "../../packages/log/src/events/SessionEvents.ts"
import { checksumOf } from "../../packages/log/src/log/EventRow.ts"
import { EventLog, EventUnreadable } from "../../packages/log/src/log/EventLog.ts"
import { forAll } from "../support/Cases.ts"
import { logAt, stores, temporaryDatabase } from "../support/Database.ts"
import { begin, created, foreign, message, renamed, session, storeAs } from "../support/Logs.ts"

/** Changes of one character or digit, as SQL expressions. Each leaves a row that SQLite takes. */
const flips: Record<string, string> = {
  "its payload": "data = replace(data, 'title', 'titla')",
  "a payload that stays JSON of its type": "data = replace(data, ':\"title', ':\"titlf')",
  "its type, to none": "type = type + 1000",
  "its type, to another one": "type = type % 2 + 1",
  "its id": "id = 'evt_Z' || position",
  "its position": "position = position + 1000000000",
  "its session": "session = session + 1000",
  "its sequence number": "seq = seq + 1000",
  "its time": "created = created + 1",
  "its checksum": "checksum = checksum + 1"
}

const flip = (id: SessionID, seq: number, assignment: string) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    Effect.gen(function* () {
      yield* sql`PRAGMA foreign_keys = OFF`
      yield* sql.unsafe(
        `UPDATE event SET ${assignment}
        WHERE session = (SELECT session FROM event_sequence WHERE session_id = ?) AND seq = ?`,
        [id, seq]
      )
      yield* sql`PRAGMA foreign_keys = ON`
    })
  )

const isUnreadable = (error: unknown, seq: number, why: string) => {
  assert.instanceOf(error, EventUnreadable, why)
  assert.strictEqual(error.seq, seq, why)
  assert.include(error.message, `event ${seq} of ses_`)
  assert.include(error.message, "daybook doctor")
}

for (const [store, layer] of Object.entries(stores)) {
  it.layer(layer)(`flipped, ${store}`, (it) => {
    for (const [what, assignment] of Object.entries(flips)) {
      it.effect(`LG-25: an event with a changed character in ${what} is given by no read and no tail`, () =>
        Effect.gen(function* () {
          const log = yield* EventLog
          for (const seq of [1, 2, 4]) {
            const id = session()
            yield* begin(id, 4)
            yield* flip(id, seq, assignment)
            isUnreadable(yield* Effect.flip(log.read({ sessionID: id, after: seq - 1 })), seq, "a page with others")
            isUnreadable(yield* Effect.flip(log.read({ sessionID: id, after: seq - 1, limit: 1 })), seq, "alone")
            assert.strictEqual((yield* log.read({ sessionID: id, limit: seq })).events.length, seq)
            const seen: Array<number> = []
            const tailed = log
              .tail({ sessionID: id, after: seq - 1 })
              .pipe(Stream.runForEach((event) => Effect.sync(() => seen.push(event.seq))))
            isUnreadable(yield* Effect.flip(tailed), seq, "a tail")
            assert.deepStrictEqual(seen, [])
          }
        })
      )

      // The feed has the row at its changed position.
      if (what === "its position") continue
      it.effect(`LG-25: an event with a changed character in ${what} ends the feed before it`, () =>
        Effect.gen(function* () {
          const [log, sql] = [yield* EventLog, yield* SqlClient.SqlClient]
          const [latest] = yield* sql<{ readonly seq: number }>`SELECT seq FROM sqlite_sequence WHERE name = 'event'`
          const after = latest?.seq ?? 0
          const id = session()
          yield* begin(id, 4)
          yield* flip(id, 2, assignment)
          const page = yield* log.readFeed({ after })
          assert.deepStrictEqual([page.position, page.hasMore], [after + 2, true])
          const error = yield* Effect.flip(log.readFeed({ after: page.position }))
          assert.deepInclude(error, { _tag: "EventUnreadable", position: after + 3 })
          const fed = yield* Effect.flip(Stream.runDrain(log.feed({ after })))
          assert.deepInclude(fed, { _tag: "EventUnreadable", position: after + 3 })
        })
      )
    }

    for (const [what, assignment] of Object.entries({ ...flips, "the row, which is gone": "" })) {
      it.effect(`LG-28: pages and tails give every event before one that has a changed character in ${what}`, () =>
        Effect.gen(function* () {
          const [log, sql, id] = [yield* EventLog, yield* SqlClient.SqlClient, session()]
          yield* begin(id, 9)
          yield* assignment === ""
            ? sql`DELETE FROM event WHERE session = (SELECT session FROM event_sequence WHERE session_id = ${id}) AND seq = 5`
            : flip(id, 5, assignment)
          const page = yield* log.read({ sessionID: id })
          assert.deepStrictEqual([page.events.length, page.cursor, page.hasMore], [5, 4, true])
          assert.deepStrictEqual((yield* log.read({ sessionID: id, after: 1, limit: 2 })).cursor, 3)
          isUnreadable(yield* Effect.flip(log.read({ sessionID: id, after: page.cursor })), 5, "the next page")
          const seen: Array<number> = []
          const tailed = Stream.runForEach(log.tail({ sessionID: id }), ({ seq }) => Effect.sync(() => seen.push(seq)))
          isUnreadable(yield* Effect.flip(tailed), 5, "a tail")
          assert.deepStrictEqual(seen, [0, 1, 2, 3, 4])
          // A reader who can do without it goes on behind it.
          assert.deepStrictEqual((yield* log.read({ sessionID: id, after: 5 })).cursor, 9)
        })
      )
    }

    it.effect("LG-25: a changed character in a long payload, or far behind in a log, is found as well", () =>
      Effect.gen(function* () {
        const [log, id] = [yield* EventLog, session()]
        const long = renamed("é".repeat(40_000) + "title")
        yield* log.append(id, [created, long, ...Array.from({ length: 1200 }, (_, n) => renamed(`title ${n}`))])
        for (const seq of [1, 1100]) {
          yield* flip(id, seq, flips["its payload"] ?? "")
          isUnreadable(yield* Effect.flip(Stream.runDrain(log.tail({ sessionID: id }))), seq, "a tail")
          yield* flip(id, seq, "data = replace(data, 'titla', 'title')")
        }
        assert.strictEqual(yield* Stream.runCount(Stream.take(log.tail({ sessionID: id }), 1202)), 1202)
      })
    )

    it.effect("LG-25: a row that is gone is missed at the end of a log too, and one of a later build is not", () =>
      Effect.gen(function* () {
        const [log, sql, id, later] = [yield* EventLog, yield* SqlClient.SqlClient, session(), session()]
        yield* begin(id, 4)
        yield* sql`DELETE FROM event WHERE session = (SELECT session FROM event_sequence WHERE session_id = ${id}) AND seq = 4`
        assert.deepInclude(yield* log.read({ sessionID: id }), { cursor: 3, hasMore: true })
        isUnreadable(yield* Effect.flip(log.read({ sessionID: id, after: 3 })), 4, "at the end")
        yield* begin(later, 4)
        yield* storeAs(later, 4, { type: "session.next.later.9", data: "{}" })
        assert.deepInclude(yield* log.read({ sessionID: later }), { cursor: 4, hasMore: false })
      })
    )

    it.effect("RP-1: a replay over a row that was changed is a divergence, whatever became of the payload", () =>
      Effect.gen(function* () {
        const [log, id] = [yield* EventLog, session()]
        yield* begin(id, 2)
        const events = yield* foreign(id)
        yield* flip(id, 1, "data = substr(data, 2)")
        const refused = yield* Effect.flip(log.replay(events))
        assert.deepInclude(refused, { _tag: "ReplayRefused", reason: "divergence" })
      })
    )
  })
}

it.scopedLive("LG-25: a flipped bit in the database's file is found by whatever reads the event", () =>
  Effect.gen(function* () {
    const [filename, id] = [yield* temporaryDatabase, session()]
    const text = "a sentence that stands in the file"
    const told = draft("session.next.synthetic", { messageID: message(), text })
    yield* Effect.flatMap(EventLog, (log) => log.append(id, [created, told])).pipe(Effect.provide(logAt(filename)))
    const bytes = readFileSync(filename)
    // In the event and in the projected row, which share the text.
    for (let at = bytes.indexOf(text); at >= 0; at = bytes.indexOf(text, at + 1))
      bytes[at + 2] = (bytes[at + 2] ?? 0) ^ 1
    writeFileSync(filename, bytes)
    yield* Effect.gen(function* () {
      const log = yield* EventLog
      isUnreadable(yield* Effect.flip(log.read({ sessionID: id, after: 0 })), 1, "a read")
      assert.strictEqual((yield* Effect.flip(Stream.runDrain(log.feed())))._tag, "EventUnreadable")
    }).pipe(Effect.provide(logAt(filename)))
  })
)

const text = fc.oneof(fc.string({ maxLength: 200 }), fc.fullUnicodeString({ maxLength: 120 }), fc.string16bits())
const row = fc.record({ id: text, session_id: text, type: text, seq: fc.nat(), created: fc.maxSafeNat(), data: text })

it("ST-11: the checksum of a row differs from that of the row with another value in any one column", () => {
  forAll([row, row], 120, (one, other) => {
    const whole = checksumOf(one)
    for (const column of ["id", "session_id", "type", "seq", "created", "data"] as const) {
      if (Buffer.from(String(one[column])).equals(Buffer.from(String(other[column])))) continue
      assert.notStrictEqual(checksumOf({ ...one, [column]: other[column] }), whole, column)
    }
    assert.strictEqual(checksumOf({ ...one }), whole)
  })
})

it("ST-11: the payload's part of a checksum is its CRC-32 in UTF-8, however long it is", () => {
  forAll([row, fc.fullUnicodeString(), text], 120, (one, data, more) => {
    const longer = checksumOf({ ...one, data: `${data}|${more}` })
    assert.strictEqual(longer, crc32(`|${more}`, checksumOf({ ...one, data })))
  })
})
