/** Listens for HTTP, with bounds on clients that have not sent a request. Spec: HT-26, HT-38, SL-216. */
import { readFile } from "node:fs/promises"
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import { createServer as createSecureServer } from "node:https"
import type { Server as NetServer, Socket } from "node:net"
import { endianness } from "node:os"
import { Duration, Effect, Schema, type Scope } from "effect"
import { codeOf } from "@daybook/log/support/SystemError"

// Finds connections whose peer has vanished, by the retransmissions in Linux's `/proc/net/tcp`: Node sets no limit, and
// Linux gives up after a quarter of an hour.

/** An end of a connection. */
export interface Peer {
  readonly address: string
  readonly port: number
}

/** Milliseconds before Linux sends bytes again for the first time, at least; each further time it waits twice as long. */
const firstWait = 200

/** How often bytes are sent again within this time. */
const repeatsIn = (time: Duration.Duration): number => Math.floor(Math.log2(Duration.toMillis(time) / firstWait + 1))

const files = ["/proc/net/tcp", "/proc/net/tcp6"]

/** One text for each address. */
const normal = (address: string): string => (address.includes(":") ? new URL(`http://[${address}]`).hostname : address)

const addressOf = (hex: string): string => {
  const bytes = (hex.match(/.{8}/g) ?? []).flatMap((word) => {
    const each = [...Buffer.from(word, "hex")]
    return endianness() === "LE" ? each.toReversed() : each
  })
  if (bytes.length === 4) return bytes.join(".")
  return normal((Buffer.from(bytes).toString("hex").match(/.{4}/g) ?? []).join(":"))
}

/** The peers of this port's established connections to which the same bytes were sent again so often. */
export const vanished = (table: string, port: number, repeats: number): ReadonlyArray<Peer> => {
  const local = port.toString(16).toUpperCase().padStart(4, "0")
  const rows = new RegExp(String.raw`^ *\d+: \w+:${local} (\w+):(\w{4}) 01 \S+ \S+ (\w{8}) `, "gm")
  return [...table.matchAll(rows)].flatMap(([, address = "", remote = "", sent = ""]) =>
    Number.parseInt(sent, 16) < repeats ? [] : [{ address: addressOf(address), port: Number.parseInt(remote, 16) }]
  )
}

/** Closes the server's connections whose peer acknowledges nothing for about this time, until the scope closes. */
const closing = (server: NetServer, port: number, within: Duration.Duration): Effect.Effect<void, never, Scope.Scope> =>
  Effect.gen(function* () {
    const sockets = new Set<Socket>()
    server.on("connection", (socket: Socket) => {
      sockets.add(socket)
      socket.once("close", () => sockets.delete(socket))
    })
    const close = async () => {
      for (const file of files) {
        const peers = vanished(await readFile(file, "latin1"), port, repeatsIn(within))
        if (peers.length === 0) continue
        for (const socket of sockets) {
          const { remoteAddress = "", remotePort } = socket
          if (peers.some(({ address, port }) => port === remotePort && address === normal(remoteAddress)))
            socket.destroy()
        }
      }
    }
    const look = Effect.suspend(() => (sockets.size === 0 ? Effect.void : Effect.ignore(Effect.tryPromise(close))))
    yield* Effect.forkScoped(Effect.forever(Effect.delay(look, Duration.times(within, 0.5))))
  })

// The open requests of each connection: Node keeps pipelined requests in memory, also after their connection has ended.

/** Bounds the open requests of a connection. */
export const makePipelines = (most: number) => {
  const connections = new WeakMap<Socket, Set<ServerResponse>>()
  const openOf = (socket: Socket): Set<ServerResponse> => {
    const known = connections.get(socket)
    if (known !== undefined) return known
    const open = new Set<ServerResponse>()
    connections.set(socket, open)
    socket.once("close", () => {
      for (const response of open) {
        response.destroy()
        response.emit("close")
      }
    })
    return open
  }
  return {
    /** Begins a request. False for one too many, which ends its connection; it gets no answer. */
    begin: ({ socket }: IncomingMessage, response: ServerResponse) => {
      const open = openOf(socket)
      // Requests that were parsed together come here even after their connection was ended.
      if (socket.destroyed || open.size >= most) {
        socket.destroy()
        return false
      }
      open.add(response)
      response.once("close", () => open.delete(response))
      return true
    }
  }
}

/** The port cannot be used. */
export class PortUnusable extends Schema.TaggedError<PortUnusable>("@daybook/server/PortUnusable")("PortUnusable", {
  port: Schema.Int,
  /** `in-use`: another process listens there. `denied`: the user may not. */
  reason: Schema.Literal("in-use", "denied", "other"),
  details: Schema.String
}) {
  override get message() {
    return `cannot listen at port ${this.port}: ${this.details}`
  }
}

/** The server's certificate with its chain, and its key, as PEM. */
export interface Certificate {
  readonly cert: string
  readonly key: string
}

/** A client that takes longer is disconnected. A stream of events is a response, and lasts as long as it is read. */
export interface Timeouts {
  /** For the handshake of TLS, and from then, or the last response, to the end of the headers. */
  readonly headers: Duration.Duration
  /** To the end of the body. */
  readonly request: Duration.Duration
  /** For the client to take something of a response that has ended. */
  readonly unread: Duration.Duration
  /** How long the client's machine may leave bytes unacknowledged, where the system reports it. */
  readonly unacknowledged: Duration.Duration
}

export interface ListenOptions {
  /** The address, or a name of it. */
  readonly host: string
  /** 0: a free one. */
  readonly port: number
  readonly certificate?: Certificate | undefined
  /** More are closed at once. */
  readonly maxConnections: number
  readonly timeouts?: Partial<Timeouts> | undefined
}

export interface HttpListener {
  readonly server: Server
  readonly port: number
  /** Takes no more connections, and closes those without a request. */
  readonly close: Effect.Effect<void>
}

/** Why a port cannot be used. */
export const unusable = (port: number, cause: unknown): PortUnusable => {
  switch (codeOf(cause)) {
    case "EADDRINUSE":
      return new PortUnusable({ port, reason: "in-use", details: "another process does; choose another one, or none" })
    case "EACCES":
      return new PortUnusable({ port, reason: "denied", details: "it is reserved; choose one above 1023" })
    case "EADDRNOTAVAIL":
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return new PortUnusable({ port, reason: "other", details: "its host is no address of this machine" })
    default:
      return new PortUnusable({ port, reason: "other", details: String(cause) })
  }
}

/** Bytes of the headers of a request, with its first line. */
export const maxHeaderBytes = 16_384

const defaultTimeouts: Timeouts = {
  headers: Duration.seconds(10),
  request: Duration.seconds(30),
  unread: Duration.seconds(60),
  unacknowledged: Duration.seconds(30)
}

const create = ({ certificate, timeouts }: ListenOptions): Server => {
  const { headers, request, unread } = { ...defaultTimeouts, ...timeouts }
  const bounds = {
    maxHeaderSize: maxHeaderBytes,
    headersTimeout: Duration.toMillis(headers),
    requestTimeout: Duration.toMillis(request),
    keepAliveTimeout: Duration.toMillis("60 seconds"),
    connectionsCheckingInterval: Math.ceil(Duration.toMillis(headers) / 5),
    noDelay: true
  }
  const handshakeTimeout = bounds.headersTimeout
  const server =
    certificate === undefined
      ? createServer(bounds)
      : createSecureServer({ ...bounds, ...certificate, handshakeTimeout })
  // Node would leave out further headers without a word, and with them what makes a request ambiguous. Their bytes are bounded.
  server.maxHeadersCount = 0
  // Node waits forever for a client that does not read. It closes a socket on which nothing moved for this time, and sets
  // another time behind the response.
  server.on("request", ({ socket }, response) => {
    response.once("prefinish", () => socket.setTimeout(Duration.toMillis(unread)))
  })
  return server
}

const begin = (server: Server, { host, port }: ListenOptions) =>
  Effect.async<void, PortUnusable>((resume) => {
    const failed = (cause: Error) => resume(unusable(port, cause))
    server.once("error", failed)
    server.listen({ host, port, backlog: 1024 }, () => {
      server.off("error", failed)
      // A client that cannot be accepted for lack of descriptors stays in the backlog.
      server.on("error", () => {})
      resume(Effect.void)
    })
  })

/** Listens until the scope closes, which closes all connections. */
export const listen = (options: ListenOptions): Effect.Effect<HttpListener, PortUnusable, Scope.Scope> =>
  Effect.gen(function* () {
    const { port } = options
    const server = yield* Effect.acquireRelease(
      Effect.try({ try: () => create(options), catch: (cause) => unusable(port, cause) }),
      (made) =>
        Effect.sync(() => {
          made.close()
          made.closeAllConnections()
        })
    )
    server.maxConnections = options.maxConnections
    yield* begin(server, options)
    const address = server.address()
    const bound = typeof address === "object" && address !== null ? address.port : port
    yield* closing(server, bound, { ...defaultTimeouts, ...options.timeouts }.unacknowledged)
    return {
      server,
      port: bound,
      close: Effect.sync(() => void server.close())
    }
  })
