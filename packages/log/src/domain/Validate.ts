/** Validates arguments of callers against their schemas before any decision. */
import { Effect, Schema, type SchemaAST } from "effect"
import { compile, type Conforms } from "../support/Conforms.ts"
import { describeIssues } from "../support/Issues.ts"
import { InvalidInput } from "./InvalidInput.ts"

const compiled = new WeakMap<SchemaAST.AST, Conforms>()

/** Whether decoding would return the same value, which takes a fraction of the time. False means unknown. */
const conforms = ({ ast }: Schema.Schema.Any, value: unknown): boolean => {
  const known = compiled.get(ast) ?? compile(ast)
  compiled.set(ast, known)
  return known(value)
}

/** Returns the decoded value, or the field at fault and what is expected. */
export const validate = <A, I>(
  field: string,
  schema: Schema.Schema<A, I>,
  value: unknown
): Effect.Effect<A, InvalidInput> =>
  conforms(schema, value)
    ? Effect.succeed(value as A)
    : Effect.mapError(
        Schema.decodeUnknown(schema)(value),
        (error) => new InvalidInput({ field, details: describeIssues(error, "") })
      )
