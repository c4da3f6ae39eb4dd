/**
 * Reads a server's tool list, bounded. A tool that cannot be offered is left out and named, and does not affect the others.
 * `SafeSchema.ts` gives each schema the form that providers accept. Pure. Spec: MC-11..MC-13, MC-687.
 */
import { Option, Predicate, Schema } from "effect"
import { fingerprint } from "@daybook/core/support/Fingerprint"
import { inSentence } from "./McpServer.ts"
import { sanitise } from "./SafeSchema.ts"

export const listingLimits = { tools: 1_000, pages: 100, description: 4_000, schemaBytes: 32 * 1024 } as const

/** A tool as its server describes it. Hints of harmlessness have no authority: they only affect the fingerprint. */
export interface ListedTool {
  readonly name: string
  /** The fingerprint of the complete description (PM-40). */
  readonly fingerprint: string
  readonly description?: string
  /** As the server gave it: anything. */
  readonly inputSchema: unknown
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

const readTool = (value: unknown): ListedTool | string => {
  const described = decode(value)
  if (Option.isNone(described)) return "a tool without a name"
  const { annotations, description, execution, inputSchema, name, title } = described.value
  const without = (reason: string) => `${inSentence(name, 100)} (${reason})`
  if (Predicate.isRecord(execution) && execution["taskSupport"] === "required") {
    return without("it can only be called as a task, which is not supported")
  }
  if (Buffer.byteLength(JSON.stringify(inputSchema ?? {})) > listingLimits.schemaBytes) {
    return without(`its schema has more than ${listingLimits.schemaBytes} bytes`)
  }
  const text = [description, title].find((each) => typeof each === "string" && each.trim() !== "")
  const print = fingerprint({ name, title, description, inputSchema, annotations })
  const tool = { name, inputSchema: inputSchema ?? {}, fingerprint: print }
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

const several = (names: ReadonlyArray<string>): string =>
  names.slice(0, 5).join(", ") + (names.length > 5 ? ` and ${names.length - 5} more` : "")

/** Describes the tools that are not offered, or with a repaired schema; undefined if there are none. */
export const describeListing = ({ leftOut, tools }: Listing): string | undefined => {
  const repaired = tools.filter(({ inputSchema }) => sanitise(inputSchema).changed)
  const sentences = [
    ...(leftOut.length === 0 ? [] : [`tools not offered: ${several(leftOut)}`]),
    ...(repaired.length === 0
      ? []
      : [`tools offered with a repaired input schema: ${several(repaired.map(({ name }) => inSentence(name, 100)))}`])
  ]
  return sentences.length === 0 ? undefined : sentences.join("; ")
}
