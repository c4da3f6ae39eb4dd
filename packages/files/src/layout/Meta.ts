/** Defines `meta.json` of a session's folder. Spec: FI-12 in specs/files.md. */
import { Schema } from "effect"
import { RunID } from "@daybook/transcript/row/Rows"

const optional = <S extends Schema.Schema.All>(schema: S) => Schema.optionalWith(schema, { exact: true })

/** `meta.json`, for people and for clients' lists. No program logic depends on it. */
export const Meta = Schema.Struct({
  /** The version of all files in the session's folder. */
  version: Schema.Literal(1),
  session_id: Schema.String,
  scope: Schema.Literal("private", "shared"),
  shared: optional(Schema.String),
  kind: Schema.Literal("agent", "model"),
  name: Schema.String,
  session: Schema.String,
  title: optional(Schema.String),
  /** The session's current agent. */
  agent: Schema.String,
  model: optional(Schema.String),
  parent_id: optional(Schema.String),
  /** What began the session; absent: a person or a program. */
  source: optional(Schema.Literal("interactive", "cron")),
  cron_job_id: optional(Schema.String),
  /** Instructions of this session alone. */
  instructions: optional(Schema.String),
  /** How the last run ended. */
  last_status: optional(Schema.Literal("ok", "error", "cancelled")),
  last_run: optional(RunID),
  client_id: optional(Schema.String),
  cost_usd: Schema.Finite,
  tokens: Schema.Struct({ input: Schema.Finite, output: Schema.Finite, reasoning: Schema.Finite }),
  /** The last event that these files reflect. */
  seq: Schema.Int
})
export type Meta = typeof Meta.Type
