/**
 * Converts a server's tool list to the form that providers accept: bounded, with an object at the root of each schema.
 * A tool that cannot be offered is left out and named, and does not affect the others. Pure. Spec: MC-11..MC-13.
 */
import { Option, Predicate, Record, Schema } from "effect"
import { fingerprint } from "@daybook/core/support/Fingerprint"
import { JsonRecord } from "@daybook/log/domain/Values"
import { inSentence } from "./McpServer.ts"

export const listingLimits = { tools: 1_000, pages: 100, description: 4_000, schemaBytes: 32 * 1024 } as const

/** A tool as its server describes it. Hints of harmlessness have no authority: they only affect the fingerprint. */
export interface ListedTool {
  readonly name: string
  /** The fingerprint of the complete description (PM-40). */
  readonly fingerprint: string
  readonly description?: string
  readonly parameters: JsonRecord
}

/** The tools that can be offered, and the others with the reason. */
export interface Listing {
  readonly tools: ReadonlyArray<ListedTool>
  readonly leftOut: ReadonlyArray<string>
}

const Described = Schema.Struct({
  name: Schema.NonEmptyString,
  title: Schema.optional(Schema.Unknown),
  description: Schema.optional(Schema.Unknown),
  inputSchema: Schema.optional(Schema.Unknown),
  annotations: Schema.optional(Schema.Unknown),
  execution: Schema.optional(Schema.Unknown)
})
const decode = Schema.decodeUnknownOption(Described)

const combinators = ["allOf", "anyOf", "oneOf"] as const
const notAtRoot: ReadonlySet<string> = new Set([...combinators, "enum", "not"])

const propertiesOf = (schema: unknown): JsonRecord =>
  Predicate.isRecord(schema) && Predicate.isRecord(schema["properties"])
    ? Object.fromEntries(Object.entries(schema["properties"]))
    : {}

/**
 * Gives the schema an object at its root. Some providers refuse a request whose tools have combinators there: they are
 * removed, and the properties that they name become optional ones. The server still validates the input.
 */
export const objectSchema = (schema: JsonRecord): JsonRecord => {
  const branches = combinators.flatMap((key) => (Array.isArray(schema[key]) ? schema[key] : []))
  const rest = Record.filter(schema, (_, key) => !notAtRoot.has(key))
  // In one pass: a server may send a million branches.
  const properties = Object.fromEntries([...branches, schema].flatMap((each) => Object.entries(propertiesOf(each))))
  return { ...rest, type: "object", properties }
}

const readTool = (value: unknown): ListedTool | string => {
  const described = decode(value)
  if (Option.isNone(described)) return "a tool without a name"
  const { annotations, description, execution, inputSchema, name, title } = described.value
  const without = (reason: string) => `${inSentence(name, 100)} (${reason})`
  if (Predicate.isRecord(execution) && execution["taskSupport"] === "required") {
    return without("it can only be called as a task, which is not supported")
  }
  if (inputSchema !== undefined && !Predicate.isRecord(inputSchema)) return without("its schema is not an object")
  const parameters = objectSchema(Object.fromEntries(Object.entries(inputSchema ?? {})))
  if (Buffer.byteLength(JSON.stringify(parameters)) > listingLimits.schemaBytes) {
    return without(`its schema has more than ${listingLimits.schemaBytes} bytes`)
  }
  const text = [description, title].find((each) => typeof each === "string" && each.trim() !== "")
  const tool = { name, parameters, fingerprint: fingerprint({ name, title, description, inputSchema, annotations }) }
  if (typeof text !== "string") return tool
  const { description: limit } = listingLimits
  return { ...tool, description: text.length <= limit ? text : `${text.slice(0, limit)}...` }
}

/** Excessive nesting overflows the stack: it costs one tool, not the list. */
const readNested = (value: unknown): ListedTool | string =>
  Option.getOrElse(Option.liftThrowable(() => readTool(value))(), () => "a tool that is nested too deeply")

/** Reads the tools of all pages; if two have the same name, the first wins. */
export const readListing = (values: ReadonlyArray<unknown>): Listing => {
  const tools = new Map<string, ListedTool>()
  const leftOut: Array<string> = []
  for (const value of values.slice(0, listingLimits.tools)) {
    const tool = readNested(value)
    if (typeof tool === "string") leftOut.push(tool)
    else if (!tools.has(tool.name)) tools.set(tool.name, tool)
  }
  if (values.length > listingLimits.tools) leftOut.push(`all tools after the first ${listingLimits.tools}`)
  return { tools: [...tools.values()], leftOut }
}

/** Describes the tools that are not offered; undefined if there are none. */
export const describeLeftOut = ({ leftOut }: Listing): string | undefined => {
  if (leftOut.length === 0) return undefined
  const more = leftOut.length > 5 ? ` and ${leftOut.length - 5} more` : ""
  return `tools not offered: ${leftOut.slice(0, 5).join(", ")}${more}`
}
