/**
 * Logs of released versions. Each holds every type of its time; later builds must read it, fold it to the rows that it
 * recorded, and write the schema that it had. Only a release adds files here.
 */
import { readFileSync, writeFileSync } from "node:fs"
import { SqlClient } from "@effect/sql"
import { assert, it } from "@effect/vitest"
import { Effect, Either, Layer, Option } from "effect"
import { SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import * as Registry from "../../packages/log/src/events/Registry.ts"
import type { SessionEvent } from "../../packages/log/src/events/SessionEvents.ts"
import * as EventRow from "../../packages/log/src/log/EventRow.ts"
import { insertEvents, type NewEvent, toEvent } from "../../packages/log/src/log/EventRow.ts"
import * as Rebuild from "../../packages/log/src/maintenance/Rebuild.ts"
import * as MemoryTables from "../../packages/log/src/projection/MemoryTables.ts"
import { project } from "../../packages/log/src/projection/Projection.ts"
import { tableNames } from "../../packages/log/src/projection/Tables.ts"
import { layerStore } from "../../packages/log/src/Store.ts"
import { directly } from "../../packages/log/src/storage/Transaction.ts"
import { memoryLog } from "../support/Database.ts"
import { projected, readAll } from "../support/Logs.ts"
import { readModels } from "../support/ReadModels.ts"

const goldenURL = (version: string, name: string) => new URL(`../golden/${version}/${name}`, import.meta.url)
const golden = (version: string, name: string): string => readFileSync(goldenURL(version, name), "utf8")

const rowsOf = (version: string, table: string): ReadonlyArray<Record<string, string | number | null>> =>
  golden(version, `${table}.jsonl`)
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line))

const order = {
  session: "id",
  session_input: "admitted_seq",
  session_message: "seq",
  session_part: "seq",
  session_instruction: "seq",
  session_leaf: "seq",
  session_label: "seq"
} as const
const lines = (rows: ReadonlyArray<object>): string => rows.map((row) => `${JSON.stringify(row)}\n`).join("")

const versions = ["0.1.0"]

/** Until 0.1.0 is released, a new form is recorded with DAYBOOK_GOLDEN=write. */
const assertRecorded = (version: string, name: string, text: string): void => {
  if (process.env["DAYBOOK_GOLDEN"] === "write") writeFileSync(goldenURL(version, name), text)
  assert.strictEqual(text, golden(version, name))
}

/** Fields in the order of their names. */
const sortedKeys = (value: unknown): unknown =>
  Array.isArray(value)
    ? value.map(sortedKeys)
    : typeof value === "object" && value !== null
      ? Object.fromEntries(
          Object.entries(value)
            .toSorted(([a], [b]) => (a < b ? -1 : 1))
            .map(([name, each]) => [name, sortedKeys(each)])
        )
      : value

const id = SessionID.make("ses_golden")

/** Puts the release's log into the database and rebuilds its rows. */
const rebuilt = Effect.fnUntraced(function* (version: string) {
  const sql = yield* SqlClient.SqlClient
  const rows = rowsOf(version, "event")
  yield* sql`INSERT INTO event_sequence (session, session_id, seq, incarnation) VALUES (1, ${id}, ${rows.length - 1}, 1)`
  // A released log holds names where rows hold numbers.
  const events = rows.map((row) => ({ ...row, session: 1 }) as unknown as NewEvent)
  yield* directly(sql, (statements) => insertEvents(statements, EventRow.makeEventTypes(), events))
  return yield* Rebuild.rebuild(id)
})

it("EV-D3: the golden logs together hold every stored name", () => {
  const names = new Set(versions.flatMap((version) => rowsOf(version, "event").map(({ type }) => type)))
  assert.deepStrictEqual(
    Registry.storedNames().filter((name) => !names.has(name)),
    []
  )
})

for (const version of versions) {
  it(`RP-7: the log of release ${version} folds to the rows that it recorded`, () => {
    const memory = MemoryTables.make()
    const events: Array<SessionEvent> = []
    for (const row of rowsOf(version, "event")) {
      const event = toEvent(row)
      if (Option.isSome(event)) events.push(Either.getOrThrow(event.value))
    }
    Either.getOrThrow(memory.apply(events.flatMap(project)))
    for (const table of tableNames) assertRecorded(version, `${table}.jsonl`, lines(memory.rows(table)))
  })

  it.effect(
    `RP-7: the log of release ${version}, in a database of today, is rebuilt to the rows that it recorded`,
    () =>
      Effect.gen(function* () {
        const rows = rowsOf(version, "event")
        assert.deepStrictEqual(yield* rebuilt(version), { sessions: 1, events: rows.length })
        for (const table of tableNames) {
          const stored = yield* projected(table, `ORDER BY ${order[table]}`)
          assert.strictEqual(lines(stored), golden(version, `${table}.jsonl`))
        }
        assert.strictEqual((yield* readAll(id)).length, rows.length - 1)
      }).pipe(Effect.provide(memoryLog))
  )

  it.effect(`PJ-13: messages, contexts, requests and inputs of release ${version} read as that release read them`, () =>
    Effect.gen(function* () {
      yield* rebuilt(version)
      assertRecorded(version, "shown.json", `${JSON.stringify(sortedKeys(yield* readModels(id)), null, 1)}\n`)
    }).pipe(Effect.provide(Layer.provideMerge(layerStore, memoryLog)))
  )
}

it.effect("ST-5: the migrations make the tables that release 0.1.0 has", () =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const rows = yield* sql<{ readonly sql: string }>`SELECT sql FROM sqlite_master
      WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY type DESC, name`
    const schema = rows.map((row) => `${row.sql.replaceAll(/\s+/g, " ")};\n`).join("")
    assertRecorded("0.1.0", "schema.sql", schema)
  }).pipe(Effect.provide(memoryLog))
)
