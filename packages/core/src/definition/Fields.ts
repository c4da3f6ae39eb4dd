/** Schemas for values in files that users write. Their errors name the expected form. Used with `decodeParsed`. */
import { type Effect, ParseResult, Schema } from "effect"
import type { ParseOptions } from "effect/SchemaAST"

/** Annotates a leaf: every error reads `expected <what>`. */
export const expects =
  (what: string) =>
  <A, I>(schema: Schema.Schema<A, I>): Schema.Schema<A, I> =>
    schema.annotations({ message: () => ({ message: `expected ${what}`, override: true }) })

/** Annotates a map or list: a value of another type reads `expected <what>`; errors inside keep their messages. */
export const shaped =
  (what: string) =>
  <A, I>(schema: Schema.Schema<A, I>): Schema.Schema<A, I> =>
    schema.annotations({ message: () => `expected ${what}` })

export const optional = <A, I>(schema: Schema.Schema<A, I>) => Schema.optionalWith(schema, { exact: true })

export const boolean = Schema.Boolean.pipe(expects("true or false"))
export const text = Schema.String.pipe(expects("a text"))
export const someText = Schema.NonEmptyTrimmedString.pipe(expects("a text that is not empty"))
export const texts = Schema.Array(someText).pipe(shaped("a list of texts"))
export const whole = Schema.Int.pipe(Schema.nonNegative(), expects("a whole number, 0 or more"))
export const counting = Schema.Int.pipe(Schema.positive(), expects("a whole number, 1 or more"))
export const amount = Schema.Finite.pipe(Schema.nonNegative(), expects("a number, 0 or more"))
export const finite = Schema.Finite.pipe(expects("a number"))

/** Names of agents, templates and references: part of file names, commands and mentions. */
export const namePattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/
export const nameRule = "1 to 64 letters, digits, dots, underscores or hyphens, the first a letter or digit"
export const name = Schema.String.pipe(Schema.pattern(namePattern), expects(`a name: ${nameRule}`))

/** The declared output of a transformation. */
export const made = <A>() => Schema.declare((value: unknown): value is A => value !== undefined)

type Decode<A> = (value: unknown, options?: ParseOptions) => Effect.Effect<A, ParseResult.ParseIssue>

/** Decodes with the schema that the value's shape selects, so that errors refer to the intended form. */
export const selected = <A>(select: (value: unknown) => Decode<A>): Schema.Schema<A, unknown> =>
  Schema.transformOrFail(Schema.Unknown, made<A>(), {
    strict: true,
    decode: (value, options) => select(value)(value, options),
    encode: (value) => ParseResult.succeed(value)
  })
