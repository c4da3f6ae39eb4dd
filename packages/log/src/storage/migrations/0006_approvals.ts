/** Adds to approvals their folder, definition, answering user and use. Spec: specs/storage.md. */
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect } from "effect"
import { folderIdentity } from "../../support/FolderIdentity.ts"

/** The identity of the folder now at the path; empty, which no folder has, if it cannot be read. */
const standing = (folder: string) =>
  Effect.tryPromise(() => folderIdentity(folder)).pipe(
    // A dead mount must not keep the database from opening.
    Effect.timeout("2 seconds"),
    Effect.orElseSucceed(() => "")
  )

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  // AUTOINCREMENT: approvals are revoked by number, so a number is never reused.
  yield* sql`CREATE TABLE approval (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    folder TEXT NOT NULL,
    identity TEXT NOT NULL,
    permission TEXT NOT NULL,
    resource TEXT NOT NULL,
    definition TEXT NOT NULL,
    session_id TEXT,
    call_id TEXT,
    agent TEXT,
    uid INTEGER,
    uses INTEGER NOT NULL DEFAULT 0,
    time_created INTEGER NOT NULL,
    time_used INTEGER,
    time_revoked INTEGER,
    revoked_uid INTEGER
  ) STRICT`
  yield* sql`CREATE UNIQUE INDEX approval_valid ON approval (folder, identity, permission, resource, definition)
    WHERE time_revoked IS NULL`
  // A partial index over the few permission events.
  yield* sql`CREATE INDEX event_permission ON event (position)
    WHERE type >= 'session.next.permission.' AND type < 'session.next.permission/'`
  const projects = yield* sql<{ readonly project: string }>`SELECT DISTINCT project FROM permission`
  const identities = yield* Effect.forEach(
    projects,
    ({ project }) => Effect.map(standing(project), (identity) => ({ project, identity })),
    { concurrency: 16 }
  )
  for (const { identity, project } of identities) {
    yield* sql`INSERT INTO approval (folder, identity, permission, resource, definition, time_created)
      SELECT project, ${identity}, permission, resource, '', time_created FROM permission
      WHERE project = ${project} ORDER BY time_created, permission, resource`
  }
  yield* sql`DROP TABLE permission`
})
