/** Defines the error for an invalid argument of a caller. */
import { Either, ParseResult, Schema, type SchemaAST } from "effect"
import { compile, type Conforms } from "../support/Conforms.ts"
import { byField, type Issue } from "../support/Issues.ts"

/** An argument is not valid: `field` names it, or is empty for the argument itself; `details` says what is expected. */
export class InvalidInput extends Schema.TaggedError<InvalidInput>("@daybook/log/InvalidInput")("InvalidInput", {
  field: Schema.String,
  details: Schema.String
}) {
  override get message() {
    return this.field === "" ? this.details : `${this.field}: ${this.details}`
  }
}

// Validates arguments of callers against their schemas before any decision.

const compiled = new WeakMap<SchemaAST.AST, Conforms>()

/** Whether decoding would return the same value, which takes a fraction of the time. False means unknown. */
const conforms = ({ ast }: Schema.Schema.Any, value: unknown): boolean => {
  const known = compiled.get(ast) ?? compile(ast)
  compiled.set(ast, known)
  return known(value)
}

/** The error of the first issue. Its field is the issue's path below the argument, as in `location.directory`. */
export const invalidAt = (argument: string | undefined, issues: ReadonlyArray<Issue>): InvalidInput => {
  const [issue] = byField(issues)
  const path = [...(argument === undefined ? [] : [argument]), ...(issue?.path ?? [])]
  return new InvalidInput({
    field: path.map(String).join("."),
    details: issue?.message ?? "expected another value"
  })
}

/** Returns the decoded value, or an error that names the wrong field and what it expects. */
export const validate = <A, I>(
  argument: string,
  schema: Schema.Schema<A, I>,
  value: unknown
): Either.Either<A, InvalidInput> =>
  conforms(schema, value)
    ? Either.right(value as A)
    : Either.mapLeft(Schema.decodeUnknownEither(schema)(value), (error) =>
        invalidAt(argument, ParseResult.ArrayFormatter.formatErrorSync(error))
      )
