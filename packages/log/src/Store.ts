/** The log and its store on one database, for readers that start fast, and as the runtime's lowest part. */
import { Layer } from "effect"
import * as Identifiers from "./domain/Identifiers.ts"
import * as SqlConsumerStore from "./consumer/SqlConsumerStore.ts"
import * as SqlEventLog from "./log/SqlEventLog.ts"
import * as Database from "./storage/Database.ts"
import * as SqlEpochStore from "./store/SqlEpochStore.ts"
import * as SqlInbox from "./store/SqlInbox.ts"
import * as SqlQuestionStore from "./store/SqlQuestionStore.ts"
import * as SqlSessionStore from "./store/SqlSessionStore.ts"

/** `SessionStore`, `Inbox`, `QuestionStore`, `EpochStore` and `ConsumerStore` beside the SQL event log in the context. */
export const layerStore = Layer.mergeAll(
  SqlSessionStore.layer,
  SqlInbox.layer,
  SqlQuestionStore.layer,
  SqlEpochStore.layer,
  SqlConsumerStore.layer()
)

/** `EventLog` and these services over the database in the context. */
export const layerSql = (options: SqlEventLog.Options = {}) =>
  Layer.provideMerge(layerStore, SqlEventLog.layer(options))

/** `layerSql` on the database, with its connections. Creates the database if it does not exist. */
export const layer = (options: Database.DatabaseOptions & SqlEventLog.Options) =>
  layerSql(options).pipe(Layer.provide(Identifiers.layer), Layer.provideMerge(Database.layer(options)))

/** `layer` for a process that only reads an existing database: it starts faster, and every append fails. */
export const layerReading = (options: Database.DatabaseOptions) =>
  layerSql().pipe(Layer.provide(Identifiers.layer), Layer.provideMerge(Database.layerReading(options)))
