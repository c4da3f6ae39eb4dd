/**
 * Discord's gateway: hello, heartbeats, identify, dispatch, resume, invalid sessions and close codes. Sessions outlive their
 * connections, so that a resume gets the events in between. Events come from `Dispatching.ts`.
 */
import { GatewayIntentBits, GatewayOpcodes } from "discord.js"
import { Effect, Either, Schema } from "effect"
import { randomUUID } from "node:crypto"
import type { Server } from "node:http"
import { type WebSocket, WebSocketServer } from "ws"
import { dispatchTo } from "./Dispatching.ts"
import * as Wire from "./Wire.ts"
import { changed, type Dispatch, type GatewaySession, type World } from "./World.ts"

const Frame = Schema.parseJson(Schema.Struct({ op: Schema.Int, d: Schema.optional(Schema.Unknown) }))
const Identify = Schema.Struct({ token: Schema.String, intents: Schema.Int })
const Resume = Schema.Struct({ token: Schema.String, session_id: Schema.String, seq: Schema.Int })

const allIntents = Object.values(GatewayIntentBits).reduce<number>(
  (sum, bit) => (typeof bit === "number" ? sum | bit : sum),
  0
)

/** One connection. */
interface Connection {
  readonly socket: WebSocket
  session: GatewaySession | undefined
  frames: number
  heartbeats: number
}

const send = ({ socket }: Connection, op: number, d: unknown, event?: Dispatch) => {
  if (socket.readyState === socket.OPEN)
    socket.send(JSON.stringify({ op, d, s: event?.s ?? null, t: event?.t ?? null }))
}

const close = (world: World, { socket }: Connection, code: number) => {
  world.closed.push({ by: "server", code })
  socket.close(code)
}

/** Connects a session: its events go to this connection from now on. */
const attach = (connection: Connection, session: GatewaySession) => {
  connection.session = session
  session.send = (event) => send(connection, GatewayOpcodes.Dispatch, event.d, event)
}

const identify = (world: World, connection: Connection, data: unknown) => {
  const decoded = Schema.decodeUnknownEither(Identify)(data)
  if (Either.isLeft(decoded)) return close(world, connection, 4002)
  const { intents, token } = decoded.right
  if (token !== world.settings.token) return close(world, connection, 4004)
  if ((intents & ~allIntents) !== 0) return close(world, connection, 4013)
  if ((intents & ~world.gateway.intents) !== 0) return close(world, connection, 4014)
  const session: GatewaySession = { id: randomUUID(), intents, seq: 0, events: [], send: undefined }
  world.sessions.set(session.id, session)
  attach(connection, session)
  dispatchTo(world, session, "READY", {
    v: 10,
    user: Wire.userOf(world.bot),
    guilds: [{ id: world.guildId, unavailable: true }],
    session_id: session.id,
    resume_gateway_url: `ws://127.0.0.1:${world.address.port}`,
    application: { id: world.bot.id, flags: 0 },
    shard: [0, 1]
  })
  announce(world, connection)
}

/** Announces the guild when its time has come. */
const announce = (world: World, { heartbeats, session }: Connection) => {
  if (session === undefined || heartbeats !== world.gateway.announcesAfter) return
  if ((session.intents & GatewayIntentBits.Guilds) === 0) return
  dispatchTo(world, session, "GUILD_CREATE", Wire.guildCreated(world))
}

/** A session that is gone, or that no longer keeps what the client misses, is invalid: the client identifies anew. */
const resume = (world: World, connection: Connection, data: unknown) => {
  const decoded = Schema.decodeUnknownEither(Resume)(data)
  if (Either.isLeft(decoded)) return close(world, connection, 4002)
  const { seq, session_id: id, token } = decoded.right
  if (token !== world.settings.token) return close(world, connection, 4004)
  const session = world.sessions.get(id)
  const oldest = session?.events[0]?.s ?? 1
  if (session === undefined || !world.gateway.resumes || seq < oldest - 1)
    return send(connection, GatewayOpcodes.InvalidSession, false)
  if (seq > session.seq) return close(world, connection, 4007)
  const from = Math.max(0, seq - world.faults.rewind())
  attach(connection, session)
  for (const event of session.events.filter(({ s, t }) => s > from && t !== "READY"))
    send(connection, GatewayOpcodes.Dispatch, event.d, event)
  dispatchTo(world, session, "RESUMED", {})
}

const receive = (world: World, connection: Connection, text: string) => {
  const decoded = Schema.decodeEither(Frame)(text)
  if (Either.isLeft(decoded)) return close(world, connection, 4002)
  const { d, op } = decoded.right
  connection.frames += 1
  // 120 frames a minute; no connection of a test lives longer.
  if (connection.frames > 120) return close(world, connection, 4008)
  switch (op) {
    case GatewayOpcodes.Heartbeat: {
      world.gateway.heartbeats += 1
      connection.heartbeats += 1
      announce(world, connection)
      if (world.gateway.acknowledges) send(connection, GatewayOpcodes.HeartbeatAck, null)
      return
    }
    case GatewayOpcodes.Identify:
      return connection.session === undefined ? identify(world, connection, d) : close(world, connection, 4005)
    case GatewayOpcodes.Resume:
      return connection.session === undefined ? resume(world, connection, d) : close(world, connection, 4005)
    case GatewayOpcodes.PresenceUpdate:
    case GatewayOpcodes.VoiceStateUpdate:
    case GatewayOpcodes.RequestGuildMembers:
      return connection.session === undefined ? close(world, connection, 4003) : undefined
    default:
      return close(world, connection, 4001)
  }
}

export interface Gateway {
  /** Closes all connections with a code; without a code they break. */
  readonly drop: (code?: number) => void
  /** Asks clients to reconnect. */
  readonly reconnect: () => void
  /** Tells clients that their session is invalid; a resumable one may be resumed. */
  readonly invalidate: (resumable: boolean) => void
  readonly connections: () => number
}

/** Serves the gateway on an HTTP server, until the scope closes. */
export const serve = Effect.fnUntraced(function* (world: World, server: Server) {
  const open = new Set<Connection>()
  const sockets = yield* Effect.acquireRelease(
    Effect.sync(() => new WebSocketServer({ server })),
    (sockets) =>
      Effect.sync(() => {
        for (const { socket } of open) socket.terminate()
        sockets.close()
      })
  )
  sockets.on("connection", (socket) => {
    const connection: Connection = { socket, session: undefined, frames: 0, heartbeats: 0 }
    open.add(connection)
    socket.on("message", (data) => {
      receive(world, connection, String(data))
      changed(world)
    })
    socket.on("error", () => socket.terminate())
    socket.on("close", (code) => {
      open.delete(connection)
      world.closed.push({ by: "client", code })
      const { session } = connection
      if (session !== undefined) {
        session.send = undefined
        // A client that says goodbye ends its session.
        if (code === 1000 || code === 1001) world.sessions.delete(session.id)
      }
      changed(world)
    })
    send(connection, GatewayOpcodes.Hello, { heartbeat_interval: world.settings.heartbeat })
  })
  const each = (act: (connection: Connection) => void) => {
    for (const connection of open) act(connection)
  }
  const gateway: Gateway = {
    drop: (code) =>
      each((connection) => (code === undefined ? connection.socket.terminate() : close(world, connection, code))),
    reconnect: () => each((connection) => send(connection, GatewayOpcodes.Reconnect, null)),
    invalidate: (resumable) =>
      each((connection) => {
        if (!resumable && connection.session !== undefined) world.sessions.delete(connection.session.id)
        send(connection, GatewayOpcodes.InvalidSession, resumable)
      }),
    connections: () => open.size
  }
  return gateway
})
