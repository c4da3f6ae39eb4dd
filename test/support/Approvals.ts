/** Saved approvals in an in-memory database, and the fields of one that tests compare. */
import { SqlClient } from "@effect/sql"
import { Effect, Layer } from "effect"
import type { PermissionStore, SavedApproval } from "../../packages/core/src/permission/PermissionStore.ts"
import * as SqlPermissionStore from "../../packages/core/src/permission/SqlPermissionStore.ts"
import { SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { memoryLog } from "./Database.ts"

export const approvals: Layer.Layer<PermissionStore> = Layer.orDie(Layer.provide(SqlPermissionStore.layer, memoryLog))

/** A call that a person answered. */
export const source = { sessionID: SessionID.make("ses_a"), callID: "call_1", agent: "tester" }

export const patterns = (saved: ReadonlyArray<SavedApproval>) =>
  saved.map(({ permission, resource }) => ({ permission, resource }))

/** Brings a database back to version 5, where approvals were in the table `permission`. */
export const beforeApprovals = Effect.flatMap(SqlClient.SqlClient, (sql) =>
  Effect.forEach(
    [
      sql`DROP TABLE approval`,
      sql`DROP INDEX event_permission`,
      sql`CREATE TABLE permission (project TEXT NOT NULL, permission TEXT NOT NULL, resource TEXT NOT NULL,
        time_created INTEGER NOT NULL, PRIMARY KEY (project, permission, resource)) STRICT, WITHOUT ROWID`,
      sql`DELETE FROM migration WHERE migration_id >= 6`
    ],
    (statement) => statement,
    { discard: true }
  )
)
