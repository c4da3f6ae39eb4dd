/** Provides the log and the read models on one database and starts nothing else: for readers that must start fast. */
import { Layer } from "effect"
import * as Identifiers from "./domain/Identifiers.ts"
import * as SqlEventLog from "./log/SqlEventLog.ts"
import * as Database from "./storage/Database.ts"
import * as SessionStore from "./store/SessionStore.ts"

/** `EventLog` and `SessionStore` on the database, with its connections. Creates the database if it does not exist. */
export const layer = (options: Database.DatabaseOptions) =>
  Layer.mergeAll(SqlEventLog.layer(), SessionStore.layer).pipe(
    Layer.provide(Identifiers.layer),
    Layer.provideMerge(Database.layer(options))
  )
