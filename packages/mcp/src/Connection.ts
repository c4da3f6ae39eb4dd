/**
 * Runs one connection to a server, for the life of its scope: cancellable requests, notifications that its tools
 * changed, and detection of its loss. `Supervisor.ts` owns tools, status and reconnection. Spec: MC-3..MC-6, MC-20,
 * MC-23.
 */
import type { Client } from "@modelcontextprotocol/sdk/client/index.js"
import type { Progress, ResultSchema } from "@modelcontextprotocol/sdk/types.js"
import { Deferred, Effect, Predicate, Queue } from "effect"
import type { JsonRecord } from "@daybook/log/domain/Values"
import { unansweredWords } from "@daybook/log/support/SystemError"
import { inSentence, isStdio, type McpServer, type Redactor, ServerFault } from "./McpServer.ts"
import { type Listing, listingLimits, readListing } from "./ToolListing.ts"
import type { ServerTransport } from "./Transports.ts"

// Phrases what goes wrong on a connection to a server, without the server's secrets.

/** The other side of a connection. */
export interface Peer {
  readonly server: McpServer
  readonly way: ServerTransport
  readonly redact: Redactor
}

/** Codes of the protocol's errors. */
const connectionClosed = -32000
const methodNotFound = -32601

/** The code of an error, if it has one. */
const codeOf = (cause: unknown): unknown => (Predicate.hasProperty(cause, "code") ? cause.code : undefined)

/** The server has forgotten the session: 404 by the protocol, or 400 with a word about the session. */
const isForgotten = ({ way }: Peer, cause: unknown): boolean =>
  way.hasSession() &&
  (codeOf(cause) === 404 || (codeOf(cause) === 400 && cause instanceof Error && /session/i.test(cause.message)))

/** The HTTP connection broke, or its address leads nowhere. */
const isLoss = (cause: unknown): boolean => cause instanceof TypeError || codeOf(cause) === 404

/** Describes an error of the transport or the protocol, with its cause. */
const describe = (cause: unknown): string => {
  if (!(cause instanceof Error)) return String(cause)
  const inner = cause.cause instanceof Error ? cause.cause : undefined
  const behind = inner === undefined ? "" : inner.message !== "" ? inner.message : String(codeOf(inner) ?? inner.name)
  return behind === "" || cause.message.includes(behind) ? cause.message : `${cause.message}: ${behind}`
}

const fault = ({ redact }: Peer, details: string) => new ServerFault({ details: inSentence(redact.all(details)) })

const lostFault = ({ redact }: Peer, details: string) =>
  new ServerFault({ details: inSentence(redact.all(details)), reason: "lost" })

const forgotten = () => new ServerFault({ details: "it no longer knows the session", reason: "forgotten" })

const faultOf = (peer: Peer, cause: unknown): ServerFault =>
  codeOf(cause) === connectionClosed
    ? lostFault(peer, "it closed the connection before it answered")
    : isForgotten(peer, cause)
      ? forgotten()
      : isLoss(cause)
        ? lostFault(peer, describe(cause))
        : fault(peer, describe(cause))

/** Why no connection could be made. */
const unreachable = (peer: Peer, cause: unknown): ServerFault => {
  const { server, way } = peer
  if (!isStdio(server)) return fault(peer, `it cannot be reached: ${unansweredWords(cause)}`)
  switch (codeOf(cause)) {
    case "ENOENT":
      return fault(
        peer,
        `there is no command ${JSON.stringify(server.command)}` +
          (server.cwd === undefined ? "" : `, or no folder ${JSON.stringify(server.cwd)}`)
      )
    case "EACCES":
      return fault(peer, `the command ${JSON.stringify(server.command)} may not be run`)
    case connectionClosed:
      return new ServerFault({ details: `its process ended before it answered${way.lastWords()}` })
    default:
      return new ServerFault({
        details: fault(peer, `it does not start: ${describe(cause)}`).details + way.lastWords()
      })
  }
}

// Sends requests to a connected server, and reads its lists in pages.

/** A resource that a server lists. */
export interface McpResource {
  readonly uri: string
  readonly name: string
  readonly description?: string
  readonly mime?: string
}

export interface Connected {
  readonly client: Client
  readonly peer: Peer
  readonly results: typeof ResultSchema
}

/** The longest timer: our own clock limits a request. */
const noTimeout = 2 ** 31 - 1

/** The most resources that are listed. */
const resourceLimit = 1_000

const request = (
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
const listTools = (connected: Connected) =>
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
const listResources = (connected: Connected) =>
  connected.client.getServerCapabilities()?.resources === undefined
    ? Effect.succeed<ReadonlyArray<McpResource>>([])
    : Effect.map(pages(connected, "resources/list", "resources", resourceLimit), (values) =>
        values.slice(0, resourceLimit).flatMap(readResourceEntry)
      )

const pingTimeout = "5 seconds"

/** What the transport and the server report on their own. */
interface Signals {
  /** The server announced that its tools changed. */
  readonly changed: Queue.Queue<void>
  /** The transport reported an error. */
  readonly doubts: Queue.Queue<void>
  readonly closed: Deferred.Deferred<void>
}

const makeSignals: Effect.Effect<Signals> = Effect.all({
  changed: Queue.sliding<void>(1),
  doubts: Queue.sliding<void>(1),
  closed: Deferred.make<void>()
})

/** Connects a client that reports to the signals. */
const open = Effect.fnUntraced(function* (peer: Peer, { changed, closed, doubts }: Signals) {
  const [{ Client }, { ResultSchema, ToolListChangedNotificationSchema }] = yield* Effect.promise(() =>
    Promise.all([import("@modelcontextprotocol/sdk/client/index.js"), import("@modelcontextprotocol/sdk/types.js")])
  )
  // No capabilities: sampling, elicitation and roots are not offered to servers (MC-6).
  const client = new Client({ name: "daybook", version: "1" }, { capabilities: {} })
  client.setNotificationHandler(ToolListChangedNotificationSchema, () => void changed.unsafeOffer(undefined))
  // oxlint-disable unicorn/prefer-add-event-listener -- the client has no listeners
  client.onclose = () => Deferred.unsafeDone(closed, Effect.void)
  client.onerror = () => void doubts.unsafeOffer(undefined)
  // oxlint-enable unicorn/prefer-add-event-listener
  yield* Effect.tryPromise({
    try: () => client.connect(peer.way.transport, { timeout: noTimeout }),
    catch: (cause) => unreachable(peer, cause)
  })
  peer.way.answered()
  return { client, peer, results: ResultSchema } satisfies Connected
})

/** Checks that the server is alive: any answer counts, even "method not found". */
const ping = (peer: Peer, client: Client) =>
  Effect.tryPromise({
    try: (signal) => client.ping({ signal, timeout: noTimeout }),
    catch: (cause) => cause
  }).pipe(
    Effect.catchIf(
      (cause) => codeOf(cause) === methodNotFound,
      () => Effect.void
    ),
    Effect.mapError((cause) =>
      isForgotten(peer, cause) ? forgotten() : fault(peer, `it was lost: ${describe(cause)}`)
    ),
    Effect.timeoutFail({ duration: pingTimeout, onTimeout: () => fault(peer, "it was lost: it no longer answers") })
  )

/** Fails when the server is lost. */
const lost = ({ client, peer }: Connected, { closed, doubts }: Signals): Effect.Effect<never, ServerFault> => {
  const { server, way } = peer
  const ended = Effect.zipRight(
    Deferred.await(closed),
    Effect.suspend(
      () =>
        new ServerFault({ details: `${isStdio(server) ? "its process" : "the connection"} ended${way.lastWords()}` })
    )
  )
  // HTTP has no connection that could break, so the server is pinged after every transport error.
  const examined = Effect.forever(Effect.zipRight(Queue.take(doubts), ping(peer, client)))
  return Effect.raceFirst(ended, examined)
}

export const connect = Effect.fn("Mcp.connect")(function* (server: McpServer, way: ServerTransport, redact: Redactor) {
  const signals = yield* makeSignals
  const connected = yield* open({ server, way, redact }, signals)
  return {
    listTools: listTools(connected),
    callTool: (name: string, input: JsonRecord, onProgress: (progress: Progress) => void) =>
      request(connected, "tools/call", { name, arguments: input }, onProgress),
    listResources: listResources(connected),
    readResource: (uri: string) => request(connected, "resources/read", { uri }),
    /** Waits until the server announces that its tools changed. */
    changed: Queue.take(signals.changed),
    /** Fails when the server is lost; never succeeds. */
    lost: lost(connected, signals),
    /** Removes the server's secrets from a text. */
    redact: redact.all
  }
})

/** A connected server. Interrupting a request cancels it on the server. */
export type Connection = Effect.Effect.Success<ReturnType<typeof connect>>
