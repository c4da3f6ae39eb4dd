/** Sends requests to a connected server, and reads its lists in pages. Spec: MC-20, MC-23. */
import type { Client } from "@modelcontextprotocol/sdk/client/index.js"
import type { Progress, ResultSchema } from "@modelcontextprotocol/sdk/types.js"
import { Effect, Predicate } from "effect"
import type { JsonRecord } from "@daybook/log/domain/Values"
import { fault, faultOf, type Peer } from "./ConnectionFault.ts"
import { inSentence } from "./McpServer.ts"
import { type Listing, listingLimits, readListing } from "./ToolListing.ts"

/** A resource that a server lists. */
export interface McpResource {
  readonly uri: string
  readonly name: string
  readonly description?: string
  readonly mime?: string
}

/** A client that is connected to its server. */
export interface Connected {
  readonly client: Client
  readonly peer: Peer
  /** The protocol's result schema; the SDK is loaded when first needed. */
  readonly results: typeof ResultSchema
}

/** The longest timer: our own clock limits a request. */
export const noTimeout = 2 ** 31 - 1

/** The most resources that are listed. */
const resourceLimit = 1_000

/** Sends a request; interruption sends the protocol's cancellation. */
export const request = (
  { client, peer, results }: Connected,
  method: string,
  params: JsonRecord,
  onprogress?: (progress: Progress) => void
) =>
  Effect.tryPromise({
    try: (signal): Promise<JsonRecord> =>
      client.request({ method, params }, results, {
        signal,
        timeout: noTimeout,
        ...(onprogress === undefined ? {} : { onprogress })
      }),
    catch: (cause) => faultOf(peer, cause)
  })

/** Reads a paged list; the number of pages is bounded. */
const pages = Effect.fnUntraced(function* (connected: Connected, method: string, key: string, limit: number) {
  const all: Array<unknown> = []
  let cursor: string | undefined
  for (let page = 0; page < listingLimits.pages; page++) {
    const result = yield* request(connected, method, cursor === undefined ? {} : { cursor })
    const values = result[key]
    if (!Array.isArray(values)) {
      return yield* fault(connected.peer, `it answered ${method} without a list of ${key}`)
    }
    all.push(...values.slice(0, limit + 1 - all.length))
    const next = result["nextCursor"]
    if (typeof next !== "string" || all.length > limit) break
    cursor = next
  }
  return all
})

/** The server's tools; none if it does not offer tools. */
export const listTools = (connected: Connected) =>
  connected.client.getServerCapabilities()?.tools === undefined
    ? Effect.succeed<Listing>({ tools: [], leftOut: [] })
    : Effect.flatMap(pages(connected, "tools/list", "tools", listingLimits.tools), (values) =>
        Effect.try({ try: () => readListing(values), catch: (cause) => faultOf(connected.peer, cause) })
      )

const readResourceEntry = (value: unknown): ReadonlyArray<McpResource> => {
  if (!Predicate.isReadonlyRecord(value) || typeof value["uri"] !== "string") return []
  const { description, mimeType, name, title, uri } = value
  const shown = [title, name].find((each) => typeof each === "string" && each !== "")
  return [
    {
      uri,
      name: typeof shown === "string" ? inSentence(shown, 200) : uri,
      ...(typeof description === "string" ? { description: inSentence(description) } : {}),
      ...(typeof mimeType === "string" ? { mime: inSentence(mimeType, 100) } : {})
    }
  ]
}

/** The server's resources; none if it does not offer resources. */
export const listResources = (connected: Connected) =>
  connected.client.getServerCapabilities()?.resources === undefined
    ? Effect.succeed<ReadonlyArray<McpResource>>([])
    : Effect.map(pages(connected, "resources/list", "resources", resourceLimit), (values) =>
        values.slice(0, resourceLimit).flatMap(readResourceEntry)
      )
