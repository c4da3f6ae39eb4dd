/**
 * Defines the events of live shells: shells that outlive a call, local, over SSH or in a container. They are a record for
 * people and change no message: what the model saw of a command is in the events of its call. The texts are redacted and
 * truncated before they get here. Spec: specs/log.md, SL-100..SL-104 in specs/shell.md.
 */
import { Schema } from "effect"
import { callID, durable } from "./Definition.ts"
import { optional } from "../support/Optional.ts"

/** Names the shell within its session until it is closed; a later shell may have the same id. */
const shellID = Schema.NonEmptyString
const checkpointID = Schema.NonEmptyString

/** Why a shell is closed. `lost`: its transport ended, or the process that kept it. */
export const ShellCloseReason = Schema.Literal(
  "destroyed",
  "reaped",
  "exited",
  "timeout",
  "lost",
  "shutdown",
  // A bound of its sandbox, and a protected file that was replaced.
  "processes",
  "memory",
  "unprotected"
)
export type ShellCloseReason = typeof ShellCloseReason.Type

export const ShellTransport = Schema.Literal("local", "ssh", "docker")
export type ShellTransport = typeof ShellTransport.Type

export const ShellOpened = durable("shells", "session.next.shell.opened", 1, {
  shellID,
  transport: ShellTransport,
  title: optional(Schema.String),
  /** The working folder in which it starts. */
  cwd: optional(Schema.String)
})

export const ShellExecuted = durable("shells", "session.next.shell.executed", 1, {
  shellID,
  command: Schema.String,
  stdout: Schema.String,
  stderr: Schema.String,
  /** 128 + n after signal n, 124 after a timeout. */
  exitCode: Schema.Int,
  durationMs: Schema.Finite,
  /** The working folder after the command. */
  cwd: Schema.String,
  /** Part of the output is missing here. */
  truncated: Schema.Boolean,
  timedOut: optional(Schema.Literal(true)),
  /** What background jobs printed between the end of the previous command and the start of this one. */
  lateOutput: optional(Schema.String),
  /** Handle of the whole output on disk. */
  output: optional(Schema.String),
  /** The tool call of this session that ran it: its result has the output, and `stdout` and `stderr` are empty. */
  callID: optional(callID)
})

/** A policy refused a command; nothing ran. */
export const ShellBlocked = durable("shells", "session.next.shell.blocked", 1, {
  shellID,
  command: Schema.String,
  policy: Schema.Literal("operator", "shell"),
  reason: Schema.String
})

export const ShellCheckpointed = durable("shells", "session.next.shell.checkpointed", 1, {
  shellID,
  checkpointID,
  label: optional(Schema.String)
})

export const ShellRestored = durable("shells", "session.next.shell.restored", 1, {
  shellID,
  checkpointID,
  filesChanged: Schema.NonNegativeInt
})

export const ShellClosed = durable("shells", "session.next.shell.closed", 1, { shellID, reason: ShellCloseReason })

/** The types of live shells, in the order in which a shell goes through them. */
export const shellDefinitions = [
  ShellOpened,
  ShellExecuted,
  ShellBlocked,
  ShellCheckpointed,
  ShellRestored,
  ShellClosed
] as const

export type ShellType = (typeof shellDefinitions)[number]["type"]

/** The names of their types: a reader of live shells selects events by them. */
export const shellTypes: ReadonlyArray<ShellType> = /* @__PURE__ */ shellDefinitions.map(({ type }) => type)
