/** Opens the bot's database and locks it: two bots on one outbox would post twice. Spec: DI-10, DI-11. */
import { mkdir } from "node:fs/promises"
import { dirname } from "node:path"
import * as Reactivity from "@effect/experimental/Reactivity"
import type * as SqlClient from "@effect/sql/SqlClient"
import { Effect, Predicate, Schedule, Schema, type Scope } from "effect"
import * as Connection from "@daybook/log/storage/Connection"
import { immediately, pragma, reasonOf } from "@daybook/log/storage/Transaction"
import { makePrivate } from "@daybook/log/storage/PrivateFile"
import { messageOf } from "@daybook/log/support/SystemError"

/** The outbox cannot be read or written. */
export class OutboxFailed extends Schema.TaggedError<OutboxFailed>("@daybook/discord/OutboxFailed")("OutboxFailed", {
  filename: Schema.String,
  details: Schema.String
}) {
  override get message() {
    return `${this.filename}: ${this.details}`
  }
}

/** "DayD" */
const applicationID = 0x44617944
const version = 1

const schema = [
  `CREATE TABLE consumer (one INTEGER PRIMARY KEY CHECK (one = 1), cursor TEXT)`,
  // A post is due if Discord does not show its body. attempt: the body of a request to create it, whose end is unknown;
  // anchor: every message that it may have made is later than this one.
  `CREATE TABLE post (id INTEGER PRIMARY KEY AUTOINCREMENT, nonce TEXT NOT NULL UNIQUE, channel TEXT NOT NULL,
    body TEXT NOT NULL, grows INTEGER NOT NULL, target TEXT, attempt TEXT, anchor TEXT, message TEXT, dropped TEXT,
    due INTEGER NOT NULL)`,
  `CREATE INDEX post_due ON post (channel, id) WHERE due = 1`,
  `CREATE INDEX post_message ON post (message) WHERE message IS NOT NULL`,
  // Permissions that are still asked, and threads that may not be open yet.
  `CREATE INDEX post_asks ON post (id) WHERE target ->> 'type' = 'permission' AND body ->> 'buttons' IS NOT NULL`,
  `CREATE INDEX post_begin ON post (id) WHERE target ->> 'type' = 'begin'`,
  `CREATE INDEX post_channel ON post (channel, id)`,
  `CREATE TABLE reaction (message TEXT PRIMARY KEY, channel TEXT NOT NULL, emoji TEXT, shown TEXT, due INTEGER NOT NULL)
    WITHOUT ROWID`,
  `CREATE INDEX reaction_due ON reaction (channel) WHERE due = 1`,
  `CREATE TABLE fold (session TEXT PRIMARY KEY, state TEXT NOT NULL) WITHOUT ROWID`,
  // A channel or thread that the bot reads: up to the message \`last\`. A thread has a parent.
  `CREATE TABLE place (channel TEXT PRIMARY KEY, parent TEXT, last TEXT, problem TEXT, closed INTEGER NOT NULL DEFAULT 0)
    WITHOUT ROWID`,
  // An edit of a message that is not finished: its former prompt is withdrawn, then the new one is admitted.
  `CREATE TABLE edit (message TEXT PRIMARY KEY, channel TEXT NOT NULL, former TEXT NOT NULL, delivery TEXT NOT NULL)
    WITHOUT ROWID`,
  `INSERT INTO consumer VALUES (1, NULL)`,
  `PRAGMA application_id = ${applicationID}`,
  `PRAGMA user_version = ${version}`
]

/** Waits at most two seconds for the lock of a bot that is ending, without blocking this process. */
const afterTheLast = Schedule.intersect(Schedule.spaced("50 millis"), Schedule.recurs(40))

const prepare = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, filename: string) {
  yield* sql`PRAGMA busy_timeout = 0`
  yield* sql`PRAGMA locking_mode = EXCLUSIVE`
  yield* sql`PRAGMA journal_mode = WAL`
  // An attempt that a power cut forgets would be repeated.
  yield* sql`PRAGMA synchronous = FULL`
  yield* sql`PRAGMA secure_delete = ON`
  const tables = yield* sql`SELECT 1 FROM sqlite_master LIMIT 1`
  if (tables.length === 0) yield* immediately(sql)(Effect.forEach(schema, (part) => sql.unsafe(part)))
  else if (
    (yield* pragma(sql, "application_id")) !== applicationID ||
    (yield* pragma(sql, "user_version")) !== version
  ) {
    return yield* new OutboxFailed({ filename, details: "it is not an outbox of this version" })
  }
  // A write takes the lock.
  yield* sql`UPDATE consumer SET one = 1`
})

const isLocked = (error: unknown): boolean => reasonOf(error) === "busy"

export const failed =
  (filename: string) =>
  (error: unknown): OutboxFailed => {
    if (error instanceof OutboxFailed) return error
    if (isLocked(error)) return new OutboxFailed({ filename, details: "another bot uses this outbox" })
    const cause = Predicate.hasProperty(error, "cause") ? error.cause : error
    return new OutboxFailed({ filename, details: messageOf(cause) })
  }

export const open = (filename: string): Effect.Effect<SqlClient.SqlClient, OutboxFailed, Scope.Scope> =>
  Effect.gen(function* () {
    yield* Effect.tryPromise(() => mkdir(dirname(filename), { recursive: true, mode: 0o700 }))
    yield* Effect.promise(() => makePrivate(filename))
    const { client: sql } = yield* Connection.open({ filename })
    yield* Effect.retry(prepare(sql, filename), { while: isLocked, schedule: afterTheLast })
    return sql
  }).pipe(
    // The driver throws if it cannot open a file or prepare a statement.
    Effect.catchAllDefect((defect) => Effect.fail(defect)),
    Effect.mapError(failed(filename)),
    Effect.provide(Reactivity.layer)
  )
