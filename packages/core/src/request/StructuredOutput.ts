/**
 * An answer of a given form: the model gives it by calling a tool whose input is the form. The input is validated; what
 * does not fit goes back with what is wrong, once. The value is the input of the accepted call, in the log. Spec: RQ-40..44.
 */
import { Ajv2020, type ErrorObject, type ValidateFunction } from "ajv/dist/2020.js"
import { Effect, Either, Schema } from "effect"
import { RE2JS } from "re2js"
import { SessionID } from "../Identifiers.ts"
import { maxExpressionLength } from "../Limits.ts"
import type { Message, ToolPart } from "../session/Message.ts"
import type { JsonRecord, OutputFormat } from "../session/Schemas.ts"
import { fromJsonSchema, ToolFailure, type ToolDefinition } from "../tool/ToolDefinition.ts"

/** The model did not give the answer in the form that the prompt asks for, after it was told what is wrong. */
export class StructuredOutputFailed extends Schema.TaggedError<StructuredOutputFailed>(
  "@daybook/core/StructuredOutputFailed"
)("StructuredOutputFailed", { sessionID: SessionID, details: Schema.String }) {
  override get message() {
    return `the model gave no answer of the form that was asked for: ${this.details}`
  }
}

/** The tool that takes the answer. */
export const outputTool = "structured_output"

/** Characters of a schema. */
const schemaLimit = 65_536

/** Patterns of a schema are matched in linear time: the model decides what they are matched against (LM-23). */
const linearExpression = Object.assign(
  (pattern: string) => {
    if (pattern.length > maxExpressionLength)
      throw new Error(`a pattern has more than ${maxExpressionLength} characters`)
    const expression = RE2JS.compile(RE2JS.translateRegExp(pattern))
    // Ajv keeps one expression for each text.
    return { test: (text: string) => expression.test(text), toString: () => pattern }
  },
  // What a check that is compiled to a file would import; none is.
  { code: "linearExpression" }
)

/** Checks of schemas that are in use, by their text. */
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
  `it is no JSON Schema: ${cause instanceof Error ? cause.message : String(cause)}`

/** The check of a schema; Left says why the schema cannot be used. */
export const checkOf = ({ schema }: OutputFormat): Either.Either<ValidateFunction, string> => {
  const written = Either.try({ try: () => JSON.stringify(schema), catch: notASchema })
  if (Either.isLeft(written)) return Either.left(written.left)
  const text = written.right
  const before = compiled.get(text)
  if (before !== undefined) return Either.right(before)
  if (text.length > schemaLimit)
    return Either.left(`a schema may have ${schemaLimit} characters, this has ${text.length}`)
  if (schema["type"] !== "object") return Either.left(`its root has to be an object: "type": "object"`)
  // Its check would answer later, and so always be taken for a yes.
  if ("$async" in schema) return Either.left("it has to be checked at once: leave out $async")
  return Either.try({
    try: () => {
      // An instance of its own: ids of one schema must not be seen by another.
      const options = { allErrors: true, strict: false, validateFormats: false, logger: false } as const
      const check = new Ajv2020({ ...options, code: { regExp: linearExpression } }).compile(schema)
      compiled.set(text, check)
      const oldest = compiled.size > compiledLimit ? compiled.keys().next().value : undefined
      if (oldest !== undefined) compiled.delete(oldest)
      return check
    },
    catch: notASchema
  })
}

/** What came of the form within one activity. */
export interface OutputState {
  accepted: boolean
  /** The turn that runs gave an answer that does not fit. */
  wrong: boolean
  /** Turns whose answer was missing or did not fit. */
  refused: number
}

export const noOutput = (): OutputState => ({ accepted: false, wrong: false, refused: 0 })

/** Turns whose answer may be missing or wrong: the first, and the one correction. */
export const outputAttempts = 2

/** The tool that takes the answer, and notes what came of it. */
export const definition = (format: OutputFormat, state: OutputState): ToolDefinition =>
  fromJsonSchema({
    name: outputTool,
    description:
      "Gives your final answer. Call it once, when you have everything that the answer needs; nothing is asked of you " +
      `after it. Its input is the answer itself.${format.description === undefined ? "" : ` ${format.description}`}`,
    parameters: format.schema,
    execute: (input) =>
      Either.match(checkOf(format), {
        onLeft: (details) =>
          new ToolFailure({ type: "output.schema", message: `the form of the answer cannot be used: ${details}` }),
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

/** What the model is told that answered in another way. */
export const correction = `Give the answer by calling ${outputTool}, in the form that it asks for; text alone is not read.`

/** The structured answer in a message, if it holds one. */
export const structuredOutput = (message: Message): JsonRecord | undefined => {
  if (message.type !== "assistant") return undefined
  const accepted = message.content.findLast(
    (part): part is ToolPart => part.type === "tool" && part.name === outputTool && part.state === "completed"
  )
  // Results of tools are cut where they are long; inputs are whole.
  return accepted?.input
}
