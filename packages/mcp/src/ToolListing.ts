/**
 * Reads a server's tool list, bounded. A tool that cannot be offered is left out and named, and does not affect the others.
 * `SafeSchema.ts` gives each schema the form that providers accept. Pure. Spec: MC-11..MC-13, MC-541, MC-687 in
 * specs/tools.md.
 */
import { randomUUID } from "node:crypto"
import * as fs from "node:fs/promises"
import * as path from "node:path"
import { Effect, Either, Option, Predicate, Schema } from "effect"
import { makeFolders } from "@daybook/log/storage/PrivateFile"
import { fingerprint, inSentence, type McpServer, serverFingerprint } from "./McpServer.ts"
import { sanitise } from "./SafeSchema.ts"

export const listingLimits = { tools: 1_000, pages: 100, description: 4_000, schemaBytes: 32 * 1024 } as const

/** A tool as its server describes it. Hints of harmlessness have no authority: they only affect the fingerprint. */
const ListedTool = Schema.Struct({
  name: Schema.NonEmptyString,
  /** The fingerprint of the complete description (PM-40). */
  fingerprint: Schema.String,
  description: Schema.optionalWith(Schema.String, { exact: true }),
  /** As the server gave it: anything. */
  inputSchema: Schema.Unknown
})
export type ListedTool = typeof ListedTool.Type

/** The tools that can be offered, and the others with the reason. */
const Listing = Schema.Struct({ tools: Schema.Array(ListedTool), leftOut: Schema.Array(Schema.String) })
export type Listing = typeof Listing.Type

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

// Keeps the tools that a server listed last in a file, so that the next process offers them before the server has
// started.

export interface ToolCache {
  readonly load: (name: string, server: McpServer) => Effect.Effect<Listing | undefined>
  /** Stores the list. A list that cannot be stored is not known at the next start. */
  readonly save: (name: string, server: McpServer, listing: Listing) => Effect.Effect<void>
}

/** Larger lists are not stored. */
const mostBytes = 8 * 1024 * 1024

const Stored = Schema.parseJson(
  Schema.Struct({
    version: Schema.Literal(2),
    /** The configuration of the server. */
    server: Schema.String,
    ...Listing.fields
  })
)

const read = async (file: string): Promise<string> => {
  const { size } = await fs.stat(file)
  return size > mostBytes ? "" : fs.readFile(file, "utf8")
}

const replace = async (file: string, text: string): Promise<void> => {
  await makeFolders(path.dirname(file), 0o700)
  const beside = `${file}.${randomUUID()}`
  try {
    await fs.writeFile(beside, text, { mode: 0o600, flag: "wx" })
    await fs.rename(beside, file)
  } finally {
    await fs.rm(beside, { force: true })
  }
}

export const make = (folder: string | undefined): ToolCache => {
  if (folder === undefined) return { load: () => Effect.succeed(undefined), save: () => Effect.void }
  // Names of servers are plain (MC-1).
  const fileOf = (name: string) => path.join(folder, `${name}.json`)
  return {
    load: (name, server) =>
      Effect.map(Effect.either(Effect.tryPromise(() => read(fileOf(name)))), (text) => {
        const stored = Either.flatMap(text, Schema.decodeEither(Stored))
        return Either.isRight(stored) && stored.right.server === serverFingerprint(server) ? stored.right : undefined
      }),
    save: (name, server, { leftOut, tools }) =>
      Effect.gen(function* () {
        const text = yield* Schema.encode(Stored)({ version: 2, server: serverFingerprint(server), tools, leftOut })
        const file = fileOf(name)
        const before = yield* Effect.orElseSucceed(
          Effect.tryPromise(() => read(file)),
          () => ""
        )
        if (text === before || Buffer.byteLength(text) > mostBytes) return
        yield* Effect.tryPromise(() => replace(file, text))
      }).pipe(
        Effect.catchAll((error) => Effect.logDebug(`the tools of MCP server "${name}" could not be stored`, error))
      )
  }
}
