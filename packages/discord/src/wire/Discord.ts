/**
 * Discord as the bot uses it: requests, which discord.js keeps within the rate limits, and events of the gateway. No
 * request is repeated here: the caller knows whether a repetition is safe. Spec: DI-60..DI-66, DI-69 in
 * specs/discord.md.
 */
import { setTimeout } from "node:timers/promises"
import {
  ActivityType,
  Client,
  DefaultRestOptions,
  DiscordAPIError,
  Events,
  GatewayIntentBits,
  HTTPError,
  Options as CacheOptions,
  RateLimitError,
  type RawFile,
  RequestMethod,
  type RESTOptions
} from "discord.js"
import {
  Context,
  Deferred,
  Effect,
  Layer,
  Match,
  Predicate,
  Queue,
  Redacted,
  Schedule,
  Schema,
  type Scope
} from "effect"
import { unansweredWords } from "@daybook/log/support/SystemError"
import * as Packets from "./Packets.ts"

// How a request leaves: a form as bytes. discord.js hands forms to the process's common dispatcher of undici; where
// another version of undici made that dispatcher, it does not know discord.js's forms, and each upload would fail.

/** Sends a request as discord.js does, a form as bytes with its type. */
export const makeRequest: RESTOptions["makeRequest"] = async (url, init) => {
  if (!(init.body instanceof FormData)) return DefaultRestOptions.makeRequest(url, init)
  const form = new Response(init.body)
  const headers = new Headers(init.headers)
  headers.set("content-type", form.headers.get("content-type") ?? "multipart/form-data")
  const body = new Uint8Array(await form.arrayBuffer())
  return DefaultRestOptions.makeRequest(url, { ...init, body, headers: Object.fromEntries(headers) })
}

// Why Discord did not do what a request asked, by what the bot does next.

/**
 * `lost`: nobody knows whether it was done. `refused`: the bot may not. `channel-gone`, `message-gone`: it was deleted.
 * `archived`: the thread takes no changes. `unauthorized`: the token is not valid. `invalid`: the request itself is wrong.
 * `done-before`: it was done by an earlier request.
 */
export const Reason = Schema.Literal(
  "lost",
  "refused",
  "channel-gone",
  "message-gone",
  "archived",
  "unauthorized",
  "invalid",
  "done-before"
)
export type Reason = typeof Reason.Type

export class DiscordError extends Schema.TaggedError<DiscordError>("@daybook/discord/DiscordError")("DiscordError", {
  reason: Reason,
  /** Discord's number for the error; 0 for none. */
  code: Schema.Int,
  status: Schema.Int,
  details: Schema.String
}) {
  override get message() {
    const code = this.code === 0 ? "" : ` (${this.code})`
    return `Discord: ${this.details}${code}`
  }
}

const byCode: Readonly<Record<number, Reason>> = {
  10_003: "channel-gone",
  10_008: "message-gone",
  10_062: "message-gone",
  40_060: "done-before",
  50_001: "refused",
  50_013: "refused",
  50_083: "archived",
  160_004: "done-before",
  160_005: "refused"
}

const byStatus = (status: number): Reason =>
  Match.value(status).pipe(
    Match.when(401, () => "unauthorized" as const),
    Match.when(403, () => "refused" as const),
    Match.whenOr(408, 429, () => "lost" as const),
    Match.when(
      (status) => status >= 500,
      () => "lost" as const
    ),
    Match.orElse(() => "invalid" as const)
  )

/** The error for what discord.js threw. It holds nothing of the request, and so no token. */
const fromThrown = (thrown: unknown): DiscordError => {
  if (thrown instanceof DiscordAPIError) {
    const code = typeof thrown.code === "number" ? thrown.code : 0
    const reason = byCode[code] ?? byStatus(thrown.status)
    return new DiscordError({ reason, code, status: thrown.status, details: thrown.message })
  }
  if (thrown instanceof HTTPError) {
    return new DiscordError({
      reason: byStatus(thrown.status),
      code: 0,
      status: thrown.status,
      details: `it answered with ${thrown.status}`
    })
  }
  const details =
    thrown instanceof RateLimitError
      ? "its rate limit is used up"
      : Predicate.isError(thrown)
        ? `it cannot be reached: ${unansweredWords(thrown)}`
        : "it cannot be reached"
  return new DiscordError({ reason: "lost", code: 0, status: 0, details })
}

const methods = {
  GET: RequestMethod.Get,
  POST: RequestMethod.Post,
  PUT: RequestMethod.Put,
  PATCH: RequestMethod.Patch,
  DELETE: RequestMethod.Delete
} as const

export interface Request {
  readonly method: keyof typeof methods
  readonly route: `/${string}`
  readonly query?: Readonly<Record<string, string>> | undefined
  readonly body?: unknown
  readonly files?: ReadonlyArray<RawFile> | undefined
  /** False for interactions, whose token is in the route. */
  readonly auth?: boolean | undefined
}

/** Who the bot is. */
export interface Self {
  readonly id: string
}

/** What `Discord` offers. */
export interface Service {
  readonly self: Self
  readonly request: <A, I>(request: Request, answer: Schema.Schema<A, I>) => Effect.Effect<A, DiscordError>
  readonly send: (request: Request) => Effect.Effect<void, DiscordError>
  /** Connects to the gateway, and waits until it is ready. */
  readonly open: Effect.Effect<void, DiscordError>
  /** Events in the order of the gateway, from the first connection on. */
  readonly packets: Queue.Dequeue<Packets.Packet>
  /** What the bot may do in a channel. Waits for the guilds, which Discord announces after `READY`. */
  readonly permissions: (channel: string) => Effect.Effect<bigint, DiscordError>
  /** Fails when the connection is lost for good. */
  readonly closed: Effect.Effect<never, DiscordError>
}

export class Discord extends Context.Tag("@daybook/discord/Discord")<Discord, Service>() {}

export interface Options {
  readonly token: Redacted.Redacted
  /** The address of the API. Default: Discord's. */
  readonly api?: string | undefined
  /** Whether to wait for a Discord that cannot be reached, instead of failing. Default: true. */
  readonly waits?: boolean | undefined
  /** Milliseconds to wait for the next guild after `READY`. Default: 15,000. */
  readonly guildWait?: number | undefined
}

const defaultGuildWait = 15_000

/** Why the gateway closes a connection for good, by its code. */
const closings: Readonly<Record<number, string>> = {
  4_004: "the token is not valid",
  4_013: "an intent is not known",
  4_014: 'switch on "Message Content Intent" for the bot in the developer portal: an intent is not granted'
}

/** Events that wait to be handled. More are dropped: the channels are read again after the next connection. */
const mostPackets = 20_000

export const intents = [GatewayIntentBits.Guilds, GatewayIntentBits.GuildMessages, GatewayIntentBits.MessageContent]

const clientOf = ({ api, guildWait = defaultGuildWait }: Options): Client =>
  new Client({
    intents,
    waitGuildTimeout: guildWait,
    // The bot keeps nothing in memory that it can ask for.
    makeCache: CacheOptions.cacheWithLimits({
      ...CacheOptions.DefaultMakeCacheSettings,
      MessageManager: 0,
      ReactionManager: 0,
      GuildMemberManager: { maxSize: 100, keepOverLimit: (member) => member.id === member.client.user.id },
      UserManager: { maxSize: 100, keepOverLimit: (user) => user.id === user.client.user.id }
    }),
    presence: { activities: [{ name: "/ask", type: ActivityType.Listening }] },
    // discord.js would repeat a request within milliseconds, although nobody knows whether it was done.
    // Half of Discord's limit of 50 in a second: its second begins at another time than discord.js's, and holds two of its halves.
    rest: {
      makeRequest,
      globalRequestsPerSecond: 25,
      retries: 0,
      timeout: 15_000,
      ...(api === undefined ? {} : { api })
    }
  })

const requesting = (client: Client) => (request: Request) =>
  Effect.tryPromise({
    try: (signal) =>
      client.rest.request({
        method: methods[request.method],
        fullRoute: request.route,
        signal,
        auth: request.auth ?? true,
        ...(request.query === undefined ? {} : { query: new URLSearchParams(request.query) }),
        ...(request.body === undefined ? {} : { body: request.body }),
        ...(request.files === undefined ? {} : { files: [...request.files] })
      }),
    catch: fromThrown
  }).pipe(Effect.withSpan("Discord.request", { attributes: { method: request.method } }))

const refused = (details: string) => new DiscordError({ reason: "refused", code: 0, status: 0, details })

const unreadable = (error: { readonly message: string }) =>
  new DiscordError({ reason: "lost", code: 0, status: 200, details: `its answer has another form: ${error.message}` })

const pauses = Schedule.exponential("1 second", 2).pipe(Schedule.union(Schedule.spaced("1 minute")), Schedule.jittered)

/** Waits for a Discord that fails or cannot be reached. */
const patient = <A>(work: Effect.Effect<A, DiscordError>): Effect.Effect<A, DiscordError> =>
  work.pipe(
    Effect.tapError((error) => (error.reason === "lost" ? Effect.logWarning(error.message) : Effect.void)),
    Effect.retry({ schedule: pauses, while: ({ reason }) => reason === "lost" })
  )

/** Checks the token. The gateway is opened apart, so that a reader can first find its place in the channels. */
export const connect = Effect.fn("Discord.connect")(function* (
  options: Options
): Effect.fn.Return<Context.Tag.Service<Discord>, DiscordError, Scope.Scope> {
  const packets = yield* Queue.dropping<Packets.Packet>(mostPackets)
  const ready = yield* Deferred.make<void, DiscordError>()
  const announced = yield* Deferred.make<void>()
  const closed = yield* Deferred.make<never, DiscordError>()
  const client = yield* Effect.acquireRelease(
    Effect.sync(() => clientOf(options)),
    // Within a handshake discord.js waits for a connection that never comes.
    (client) => Effect.promise(() => Promise.race([client.destroy(), setTimeout(3_000, undefined, { ref: false })]))
  )
  client.on(Events.Raw, (raw: unknown) => {
    const packet = Packets.read(raw)
    if (packet === undefined) return
    if (packet.t === "READY") {
      Deferred.unsafeDone(ready, Effect.void)
    }
    Queue.unsafeOffer(packets, packet)
  })
  client.on(Events.ClientReady, () => void Deferred.unsafeDone(announced, Effect.void))
  client.on(Events.Error, () => {})
  client.on(Events.ShardDisconnect, ({ code }) => {
    const error = new DiscordError({
      reason: "unauthorized",
      code,
      status: 0,
      details: closings[code] ?? "the gateway closed the connection"
    })
    Deferred.unsafeDone(closed, Effect.fail(error))
    Deferred.unsafeDone(ready, Effect.fail(error))
  })
  const token = Redacted.value(options.token)
  client.rest.setToken(token)
  const request = requesting(client)
  const persistent = options.waits === false ? <A>(work: Effect.Effect<A, DiscordError>) => work : patient
  const self = yield* Effect.flatMap(persistent(request({ method: "GET", route: "/users/@me" })), (body) =>
    Effect.mapError(Schema.decodeUnknown(Packets.User)(body), unreadable)
  )
  const login = Effect.tryPromise({ try: () => client.login(token), catch: fromThrown }).pipe(
    // A login that fails takes the token from the requests, too.
    Effect.tapError(() => Effect.sync(() => client.rest.setToken(token)))
  )
  return {
    self: { id: self.id },
    open: Effect.raceFirst(Effect.zipRight(persistent(login), Deferred.await(ready)), Deferred.await(closed)),
    packets,
    permissions: (id) =>
      Effect.gen(function* () {
        // Before its guild is announced, every channel looks like one that the bot cannot see.
        yield* Effect.raceFirst(Deferred.await(announced), Deferred.await(closed))
        const channel = yield* Effect.tryPromise({ try: () => client.channels.fetch(id), catch: fromThrown })
        if (channel === null || !("permissionsFor" in channel)) return yield* refused("it is not a channel of a server")
        if (!channel.guild.available) return yield* refused("its server is not available: Discord did not announce it")
        return channel.permissionsFor(self.id)?.bitfield ?? (yield* refused("the bot is not a member of its server"))
      }),
    closed: Deferred.await(closed),
    send: (given) => Effect.asVoid(request(given)),
    request: (given, answer) =>
      Effect.flatMap(request(given), (body) => Effect.mapError(Schema.decodeUnknown(answer)(body), unreadable))
  }
})

/** The connection, until the scope closes. */
export const layer = (options: Options): Layer.Layer<Discord, DiscordError> => Layer.scoped(Discord, connect(options))
