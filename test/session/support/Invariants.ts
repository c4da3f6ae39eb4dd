/** Checks the invariants of every database, after any failure of the processes that wrote it. */
import { SqlClient } from "@effect/sql"
import { assert } from "@effect/vitest"
import { Chunk, Effect, Either, Stream } from "effect"
import { SessionID } from "../../../packages/log/src/domain/Identifiers.ts"
import type { SessionEvent } from "../../../packages/log/src/events/SessionEvents.ts"
import * as Doctor from "../../../packages/log/src/maintenance/Doctor.ts"
import * as MemoryTables from "../../../packages/log/src/projection/MemoryTables.ts"
import { project } from "../../../packages/log/src/projection/Projection.ts"
import { tableNames } from "../../../packages/log/src/projection/Tables.ts"
import { projected, readAll } from "../../support/Logs.ts"

const byKey = <Row extends object>(rows: ReadonlyArray<Row>) =>
  rows.map((row) => JSON.stringify(Object.entries(row).toSorted(([a], [b]) => (a < b ? -1 : 1)))).toSorted()

/** The calls of a log. A call runs once: its side effect may start only after its single `tool.called`. */
const callsOf = (events: ReadonlyArray<SessionEvent>) =>
  events.flatMap(({ data, type }) =>
    type === "session.next.tool.called" ? [`${data.assistantMessageID} ${data.callID}`] : []
  )

/**
 * Checks that sequences have no gap, each input is admitted once, and projections equal the fold. Returns every call that
 * may have run.
 */
export const projections = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const heads = yield* sql<{
    readonly session_id: string
    readonly seq: number
  }>`SELECT session_id, seq FROM event_sequence`
  const fold = MemoryTables.make()
  const calls: Array<string> = []
  for (const { seq, session_id } of heads) {
    const events = yield* readAll(SessionID.make(session_id))
    assert.deepStrictEqual(
      events.map((event) => event.seq),
      Array.from({ length: seq + 1 }, (_, index) => index)
    )
    for (const event of events) assert.isTrue(Either.isRight(fold.apply(project(event))))
    const admitted = events.flatMap(({ data, type }) =>
      type === "session.next.prompt.admitted" ? [data.messageID] : []
    )
    assert.strictEqual(new Set(admitted).size, admitted.length)
    calls.push(...callsOf(events))
  }
  for (const table of tableNames) {
    const [stored, folded] = [byKey(yield* projected(table, "")), byKey(fold.rows(table))]
    const only = (some: ReadonlyArray<string>, others: ReadonlyArray<string>) =>
      some.filter((row) => !others.includes(row)).join("\n")
    const difference = `${table}\nstored: ${only(stored, folded)}\nfolded: ${only(folded, stored)}`
    assert.deepStrictEqual(stored, folded, difference)
  }
  assert.strictEqual(new Set(calls).size, calls.length)
  return calls
})

/** Checks these, that each input is promoted at its message, and that the doctor finds no fault. */
export const invariants = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  assert.deepStrictEqual(Chunk.toReadonlyArray(yield* Stream.runCollect(Doctor.verify)), [])
  const calls = yield* projections
  const astray = yield* sql`SELECT i.id FROM session_input i LEFT JOIN session_message m ON m.id = i.id
    WHERE iif(i.withdrawn_seq IS NULL, i.promoted_seq, NULL) IS NOT m.seq`
  assert.deepStrictEqual(astray, [])
  return calls
})
