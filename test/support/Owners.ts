/** Owners as they appear in rows: of dead processes, and of processes whose state is unknown. */
import { SqlClient } from "@effect/sql"
import { Effect } from "effect"
import * as OwnerID from "../../packages/log/src/coordination/OwnerID.ts"
import * as Store from "../../packages/log/src/Store.ts"

/** An owner in a dead process of this machine: its process id exceeds the system's limit. */
export const goneOwner = OwnerID.make()
  .ownerID()
  .replace(/\/\d+\//, "/4194999/")

/** An owner on another machine, whose state is unknown here. */
export const stranger = "elsewhere.example/1/boot:1:1/1/abc"

/** Replaces the owner of every owned session of the file. */
export const giveTo = (ownerID: string) =>
  Effect.flatMap(
    SqlClient.SqlClient,
    (sql) => sql`UPDATE event_sequence SET owner_id = ${ownerID} WHERE owner_id IS NOT NULL`
  )

/** Replaces the owners in a file that no process has open. */
export const giveFileTo = (filename: string, ownerID: string) =>
  Effect.provide(giveTo(ownerID), Store.layer({ filename }))

/** Renews every owner's lease once per second, like live owners. */
export const renewing = Effect.flatMap(SqlClient.SqlClient, (sql) =>
  Effect.forever(
    Effect.delay(sql`UPDATE event_sequence SET lease_beat = lease_beat + 1 WHERE owner_id IS NOT NULL`, "1 second")
  )
)
