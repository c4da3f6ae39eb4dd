/** Gives each stored name (`<type>.<version>`) the small number that its rows hold. Spec: ST-23. */
import type * as SqlClient from "@effect/sql/SqlClient"
import type * as SqlError from "@effect/sql/SqlError"
import { Effect } from "effect"
import { execute, executeRaw } from "../storage/Database.ts"

/** Permission events are read over all sessions: a partial index holds the rows with a negative type. */
const isIndexed = (name: string): boolean => name.startsWith("session.next.permission.")

const insertType = (next: string) => `INSERT INTO event_type (type, name) VALUES (${next}, ?)`
const insertUsual = insertType("coalesce((SELECT max(type) FROM event_type WHERE type > 0), 0) + 1")
const insertIndexed = insertType("coalesce((SELECT min(type) FROM event_type WHERE type < 0), 0) - 1")

/** The number of the name. A new name is added, in the transaction of the context. */
const typeOf = (sql: SqlClient.SqlClient, name: string): Effect.Effect<number, SqlError.SqlError> =>
  Effect.flatMap(
    execute<{ readonly type: number }>(sql, "SELECT type FROM event_type WHERE name = ?", [name]),
    ([row]) =>
      row === undefined
        ? Effect.zipRight(executeRaw(sql, isIndexed(name) ? insertIndexed : insertUsual, [name]), typeOf(sql, name))
        : Effect.succeed(row.type)
  )

/** The numbers of the names. New names are added, in the transaction of the context. */
export const typesOf = (
  sql: SqlClient.SqlClient,
  names: Iterable<string>
): Effect.Effect<ReadonlyMap<string, number>, SqlError.SqlError> =>
  Effect.map(
    Effect.forEach(new Set(names), (name) => Effect.map(typeOf(sql, name), (type) => [name, type] as const)),
    (types) => new Map(types)
  )
