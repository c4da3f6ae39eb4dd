/** Takes a database back to an older schema, so that opening it again runs the migrations since then. */
import { SqlClient } from "@effect/sql"
import { Effect } from "effect"

/** What undoes each migration. */
const undo: Readonly<Record<number, ReadonlyArray<string>>> = {
  5: ["ALTER TABLE event_sequence DROP COLUMN incarnation"],
  6: [
    "DROP TABLE approval",
    "DROP INDEX event_permission",
    `CREATE TABLE permission (project TEXT NOT NULL, permission TEXT NOT NULL, resource TEXT NOT NULL,
      time_created INTEGER NOT NULL, PRIMARY KEY (project, permission, resource)) STRICT, WITHOUT ROWID`
  ],
  7: [
    `CREATE TABLE consumer_checkpoint (consumer TEXT PRIMARY KEY, position INTEGER NOT NULL, data TEXT,
      time_updated INTEGER NOT NULL) STRICT, WITHOUT ROWID`,
    "ALTER TABLE session ADD COLUMN leaf_id TEXT",
    "ALTER TABLE session_message ADD COLUMN parent_id TEXT"
  ],
  8: [
    `CREATE TABLE session_context_epoch (session_id TEXT PRIMARY KEY REFERENCES session (id) ON DELETE CASCADE,
      baseline TEXT NOT NULL, snapshot TEXT NOT NULL, baseline_seq INTEGER NOT NULL) STRICT`,
    "ALTER TABLE session DROP COLUMN epoch",
    "ALTER TABLE session DROP COLUMN baseline_seq"
  ]
}

/** Undoes every migration after the given version; 4 is the oldest. */
export const backTo = Effect.fnUntraced(function* (version: number) {
  const sql = yield* SqlClient.SqlClient
  const later = Object.entries(undo).filter(([number]) => Number(number) > version)
  for (const [, statements] of later.toReversed()) {
    for (const statement of statements) yield* sql.unsafe(statement)
  }
  yield* sql`DELETE FROM migration WHERE migration_id > ${version}`
})
