/**
 * Provides answers of a given schema: the model calls a tool whose input is the answer. The input is validated; an
 * invalid one is returned with its errors, once. The value is the input of the accepted call, in the log. Spec:
 * RQ-40..44.
 */
import Ajv04 from "ajv-draft-04"
import { Ajv, type ErrorObject, type ValidateFunction } from "ajv"
import { Ajv2019 } from "ajv/dist/2019.js"
import { Ajv2020 } from "ajv/dist/2020.js"
import { Effect, Either, Predicate, Schema } from "effect"
import { RE2JS } from "re2js"
import type { Message, ToolPart } from "@daybook/log/domain/Message"
import { JsonRecord, type OutputFormat } from "@daybook/log/domain/Values"
import { ToolFailure } from "../domain/ToolError.ts"
import { maxExpressionLength } from "../support/Limits.ts"
import { fromJsonSchema, type ToolDefinition } from "../tool/ToolDefinition.ts"
import { putNewest } from "@daybook/log/support/Newest"
import { messageOf } from "@daybook/log/support/SystemError"

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

const notASchema = (cause: unknown): string => `it is not a valid JSON Schema: ${messageOf(cause)}`

/** The validators of the draft that a schema names. A schema without a name is one of the first that it is valid in. */
const validatorsOf = (draft: unknown) => {
  if (typeof draft !== "string") return [Ajv2020, Ajv, Ajv04.default]
  if (draft.includes("/draft-04/")) return [Ajv04.default]
  if (/\/draft-0[67]\//.test(draft)) return [Ajv]
  return draft.includes("/2019-09/") ? [Ajv2019] : [Ajv2020]
}

/** The part of a schema at a local reference: `#/$defs/Ticket`. */
const partAt = (schema: JsonRecord, reference: string): JsonRecord | undefined => {
  if (!reference.startsWith("#/")) return undefined
  const names = reference.slice(2).split("/")
  let part: unknown = schema
  for (const name of names) {
    const key = decodeURIComponent(name).replaceAll("~1", "/").replaceAll("~0", "~")
    if (!Predicate.isReadonlyRecord(part) || !Object.hasOwn(part, key)) return undefined
    part = part[key]
  }
  return isJsonRecord(part) ? part : undefined
}

const isJsonRecord = Schema.is(JsonRecord)

/** The schema with its root in place of a reference to the root; models want an object there. */
const rooted = (schema: JsonRecord): Either.Either<JsonRecord, string> => {
  let root = schema
  const seen = new Set<string>()
  while (root["type"] === undefined && typeof root["$ref"] === "string") {
    const reference = root["$ref"]
    const part = seen.has(reference) ? undefined : partAt(schema, reference)
    if (part === undefined) return Either.left(`its root refers to ${JSON.stringify(reference)}, which is not in it`)
    seen.add(reference)
    const { $ref: _, ...beside } = root
    root = { ...beside, ...part }
  }
  if (root["type"] !== "object") return Either.left(`its root must be an object: "type": "object"`)
  return Either.right(root)
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
  const root = rooted(schema)
  if (Either.isLeft(root)) return Either.left(root.left)
  // An asynchronous check returns a promise, which would always count as valid.
  if ("$async" in schema) return Either.left("asynchronous schemas are not supported: remove $async")
  const check = compile(root.right)
  if (Either.isLeft(check)) return check
  putNewest(compiled, text, check.right, compiledLimit)
  return check
}

/** Compiles by the drafts in order; the first one's fault is told. */
const compile = ({ $schema, ...words }: JsonRecord): Either.Either<ValidateFunction, string> => {
  const options = { allErrors: true, strict: false, validateFormats: false, logger: false } as const
  let fault: string | undefined
  for (const Validator of validatorsOf($schema)) {
    try {
      // A separate instance per schema, so that schemas do not share ids.
      return Either.right(new Validator({ ...options, code: { regExp: linearExpression } }).compile(words))
    } catch (cause) {
      fault ??= notASchema(cause)
    }
  }
  return Either.left(fault ?? notASchema("no draft is known"))
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
    parameters: Either.getOrElse(rooted(format.schema), () => format.schema),
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

export const structuredOutput = (message: Message): JsonRecord | undefined => {
  if (message.type !== "assistant") return undefined
  const accepted = message.content.findLast(
    (part): part is ToolPart => part.type === "tool" && part.name === outputTool && part.state === "completed"
  )
  // Tool results may be truncated; inputs are complete.
  return accepted?.input
}
