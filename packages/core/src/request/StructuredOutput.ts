/**
 * Provides answers of a given schema: the model calls a tool whose input is the answer. The input is validated; an
 * invalid one is returned with its errors, once. The value is the input of the accepted call, in the log. Spec:
 * RQ-40..44.
 */
import { Ajv, type ErrorObject, type ValidateFunction } from "ajv"
import { Ajv2019 } from "ajv/dist/2019.js"
import { Ajv2020 } from "ajv/dist/2020.js"
import { Effect, Either } from "effect"
import { RE2JS } from "re2js"
import type { Message, ToolPart } from "@daybook/log/domain/Message"
import type { JsonRecord, OutputFormat } from "@daybook/log/domain/Values"
import { ToolFailure } from "../domain/ToolError.ts"
import { maxExpressionLength } from "../support/Limits.ts"
import { fromJsonSchema, type ToolDefinition } from "../tool/ToolDefinition.ts"

export { StructuredOutputFailed } from "../domain/RunFailure.ts"

/** The name of the tool that takes the answer. */
export const outputTool = "structured_output"

/** Maximum characters of a schema. */
const schemaLimit = 65_536

/** Compiles schema patterns to linear-time expressions: the model controls the text they match (LM-23). */
const linearExpression = Object.assign(
  (pattern: string) => {
    if (pattern.length > maxExpressionLength)
      throw new Error(`a pattern has more than ${maxExpressionLength} characters`)
    const expression = RE2JS.compile(RE2JS.translateRegExp(pattern))
    // Ajv caches expressions by this text.
    return { test: (text: string) => expression.test(text), toString: () => pattern }
  },
  // Ajv requires this for standalone code, which is never generated.
  { code: "linearExpression" }
)

const compiled = new Map<string, ValidateFunction>()
const compiledLimit = 64

const describe = (errors: ReadonlyArray<ErrorObject> | null | undefined): string =>
  (errors ?? [])
    .slice(0, 10)
    .map(
      ({ instancePath, message }) => `${instancePath === "" ? "the answer" : instancePath} ${message ?? "does not fit"}`
    )
    .join("; ")

const notASchema = (cause: unknown): string =>
  `it is not a valid JSON Schema: ${cause instanceof Error ? cause.message : String(cause)}`

/** The validator of the draft that a schema names; without a name it is 2020-12. */
const validatorOf = (draft: unknown) => {
  const name = typeof draft === "string" ? draft : ""
  if (/\/draft-0[4-7]\//.test(name)) return Ajv
  return name.includes("/2019-09/") ? Ajv2019 : Ajv2020
}

/** Compiles a schema; Left explains why the schema is not usable. */
export const checkOf = ({ schema }: OutputFormat): Either.Either<ValidateFunction, string> => {
  const written = Either.try({ try: () => JSON.stringify(schema), catch: notASchema })
  if (Either.isLeft(written)) return Either.left(written.left)
  const text = written.right
  const before = compiled.get(text)
  if (before !== undefined) return Either.right(before)
  if (text.length > schemaLimit)
    return Either.left(`a schema may have ${schemaLimit} characters, this has ${text.length}`)
  if (schema["type"] !== "object") return Either.left(`its root must be an object: "type": "object"`)
  // An asynchronous check returns a promise, which would always count as valid.
  if ("$async" in schema) return Either.left("asynchronous schemas are not supported: remove $async")
  return Either.try({
    try: () => {
      // A separate instance per schema, so that schemas do not share ids.
      const options = { allErrors: true, strict: false, validateFormats: false, logger: false } as const
      const { $schema, ...words } = schema
      const check = new (validatorOf($schema))({ ...options, code: { regExp: linearExpression } }).compile(words)
      compiled.set(text, check)
      const oldest = compiled.size > compiledLimit ? compiled.keys().next().value : undefined
      if (oldest !== undefined) compiled.delete(oldest)
      return check
    },
    catch: notASchema
  })
}

/** Progress of the structured answer within one activity. */
export interface OutputState {
  accepted: boolean
  /** The current turn gave an invalid answer. */
  wrong: boolean
  /** Turns without a valid answer. */
  refused: number
}

export const noOutput = (): OutputState => ({ accepted: false, wrong: false, refused: 0 })

/** Turns that may end without a valid answer: the first, and one correction. */
export const outputAttempts = 2

/** Builds the tool that takes the answer and records the result in `state`. */
export const definition = (format: OutputFormat, state: OutputState): ToolDefinition =>
  fromJsonSchema({
    readOnly: true,
    name: outputTool,
    description:
      "Gives your final answer. Call it once, when you have everything that the answer needs; nothing is asked of you " +
      `after it. Its input is the answer itself.${format.description === undefined ? "" : ` ${format.description}`}`,
    parameters: format.schema,
    execute: (input) =>
      Either.match(checkOf(format), {
        onLeft: (details) =>
          new ToolFailure({ type: "output.schema", message: `the schema of the answer is not usable: ${details}` }),
        onRight: (check) => {
          if (check(input)) {
            state.accepted = true
            return Effect.succeed({ structured: {}, content: [{ type: "text", text: "The answer was accepted." }] })
          }
          state.wrong = true
          return new ToolFailure({
            type: "output.invalid",
            message: `the answer does not fit its form: ${describe(check.errors)}`
          })
        }
      })
  })

/** The reminder after an answer in another form. */
export const correction = `Give the answer by calling ${outputTool}, in the form that it asks for; text alone is not read.`

/** The structured answer in a message, if any. */
export const structuredOutput = (message: Message): JsonRecord | undefined => {
  if (message.type !== "assistant") return undefined
  const accepted = message.content.findLast(
    (part): part is ToolPart => part.type === "tool" && part.name === outputTool && part.state === "completed"
  )
  // Tool results may be truncated; inputs are complete.
  return accepted?.input
}
