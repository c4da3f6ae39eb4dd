/**
 * How much of a command's output a caller wants to see, and what one command of a live shell returns: seed 001's
 * `ExecResult`, field for field, with what it adds only when there is something to say. Spec: SL-20..SL-27,
 * SL-30..SL-36 in specs/shell.md.
 */
import { Schema } from "effect"
import { CloseReason } from "./ShellError.ts"
import { optional } from "@daybook/log/support/Optional"

const Lines = Schema.Int.pipe(Schema.between(1, 1_000_000))

/** Keeps lines that match a pattern of RE2's syntax, with lines around each. */
export const Grep = Schema.Struct({
  pattern: Schema.NonEmptyString.pipe(Schema.maxLength(4_096)),
  /** Lines before and after each match; 0 by default. */
  context: optional(Schema.Int.pipe(Schema.between(0, 10_000)))
})
export type Grep = typeof Grep.Type

export const Keep = Schema.Union(
  Schema.Struct({ mode: Schema.Literal("all") }),
  Schema.Struct({ mode: Schema.Literal("head"), n: Lines }),
  Schema.Struct({ mode: Schema.Literal("tail"), n: Lines }),
  Schema.Struct({ mode: Schema.Literal("head_tail"), head: Lines, tail: Lines })
)
export type Keep = typeof Keep.Type

export const Budget = Schema.Struct({
  grep: optional(Grep),
  keep: optional(Keep),
  /** Characters per stream, half from the beginning and half from the end; 100,000 by default. */
  max_chars: optional(Schema.Int.pipe(Schema.between(1, 10_000_000)))
})
export type Budget = typeof Budget.Type

export const defaultCharacters = 100_000

/** What the result of something that ran says if the record does not have it. */
export const Unrecorded = Schema.Struct({
  recorded: optional(Schema.Literal(false)),
  /** Why. */
  not_recorded: optional(Schema.String)
})
export type Unrecorded = typeof Unrecorded.Type

export const StreamReport = Schema.Struct({
  lines_total: Schema.Int,
  lines_kept: Schema.Int,
  characters_total: Schema.Int,
  characters_kept: Schema.Int
})
export type StreamReport = typeof StreamReport.Type

export const ExecResult = Schema.Struct({
  /** Standard output: no escapes, no secrets, no trailing newlines, within the budget. */
  stdout: Schema.String,
  stderr: Schema.String,
  /** As the shell reports it: 128 + n after signal n, 124 after a timeout. */
  exit_code: Schema.Int,
  duration_ms: Schema.Number,
  /** The working folder after the command. */
  cwd: Schema.String,
  /** Something of the output is missing here. `output` names the whole. */
  truncated: Schema.Boolean,
  /** What was kept, of each stream from which something was left out. */
  budget: optional(Schema.Struct({ stdout: optional(StreamReport), stderr: optional(StreamReport) })),
  /** Handle of the whole output on disk, when `stdout` or `stderr` is truncated. */
  output: optional(Schema.String),
  /** The command was stopped after its timeout. Nothing of it runs any more. */
  timed_out: optional(Schema.Boolean),
  /** The shell ended with this command; the reason. */
  closed: optional(CloseReason),
  /** What the sandbox of the shell allows, if the command failed or exceeded a bound. */
  sandbox: optional(Schema.String),
  /** What background jobs printed between the end of the previous command and the start of this one. */
  late_output: optional(Schema.String),
  /** Why there is no automatic checkpoint of the files before the command. */
  no_checkpoint: optional(Schema.String),
  ...Unrecorded.fields
})
export type ExecResult = typeof ExecResult.Type
