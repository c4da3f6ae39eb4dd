/** The log and the read models on one database, without anything that runs: for readers that start often or fast. */
import type { SqlError } from "@effect/sql"
import { Layer } from "effect"
import * as Identifiers from "./Identifiers.ts"
import type { EventLog } from "./log/EventLog.ts"
import * as SqlEventLog from "./log/SqlEventLog.ts"
import * as SessionStore from "./session/SessionStore.ts"
import * as Database from "./storage/Database.ts"

/** `EventLog` and `SessionStore` on the database, which is made when it is not there. */
export const layer = (
  options: Database.DatabaseOptions
): Layer.Layer<EventLog | SessionStore.SessionStore, Database.DatabaseError | SqlError.SqlError> =>
  Layer.mergeAll(SqlEventLog.layer(), SessionStore.layer).pipe(
    Layer.provide(Identifiers.layer),
    Layer.provide(Database.layer(options))
  )
