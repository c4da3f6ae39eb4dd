/**
 * Verification and rebuild: a sound database has no findings, each kind of damage is found and named, and a rebuild mends
 * what the events can mend. On every database.
 */
import { SqlClient } from "@effect/sql"
import { assert, it } from "@effect/vitest"
import { Chunk, Effect, FastCheck as fc, Stream } from "effect"
import type { SessionID } from "../../../packages/log/src/domain/Identifiers.ts"
import { draft } from "../../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../../packages/log/src/log/EventLog.ts"
import * as Doctor from "../../../packages/log/src/maintenance/Doctor.ts"
import * as Rebuild from "../../../packages/log/src/maintenance/Rebuild.ts"
import { isPostgres } from "../../../packages/log/src/storage/Dialect.ts"
import type { LogLayer } from "../../support/Database.ts"
import { admitted, begin, contents, created, message, renamed, session, unique } from "../../support/Logs.ts"
import { plausibleLog } from "../../support/PlausibleLogs.ts"

const findings = Effect.map(Stream.runCollect(Doctor.verify), Chunk.toReadonlyArray)

/** A session with something in every table. */
export const full = Effect.fnUntraced(function* (id: SessionID) {
  const log = yield* EventLog
  const [input, waiting, assistantMessageID] = [message(), message(), message()]
  yield* log.append(id, [
    created,
    renamed("a title"),
    admitted(input),
    draft("session.next.prompt.promoted", { messageID: input, prompt: { text: "hello" }, timeCreated: 1 }),
    draft("session.next.step.started", { assistantMessageID, agent: "a", model: { providerID: "p", id: "m" } }),
    draft("session.next.retried", { attempt: 1, error: { message: "again", isRetryable: true } }),
    draft("session.next.text.started", { assistantMessageID, textID: "t" }),
    draft("session.next.text.ended", { assistantMessageID, textID: "t", text: "hello" }),
    admitted(waiting),
    draft("session.next.instructions.discovered", { paths: ["/a/AGENTS.md"] })
  ])
})

const damages: ReadonlyArray<readonly [name: string, statement: string, what: RegExp]> = [
  [
    "a flipped bit in a projected payload",
    "UPDATE event SET data = :changed('a title', 'a titlf')",
    /event 1 .*checksum/
  ],
  [
    "a flipped bit in a payload that no row shows",
    "UPDATE event SET data = :changed('again', 'agaio')",
    /event 5 .*checksum/
  ],
  ["a changed time", `UPDATE event SET created = created + 1 WHERE seq = 3`, /event 3 .*checksum/],
  ["a changed type", `UPDATE event SET type = 1 WHERE seq = 1`, /event 1 .*checksum/],
  ["a missing event", `DELETE FROM event WHERE seq = 5`, /events from 5 to 5 are missing/],
  ["a missing last event", `DELETE FROM event WHERE seq = 9`, /head is 9, its last event is 8/],
  ["positions out of order", `UPDATE event SET position = -position WHERE seq = 7`, /event 7 has a position before/],
  ["a changed part", `UPDATE session_part SET settled = settled + 1`, /session_part differs from event 6: settled/],
  [
    "a missing message",
    `DELETE FROM session_message WHERE type = 'user'`,
    /session_message has a row for event 4 where that of event 3 belongs/
  ],
  [
    "a row too many",
    `UPDATE session_input SET admitted_seq = 77 WHERE promoted_seq IS NULL`,
    /session_input has a row for event 77 where that of event 8 belongs/
  ],
  ["a changed session", `UPDATE session SET title = 'another'`, /session differs .*: title/],
  [
    "other instructions",
    `UPDATE session_instruction SET seq = 8`,
    /session_instruction has a row for event 8 where that of event 9 belongs/
  ],
  [
    "a promotion elsewhere",
    `UPDATE session_input SET promoted_seq = 2 WHERE promoted_seq = 3`,
    /session_input has a row for event 2 where/
  ]
]

/** Replaces a text in a payload. */
const placed = (statement: string, postgres: boolean) =>
  statement.replace(/:changed\(('[^']*'), ('[^']*')\)/, (_, from: string, to: string) =>
    postgres ? `CAST(replace(CAST(data AS text), ${from}, ${to}) AS json)` : `replace(data, ${from}, ${to})`
  )

export const verification = (layer: LogLayer) => {
  it.effect("ST-12: a sound log has no findings, and verifying writes nothing", () =>
    Effect.gen(function* () {
      const log = yield* EventLog
      for (const name of Array.from({ length: 10 }, unique)) {
        const [drafts] = fc.sample(plausibleLog(name, 80), 1)
        yield* log.append(session(), drafts ?? [created])
      }
      yield* begin(session(), 1500)
      yield* log.claimReplay(session(), "nobody")
      const before = yield* contents
      assert.deepStrictEqual(yield* findings, [])
      assert.deepStrictEqual(yield* contents, before)
    }).pipe(Effect.provide(layer))
  )

  it.effect("ST-13: a prompt that was taken back is sound; one that is a message all the same is found", () =>
    Effect.gen(function* () {
      const [log, sql, id] = [yield* EventLog, yield* SqlClient.SqlClient, session()]
      const [back, promoted] = [message(), message()]
      yield* log.append(id, [
        created,
        admitted(back),
        admitted(promoted),
        draft("session.next.prompt.withdrawn", { messageID: back }),
        draft("session.next.prompt.promoted", { messageID: promoted, prompt: { text: "hello" }, timeCreated: 1 })
      ])
      assert.deepStrictEqual(yield* findings, [])
      yield* sql`UPDATE session_input SET withdrawn_seq = 4 WHERE id = ${promoted}`
      const [found] = yield* findings
      assert.match(found?.what ?? "", /session_input differs from event 2: withdrawn_seq/)
      yield* Rebuild.rebuild(id)
      assert.deepStrictEqual(yield* findings, [])
    }).pipe(Effect.provide(layer))
  )

  for (const [name, statement, what] of damages) {
    it.effect(`ST-13: ${name} is found, and the finding names the session`, () =>
      Effect.gen(function* () {
        const [sql, sound, damaged] = [yield* SqlClient.SqlClient, session("a"), session("b")]
        yield* begin(sound, 3)
        yield* full(damaged)
        const mine = statement.includes("UPDATE session SET")
          ? `id = '${damaged}'`
          : `session = (SELECT session FROM event_sequence WHERE session_id = '${damaged}')`
        yield* sql.unsafe(
          `${placed(statement, isPostgres(sql))}${statement.includes("WHERE") ? " AND" : " WHERE"} ${mine}`
        )
        const found = yield* findings
        assert.isAbove(found.length, 0)
        assert.match(found[0]?.what ?? "", what)
        assert.deepStrictEqual([...new Set(found.map(({ sessionID }) => sessionID))], [damaged])
        assert.isTrue(found.every(({ fix, severity }) => severity === "error" && fix.length > 0))
      }).pipe(Effect.provide(layer))
    )
  }

  it.effect("ST-23: a changed name of a type is found in each session that has events of the type", () =>
    Effect.gen(function* () {
      const [sql, other, both] = [yield* SqlClient.SqlClient, session("a"), [session("b"), session("c")]]
      yield* (yield* EventLog).append(other, [created])
      for (const id of both) yield* begin(id, 3)
      yield* sql`UPDATE event_type SET name = 'session.next.renamfd.1' WHERE name = 'session.next.renamed.1'`
      const found = yield* findings
      assert.deepStrictEqual([...new Set(found.map(({ sessionID }) => sessionID))], both)
      assert.match(found[0]?.what ?? "", /event 1 .*checksum/)
    }).pipe(Effect.provide(layer))
  )

  it.effect("ST-13: what is wrong with projections alone is mended by a rebuild", () =>
    Effect.gen(function* () {
      const [sql, id] = [yield* SqlClient.SqlClient, session()]
      yield* full(id)
      const before = yield* contents
      yield* sql`DELETE FROM session_part`
      yield* sql`UPDATE session SET title = NULL`
      assert.strictEqual((yield* findings).length, 2)
      yield* Rebuild.rebuild(id)
      assert.deepStrictEqual(yield* findings, [])
      assert.deepStrictEqual(yield* contents, before)
    }).pipe(Effect.provide(layer))
  )
}
