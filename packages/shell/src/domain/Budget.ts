/**
 * How much of a command's output a caller wants to see. A budget of a call replaces the shell's default. The output that
 * stays out is kept on disk. Spec: SL-30..SL-36 in specs/shell.md.
 */
import { Schema } from "effect"

const optional = <A, I>(schema: Schema.Schema<A, I>) => Schema.optionalWith(schema, { exact: true })

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
