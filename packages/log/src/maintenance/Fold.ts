/**
 * Folds the events of one session after the other into a scratch database, page by page, with the fold and the writer that
 * appends use. `Doctor.ts` compares stored rows with the folded rows; `Rebuild.ts` replaces those that differ. Spec:
 * PJ-8, ST-12, ST-14 in specs/storage.md.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import type * as SqlError from "@effect/sql/SqlError"
import { Effect, Either, Record, type Scope } from "effect"
import type { SessionID } from "../domain/Identifiers.ts"
import type { SessionEvent } from "../events/SessionEvents.ts"
import { EventRefused } from "../log/EventLog.ts"
import { type AnyRow, join, type Joined } from "../projection/Change.ts"
import { project } from "../projection/Projection.ts"
import { columnsOf, write } from "../projection/SqlTables.ts"
import { type TableName, tableNames, tables, type Value } from "../projection/Tables.ts"
import { type DatabaseError, scratch } from "../storage/Database.ts"
import { isPostgres, placed } from "../storage/Dialect.ts"
import { directly } from "../storage/Transaction.ts"

type Sql = SqlClient.SqlClient

/** A session by its number and its id. */
export interface Named {
  readonly session: number
  readonly sessionID: SessionID
}

/** The scratch database. Its statements run outside the transaction that reads the stored rows. */
export interface Fold {
  /** Forgets the session before, and starts from the state at a floor. */
  readonly begin: (base: AnyRow | undefined) => Effect.Effect<void, SqlError.SqlError>
  /** Folds the events that follow those before. */
  readonly add: (
    named: Named,
    events: ReadonlyArray<SessionEvent>
  ) => Effect.Effect<void, SqlError.SqlError | EventRefused>
  /** The folded row of the session. */
  readonly session: (sessionID: string) => Effect.Effect<AnyRow | undefined, SqlError.SqlError>
  /** A page of folded rows. */
  readonly rows: (page: Page) => Effect.Effect<ReadonlyArray<AnyRow>, SqlError.SqlError>
}

/** Writes the row of a session, over the one that it has. */
export const writeSession = (sql: Sql, row: AnyRow) => {
  const { columns } = tables.session
  return sql.unsafe(
    placed(
      sql,
      `INSERT INTO session (${columns.join(", ")}) VALUES (${columns.map(() => "?").join(", ")}) ` +
        `ON CONFLICT (id) DO UPDATE SET ${columns.map((column) => `${column} = excluded.${column}`).join(", ")}`
    ),
    columns.map((column) => row[column] ?? null)
  )
}

/** The stored row of a session. */
export const selectSession = (sql: Sql, sessionID: string): Effect.Effect<AnyRow | undefined, SqlError.SqlError> =>
  Effect.map(
    sql.unsafe<AnyRow>(placed(sql, `SELECT ${tables.session.columns.join(", ")} FROM session WHERE id = ?`), [
      sessionID
    ]),
    ([row]) => row
  )

/** The tables of rows that events make, and the column with the event that made a row. */
export const created = {
  session_instruction: "seq",
  session_leaf: "seq",
  session_label: "seq",
  session_part: "seq",
  session_message: "seq",
  session_input: "admitted_seq"
} as const satisfies { readonly [Name in Exclude<TableName, "session">]: string }

/** A session's rows in the order of a key, so that a page reads only its own rows. */
export interface Listing {
  readonly table: keyof typeof created
  readonly where?: string
  readonly order: ReadonlyArray<string>
}

/** The listings of all tables but the inputs. */
export const otherListings: ReadonlyArray<Listing> = [
  { table: "session_message", order: ["seq"] },
  { table: "session_part", order: ["message_id", "kind", "key"] },
  { table: "session_instruction", order: ["seq"] },
  { table: "session_leaf", order: ["seq"] },
  { table: "session_label", order: ["seq"] }
]

/** Some of a session's rows that events above its floor made. */
export interface Page {
  readonly listing: Listing
  readonly session: number
  readonly floor: number
  /** The row that the page follows. */
  readonly after: AnyRow | undefined
  readonly limit: number
}

/** A page of stored rows. The plus keeps the floor from choosing an index: the order chooses it. */
export const selectRows = (sql: Sql, { after, floor, limit, listing, session }: Page) => {
  const { order, table, where = "TRUE" } = listing
  const key = order.join(", ")
  const beyond = after === undefined ? "" : `AND (${key}) > (${order.map(() => "?").join(", ")}) `
  return sql.unsafe<AnyRow>(
    placed(
      sql,
      `SELECT ${columnsOf(table).join(", ")} FROM ${table} WHERE session = ? AND ${where} AND +${created[table]} > ? ` +
        `${beyond}ORDER BY ${key} LIMIT ${limit}`
    ),
    [session, floor, ...(after === undefined ? [] : order.map((column) => after[column]))]
  )
}

/** The columns whose values differ. */
export const differing = (table: TableName, stored: AnyRow, folded: AnyRow) =>
  tables[table].columns.filter((column) => stored[column] !== folded[column])

/** A text as PostgreSQL keeps it in a column (PG-13). */
const keptText = (value: Value): Value => (typeof value === "string" ? value.replaceAll("\0", "\uFFFD") : value)

const kept = ({ inserts, updates }: Joined[TableName]): Joined[TableName] => ({
  inserts: new Map([...inserts].map(([key, row]) => [key, Record.map(row, keptText)])),
  updates: new Map(
    [...updates].map(([name, { add, key, set }]) => [
      name,
      { key: Record.map(key, keptText), set: Record.map(set, keptText), add }
    ])
  )
})

/** The changes with their texts as the database of the log keeps them. */
const asKept = (log: Sql, joined: Joined): Joined =>
  isPostgres(log)
    ? {
        session: kept(joined.session),
        session_input: kept(joined.session_input),
        session_message: kept(joined.session_message),
        session_part: kept(joined.session_part),
        session_instruction: kept(joined.session_instruction),
        session_leaf: kept(joined.session_leaf),
        session_label: kept(joined.session_label)
      }
    : joined

/** Opens a scratch database for the rows of a log. */
export const make = (log: Sql): Effect.Effect<Fold, SqlError.SqlError | DatabaseError, Scope.Scope> =>
  Effect.gen(function* () {
    const sql = yield* scratch
    const connection = yield* sql.reserve
    // Statements join the transaction of the context, even those of another client, so provide the scratch connection
    // here.
    const aside = <A, E>(effect: Effect.Effect<A, E>) =>
      Effect.provideService(effect, SqlClient.TransactionConnection, [connection, 0] as const)

    const begin: Fold["begin"] = (base) =>
      Effect.zipRight(
        Effect.forEach(tableNames, (table) => sql.unsafe(`DELETE FROM ${table}`), { discard: true }),
        base === undefined ? Effect.void : Effect.asVoid(writeSession(sql, base))
      )

    const add: Fold["add"] = Effect.fnUntraced(function* ({ session, sessionID }, events) {
      const joined = join(events.flatMap(project))
      if (Either.isLeft(joined)) return yield* new EventRefused({ sessionID, ...joined.left })
      const changes = asKept(log, joined.right)
      const { inserts, updates } = changes.session
      yield* Effect.forEach(inserts.values(), (row) => writeSession(sql, row), { discard: true })
      const rest: Joined = { ...changes, session: { inserts: new Map(), updates } }
      const refusal = yield* directly(sql, (statements) => write(statements, rest, new Map([[sessionID, session]])))
      if (refusal !== undefined) return yield* new EventRefused({ sessionID, ...refusal })
    })

    return {
      begin: (base) => aside(begin(base)),
      add: (named, events) => aside(add(named, events)),
      session: (sessionID) => aside(selectSession(sql, sessionID)),
      rows: (page) => aside(selectRows(sql, page))
    }
  })
