/**
 * Runs one connection to a server, for the life of its scope: cancellable requests, notifications that its tools
 * changed, and detection of its loss. `Supervisor.ts` owns tools, status and reconnection. Spec: MC-3..MC-6, MC-20,
 * MC-23.
 */
import type { Progress } from "@modelcontextprotocol/sdk/types.js"
import { Deferred, Effect, Predicate, Queue } from "effect"
import type { JsonRecord } from "@daybook/log/domain/Values"
import { inSentence, isStdio, type McpServer, type Redactor } from "./McpServer.ts"
import { ServerFault } from "./ServerFault.ts"
import { type Listing, listingLimits, readListing } from "./ToolListing.ts"
import type { Way } from "./Transports.ts"

/** A resource that a server lists. */
export interface McpResource {
  readonly uri: string
  readonly name: string
  readonly description?: string
  readonly mime?: string
}

/** A connected server. Interrupting a request cancels it on the server. */
export interface Connection {
  readonly listTools: Effect.Effect<Listing, ServerFault>
  readonly callTool: (
    name: string,
    input: JsonRecord,
    onProgress: (progress: Progress) => void
  ) => Effect.Effect<JsonRecord, ServerFault>
  readonly listResources: Effect.Effect<ReadonlyArray<McpResource>, ServerFault>
  readonly readResource: (uri: string) => Effect.Effect<JsonRecord, ServerFault>
  /** Waits until the server announces that its tools changed. */
  readonly changed: Effect.Effect<void>
  /** Fails when the server is lost; never succeeds. */
  readonly lost: Effect.Effect<never, ServerFault>
  /** Removes the server's secrets from a text. */
  readonly redact: (text: string) => string
}

/** The longest timer: our own clock limits a request. */
const noTimeout = 2 ** 31 - 1

/** Codes of the protocol's errors. */
const connectionClosed = -32000
const methodNotFound = -32601

const pingTimeout = "5 seconds"

const resourceLimit = 1_000

const codeOf = (cause: unknown): unknown => (Predicate.hasProperty(cause, "code") ? cause.code : undefined)

/** The HTTP connection broke, or the server forgot the session: both require a new connection. */
const isLoss = (cause: unknown): boolean => cause instanceof TypeError || codeOf(cause) === 404

/** Describes an error of the transport or the protocol, with its cause. */
const describe = (cause: unknown): string => {
  if (!(cause instanceof Error)) return String(cause)
  const inner = cause.cause instanceof Error ? cause.cause : undefined
  const behind = inner === undefined ? "" : inner.message !== "" ? inner.message : String(codeOf(inner) ?? inner.name)
  return behind === "" || cause.message.includes(behind) ? cause.message : `${cause.message}: ${behind}`
}

/** Connects to a server; fails with the reason if it cannot be reached. The connection closes with its transport. */
export const connect = Effect.fn("Mcp.connect")(function* (
  server: McpServer,
  way: Way,
  redact: Redactor
): Effect.fn.Return<Connection, ServerFault> {
  const changed = yield* Queue.sliding<void>(1)
  const doubts = yield* Queue.sliding<void>(1)
  const closed = yield* Deferred.make<void>()
  const [{ Client }, { ResultSchema, ToolListChangedNotificationSchema }] = yield* Effect.promise(() =>
    Promise.all([import("@modelcontextprotocol/sdk/client/index.js"), import("@modelcontextprotocol/sdk/types.js")])
  )
  const fault = (details: string) => new ServerFault({ details: inSentence(redact.all(details)) })
  const lost = (details: string) => new ServerFault({ details: inSentence(redact.all(details)), lost: true })
  const faultOf = (cause: unknown) =>
    codeOf(cause) === connectionClosed
      ? lost("it closed the connection before it answered")
      : isLoss(cause)
        ? lost(describe(cause))
        : fault(describe(cause))
  const unreachable = (cause: unknown) => {
    if (!isStdio(server)) return fault(`it cannot be reached: ${describe(cause)}`)
    switch (codeOf(cause)) {
      case "ENOENT":
        return fault(
          `there is no command ${JSON.stringify(server.command)}` +
            (server.cwd === undefined ? "" : `, or no folder ${JSON.stringify(server.cwd)}`)
        )
      case "EACCES":
        return fault(`the command ${JSON.stringify(server.command)} may not be run`)
      case connectionClosed:
        return new ServerFault({ details: `its process ended before it answered${way.lastWords()}` })
      default:
        return new ServerFault({ details: fault(`it does not start: ${describe(cause)}`).details + way.lastWords() })
    }
  }

  // No capabilities: sampling, elicitation and roots are not offered to servers (MC-6).
  const client = new Client({ name: "daybook", version: "1" }, { capabilities: {} })
  client.setNotificationHandler(ToolListChangedNotificationSchema, () => void changed.unsafeOffer(undefined))
  // oxlint-disable unicorn/prefer-add-event-listener -- the client has no listeners
  client.onclose = () => Deferred.unsafeDone(closed, Effect.void)
  client.onerror = () => void doubts.unsafeOffer(undefined)
  // oxlint-enable unicorn/prefer-add-event-listener
  yield* Effect.tryPromise({
    try: () => client.connect(way.transport, { timeout: noTimeout }),
    catch: unreachable
  })
  const offers = client.getServerCapabilities() ?? {}

  const request = (method: string, params: JsonRecord, onprogress?: (progress: Progress) => void) =>
    Effect.tryPromise({
      // The aborted signal sends the protocol's cancellation.
      try: (signal): Promise<JsonRecord> =>
        client.request({ method, params }, ResultSchema, {
          signal,
          timeout: noTimeout,
          ...(onprogress === undefined ? {} : { onprogress })
        }),
      catch: faultOf
    })

  /** Reads a paged list; the number of pages is bounded. */
  const pages = Effect.fnUntraced(function* (method: string, key: string, limit: number) {
    const all: Array<unknown> = []
    let cursor: string | undefined
    for (let page = 0; page < listingLimits.pages; page++) {
      const result = yield* request(method, cursor === undefined ? {} : { cursor })
      const values = result[key]
      if (!Array.isArray(values)) return yield* fault(`it answered ${method} without a list of ${key}`)
      all.push(...values.slice(0, limit + 1 - all.length))
      const next = result["nextCursor"]
      if (typeof next !== "string" || all.length > limit) break
      cursor = next
    }
    return all
  })

  const listTools =
    offers.tools === undefined
      ? Effect.succeed<Listing>({ tools: [], leftOut: [] })
      : Effect.flatMap(pages("tools/list", "tools", listingLimits.tools), (values) =>
          Effect.try({ try: () => readListing(values), catch: faultOf })
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

  const listResources =
    offers.resources === undefined
      ? Effect.succeed([])
      : Effect.map(pages("resources/list", "resources", resourceLimit), (values) =>
          values.slice(0, resourceLimit).flatMap(readResourceEntry)
        )

  /** Checks that the server is alive: any answer counts, even "method not found". */
  const ping = Effect.tryPromise({
    try: (signal) => client.ping({ signal, timeout: noTimeout }),
    catch: (cause) => cause
  }).pipe(
    Effect.catchIf(
      (cause) => codeOf(cause) === methodNotFound,
      () => Effect.void
    ),
    Effect.mapError((cause) => fault(`it was lost: ${describe(cause)}`)),
    Effect.timeoutFail({ duration: pingTimeout, onTimeout: () => fault("it was lost: it no longer answers") })
  )
  const ended = Effect.zipRight(
    Deferred.await(closed),
    Effect.suspend(
      () =>
        new ServerFault({ details: `${isStdio(server) ? "its process" : "the connection"} ended${way.lastWords()}` })
    )
  )
  // HTTP has no connection that could break, so the server is pinged after every transport error.
  const examined = Effect.forever(Effect.zipRight(Queue.take(doubts), ping))

  return {
    listTools,
    callTool: (name, input, onProgress) => request("tools/call", { name, arguments: input }, onProgress),
    listResources,
    readResource: (uri) => request("resources/read", { uri }),
    changed: Queue.take(changed),
    lost: Effect.raceFirst(ended, examined),
    redact: redact.all
  }
})
