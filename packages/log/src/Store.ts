/** The log and its store on one database, for readers that start fast, and as the runtime's lowest part. */
import type * as SqlClient from "@effect/sql/SqlClient"
import { Layer } from "effect"
import type { ConsumerStore } from "./consumer/ConsumerStore.ts"
import * as Identifiers from "./domain/Identifiers.ts"
import * as SqlConsumerStore from "./consumer/SqlConsumerStore.ts"
import type { EventLog, LogUnavailable } from "./log/EventLog.ts"
import * as SqlEventLog from "./log/SqlEventLog.ts"
import * as Database from "./storage/Database.ts"
import type { EpochStore } from "./store/EpochStore.ts"
import type { Inbox } from "./store/Inbox.ts"
import type { NodeStore } from "./store/NodeStore.ts"
import type { QuestionStore } from "./store/QuestionStore.ts"
import type { SessionStore } from "./store/SessionStore.ts"
import * as SqlEpochStore from "./store/SqlEpochStore.ts"
import * as SqlInbox from "./store/SqlInbox.ts"
import * as SqlNodeStore from "./store/SqlNodeStore.ts"
import * as SqlQuestionStore from "./store/SqlQuestionStore.ts"
import * as SqlSessionStore from "./store/SqlSessionStore.ts"

/** `SessionStore`, `Inbox`, `QuestionStore`, `EpochStore`, `ConsumerStore` and `NodeStore` beside the SQL event log in the context. */
export const layerStore = Layer.mergeAll(
  SqlSessionStore.layer,
  SqlInbox.layer,
  SqlQuestionStore.layer,
  SqlEpochStore.layer,
  SqlNodeStore.layer,
  SqlConsumerStore.layer()
)

/** What keeps the log: the log, the stores beside it, and their connections. */
export type Services =
  | EventLog
  | SessionStore
  | Inbox
  | QuestionStore
  | EpochStore
  | ConsumerStore
  | NodeStore
  | SqlClient.SqlClient
  | Database.ReadSql

/** Another place for the log than a file. A package beside this one makes it. */
export interface Elsewhere {
  /** For messages. */
  readonly name: string
  readonly layer: (options?: SqlEventLog.Options) => Layer.Layer<Services, Database.DatabaseError | LogUnavailable>
}

/** `EventLog` and these services over the database in the context. */
export const layerSql = (options: SqlEventLog.Options = {}) =>
  Layer.provideMerge(layerStore, SqlEventLog.layer(options))

/** `layerSql` on the database, with its connections. Creates the database if it does not exist. */
export const layer = (options: Database.DatabaseOptions & SqlEventLog.Options) =>
  layerSql(options).pipe(Layer.provide(Identifiers.layer), Layer.provideMerge(Database.layer(options)))

/** `layer` for a process that only reads an existing database: it starts faster, and every append fails. */
export const layerReading = (options: Database.DatabaseOptions) =>
  layerSql().pipe(Layer.provide(Identifiers.layer), Layer.provideMerge(Database.layerReading(options)))
