/** Defines an agent: how a session behaves and what it may do. Spec: CF-10..CF-19. */
import { Schema } from "effect"
import { JsonValue } from "@daybook/log/domain/Json"
import { ModelRef } from "@daybook/log/domain/Values"
import { Rule } from "./Rule.ts"
import { optional } from "@daybook/log/support/Optional"

/** No such agent, or its file is unusable. */
export class AgentNotFound extends Schema.TaggedError<AgentNotFound>("@daybook/core/AgentNotFound")("AgentNotFound", {
  agent: Schema.String,
  known: Schema.Array(Schema.String),
  /** The problem of the file that defines this agent. */
  problem: Schema.optionalWith(Schema.String, { exact: true })
}) {
  override get message() {
    return this.problem === undefined
      ? `there is no agent "${this.agent}"; known: ${this.known.join(", ")}`
      : `agent "${this.agent}" cannot be used: ${this.problem}`
  }
}

/** Where an agent may work: as a session's agent (`primary`), for a `task` of another agent (`subagent`), or both. */
export const AgentMode = Schema.Literal("primary", "subagent", "all")

export type AgentMode = typeof AgentMode.Type

export const BashMode = Schema.Literal("process", "live")

/**
 * Request options besides the prompt. An adapter ignores what its provider does not support. `body` is merged into the
 * request's JSON and `headers` into its headers, for settings without a field here.
 */
export const RequestSettings = Schema.Struct({
  maxOutputTokens: optional(Schema.Int.pipe(Schema.positive())),
  temperature: optional(Schema.Finite),
  topP: optional(Schema.Finite),
  topK: optional(Schema.Int.pipe(Schema.positive())),
  stop: optional(Schema.Array(Schema.NonEmptyString)),
  /** The effort, in the provider's terms; the model's variant takes precedence. */
  effort: optional(Schema.NonEmptyString),
  headers: optional(Schema.Record({ key: Schema.NonEmptyString, value: Schema.String })),
  body: optional(Schema.Record({ key: Schema.NonEmptyString, value: JsonValue }))
})

export type RequestSettings = typeof RequestSettings.Type

/** A named behaviour of a session: its prompt, its permissions, and its limits. */
export const Agent = Schema.Struct({
  name: Schema.String,
  /** One line: the agent's purpose. People, and models that assign a `task`, choose the agent by this line. */
  description: optional(Schema.String),
  /** Default: `all`. */
  mode: optional(AgentMode),
  /** The agent's system text, before the context's baseline; replaces the base instructions of the model's family. */
  prompt: optional(Schema.String),
  /** Ordered rules; the last match decides. */
  permissions: Schema.Array(Rule),
  /** Provider turns per activity; default: 25. */
  turnLimit: optional(Schema.Int),
  /** Used by sessions without a model. */
  model: optional(ModelRef),
  settings: optional(RequestSettings),
  /** Sent once when a session switches to this agent, and when it leaves it. */
  enterReminder: optional(Schema.String),
  leaveReminder: optional(Schema.String),
  /** How `bash` runs commands: a process each (`process`, the default), or in one live shell per session (`live`). */
  bash: optional(BashMode)
})
export type Agent = typeof Agent.Type

/** Whether a session may be created with the agent or switched to it. */
export const canLead = ({ mode = "all" }: Agent): boolean => mode !== "subagent"

/** Whether `task` may start the agent in a child session. */
export const canAssist = ({ mode = "all" }: Agent): boolean => mode !== "primary"
