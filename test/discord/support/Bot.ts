/** A real discord.js client against the loopback Discord, ready and until the scope closes. */
import {
  Client,
  type ClientEvents,
  Events,
  GatewayIntentBits,
  RESTEvents,
  type RESTOptions,
  type TextChannel
} from "discord.js"
import { Effect, type Scope } from "effect"
import { makeRequest } from "../../../packages/discord/src/wire/Discord.ts"
import { waitingFor } from "../../support/Waiting.ts"
import type { Loopback } from "./Loopback.ts"

export const usualIntents = [
  GatewayIntentBits.Guilds,
  GatewayIntentBits.GuildMessages,
  GatewayIntentBits.GuildMessageReactions,
  GatewayIntentBits.MessageContent
]

export interface Options {
  readonly intents?: ReadonlyArray<GatewayIntentBits>
  readonly rest?: Partial<RESTOptions>
}

/** A client that has not logged in. */
export const make = (discord: Loopback, { intents = usualIntents, rest = {} }: Options = {}) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const client = new Client({
        intents: [...intents],
        rest: { api: discord.api, makeRequest, ...rest },
        // The library identifies once in five seconds; the loopback has no such limit.
        ws: { buildIdentifyThrottler: () => Promise.resolve({ waitForIdentify: () => Promise.resolve() }) }
      })
      // Without a listener Node throws an event called `error`.
      client.on(Events.Error, () => undefined)
      return client
    }),
    (client) => Effect.promise(() => client.destroy())
  )

/** The next event. Run it in a fiber, or as `during`, before the act that causes the event. */
export const next = <K extends keyof ClientEvents>(client: Client, event: K) =>
  waitingFor(`the event ${event}`)(
    Effect.async<ClientEvents[K]>((resume) => {
      client.once(event, (...args) => resume(Effect.succeed(args)))
    })
  )

/** What an act causes: listens, acts, and waits for the event. */
export const during = <K extends keyof ClientEvents>(client: Client, event: K, act: () => void) =>
  waitingFor(`the event ${event}`)(
    Effect.async<ClientEvents[K]>((resume) => {
      client.once(event, (...args) => resume(Effect.succeed(args)))
      act()
    })
  )

export interface Bot {
  readonly client: Client<true>
  readonly general: TextChannel
  /** How often the client waited for a limit. */
  readonly waits: () => number
}

/** A client that is ready. */
export const login = (discord: Loopback, options: Options = {}): Effect.Effect<Bot, never, Scope.Scope> =>
  Effect.gen(function* () {
    const client = yield* make(discord, options)
    let waits = 0
    client.rest.on(RESTEvents.RateLimited, () => void (waits += 1))
    const [ready] = yield* during(client, Events.ClientReady, () => void client.login(discord.world.settings.token))
    const general = ready.channels.cache.get(discord.general.id)
    if (general?.isTextBased() !== true || general.isThread() || general.isVoiceBased() || general.isDMBased())
      return yield* Effect.dieMessage("the client knows no general channel")
    // The narrowing above leaves text and announcement channels; the loopback has no announcement channels.
    return { client: ready, general: general as TextChannel, waits: () => waits }
  })

/** The result of a call of discord.js, or its error as a value. */
export const call = <A>(act: () => Promise<A>) =>
  waitingFor("a reply to the client")(Effect.tryPromise({ try: act, catch: (error) => error }))

/** The code with which a call is refused. */
export const refusal = (act: () => Promise<unknown>) =>
  Effect.map(Effect.flip(call(act)), (error) =>
    error instanceof Error && "code" in error && typeof error.code === "number" ? error.code : error
  )
