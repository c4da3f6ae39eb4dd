/**
 * Runs one connection to a server, for the life of its scope: cancellable requests, notifications that its tools
 * changed, and detection of its loss. `Supervisor.ts` owns tools, status and reconnection. Spec: MC-3..MC-6, MC-20,
 * MC-23.
 */
import type { Client } from "@modelcontextprotocol/sdk/client/index.js"
import type { Progress } from "@modelcontextprotocol/sdk/types.js"
import { Deferred, Effect, Queue } from "effect"
import type { JsonRecord } from "@daybook/log/domain/Values"
import {
  codeOf,
  describe,
  fault,
  forgotten,
  isForgotten,
  methodNotFound,
  type Peer,
  unreachable
} from "./ConnectionFault.ts"
import { isStdio, type McpServer, type Redactor } from "./McpServer.ts"
import { ServerFault } from "./ServerFault.ts"
import * as Requests from "./ServerRequests.ts"
import type { Listing } from "./ToolListing.ts"
import type { Way } from "./Transports.ts"

/** A connected server. Interrupting a request cancels it on the server. */
export interface Connection {
  readonly listTools: Effect.Effect<Listing, ServerFault>
  readonly callTool: (
    name: string,
    input: JsonRecord,
    onProgress: (progress: Progress) => void
  ) => Effect.Effect<JsonRecord, ServerFault>
  readonly listResources: Effect.Effect<ReadonlyArray<Requests.McpResource>, ServerFault>
  readonly readResource: (uri: string) => Effect.Effect<JsonRecord, ServerFault>
  /** Waits until the server announces that its tools changed. */
  readonly changed: Effect.Effect<void>
  /** Fails when the server is lost; never succeeds. */
  readonly lost: Effect.Effect<never, ServerFault>
  /** Removes the server's secrets from a text. */
  readonly redact: (text: string) => string
}

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
    try: () => client.connect(peer.way.transport, { timeout: Requests.noTimeout }),
    catch: (cause) => unreachable(peer, cause)
  })
  peer.way.answered()
  return { client, peer, results: ResultSchema } satisfies Requests.Connected
})

/** Checks that the server is alive: any answer counts, even "method not found". */
const ping = (peer: Peer, client: Client) =>
  Effect.tryPromise({
    try: (signal) => client.ping({ signal, timeout: Requests.noTimeout }),
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
const lost = ({ client, peer }: Requests.Connected, { closed, doubts }: Signals): Effect.Effect<never, ServerFault> => {
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

/** Connects to a server; fails with the reason if it cannot be reached. The connection closes with its transport. */
export const connect = Effect.fn("Mcp.connect")(function* (
  server: McpServer,
  way: Way,
  redact: Redactor
): Effect.fn.Return<Connection, ServerFault> {
  const signals = yield* makeSignals
  const connected = yield* open({ server, way, redact }, signals)
  return {
    listTools: Requests.listTools(connected),
    callTool: (name, input, onProgress) =>
      Requests.request(connected, "tools/call", { name, arguments: input }, onProgress),
    listResources: Requests.listResources(connected),
    readResource: (uri) => Requests.request(connected, "resources/read", { uri }),
    changed: Queue.take(signals.changed),
    lost: lost(connected, signals),
    redact: redact.all
  }
})
