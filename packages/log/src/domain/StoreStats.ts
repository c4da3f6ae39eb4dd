/** Defines what `daybook stats` shows of a database or of one session of it. `maintenance/Stats.ts` measures. Spec: ST-50..ST-52, PG-45. */
import { Schema } from "effect"
import { SessionMetrics } from "./Values.ts"
import { optional } from "../support/Optional.ts"

/** Events, and the bytes of their payloads. */
const Amount = { events: Schema.Int, bytes: Schema.Int }

/** The events of one type. */
export const TypeStats = Schema.Struct({ type: Schema.String, ...Amount })
export const DayStats = Schema.Struct({ day: Schema.String, ...Amount })
export const SessionStats = Schema.Struct({ sessionID: Schema.String, title: Schema.NullOr(Schema.String), ...Amount })
/** A table with its indexes: the bytes of its pages. */
export const TableStats = Schema.Struct({ table: Schema.String, bytes: Schema.Int })

/** Where the bytes are. */
export const Stats = Schema.Struct({
  /** Bytes of the database's file; on PostgreSQL of its tables with their indexes. */
  fileBytes: Schema.Int,
  /** Bytes of the file's write-ahead log; absent on PostgreSQL, whose log is that of the whole server. */
  walBytes: optional(Schema.Int),
  /** Bytes of them that hold nothing; on PostgreSQL an estimate, and absent for one session. */
  freeBytes: optional(Schema.Int),
  sessions: Schema.Int,
  ...Amount,
  /** Bytes of the compressed events below the floors. */
  contentBytes: Schema.Int,
  /** The numbers by type, session and day are estimated from a sample. */
  sampled: Schema.Boolean,
  /** The largest first; absent if the whole file would have to be read. */
  tables: optional(Schema.Array(TableStats)),
  types: Schema.Array(TypeStats),
  /** The last 30 days with events, the newest first. */
  days: Schema.Array(DayStats),
  largest: Schema.Array(SessionStats)
})
export type Stats = typeof Stats.Type

/** What a prune without a bound would remove. */
export const Prunable = Schema.Struct({
  sessions: Schema.Int,
  ...Amount,
  /** The estimated bytes that it would free. */
  frees: Schema.Int
})
export type Prunable = typeof Prunable.Type

export const SnapshotStats = Schema.Struct({ bytes: Schema.Int, folders: Schema.Int, snapshots: Schema.Int })
export type SnapshotStats = typeof SnapshotStats.Type

/** Everything that `daybook stats` shows. */
export const StatsReport = Schema.Struct({
  ...Stats.fields,
  /** Absent if the numbers are estimated from a sample. */
  prune: optional(Prunable),
  /** Only of a database; absent for one session. */
  snapshots: optional(SnapshotStats),
  /** What the session did; absent for a database. */
  metrics: optional(SessionMetrics)
}).annotations({ identifier: "StatsReport" })
export type StatsReport = typeof StatsReport.Type
