/** The bot over a served runtime with a scripted model, in the loopback Discord. */
import { Clock, Effect, Layer, Logger, LogLevel, Redacted } from "effect"
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import { join } from "node:path"
import * as Book from "../../../packages/discord/src/book/Book.ts"
import * as Bot from "../../../packages/discord/src/Bot.ts"
import { sessionOf } from "../../../packages/discord/src/domain/Names.ts"
import type { ChannelSettings } from "../../../packages/discord/src/trust/Settings.ts"
import * as Asks from "../../../packages/server/src/ask/Asks.ts"
import * as ServedApi from "../../server/http/support/ServedApi.ts"
import { temporaryFolder } from "../../support/Harness.ts"
import * as Loopback from "./Loopback.ts"
import { type Channel, visible } from "./World.ts"

/** `DAYBOOK_TEST_LOG=1` prints the log of the bot. */
const logging =
  process.env["DAYBOOK_TEST_LOG"] === "1"
    ? Layer.merge(
        Logger.add(Logger.logfmtLogger.pipe(Logger.map((text) => void process.stderr.write(`${text}\n`)))),
        Logger.minimumLogLevel(LogLevel.Debug)
      )
    : Layer.empty

const asks = Asks.make()

/** The runtime, its API over TCP, and permissions that clients answer. */
export const layer = ServedApi.layer({ permissionAsker: asks.layer }, {}, { asks })

/** A Discord, and a folder of the bot. */
export const place = Effect.gen(function* () {
  const folder = yield* temporaryFolder
  const discord = yield* Loopback.make({ limitOf: Loopback.fasterLimits(50) })
  return { discord, folder }
})

export interface Place {
  readonly discord: Loopback.Loopback
  readonly folder: string
}

/** The bot's options: everyone may do everything in the channel `general`, unless the settings say otherwise. */
export const options = (
  { discord, folder }: Place,
  settings: Partial<ChannelSettings> = { administer: { everyone: true } },
  secrets: ReadonlyArray<string> = []
): Bot.Options => ({
  settings: { channels: { [discord.general.id]: { folder, ...settings } } },
  token: Redacted.make(discord.world.settings.token),
  outbox: join(folder, "discord.sqlite"),
  api: discord.api,
  secrets
})

/** Runs the bot until the scope closes; returns when the gateway knows it. */
export const start = (at: Place, given: Bot.Options = options(at)) =>
  Effect.gen(function* () {
    const { url } = yield* ServedApi.Served
    const book = Book.layer({ url, token: Redacted.make(ServedApi.token) })
    const services = yield* Layer.build(Layer.provideMerge(Bot.layer(given), Layer.merge(book, FetchHttpClient.layer)))
    const before = at.discord.world.sessions.size
    const fiber = yield* Effect.forkScoped(
      Effect.tapErrorCause(Effect.provide(Bot.run(given), services), (cause) =>
        Effect.sync(() => process.stderr.write(`the bot ended: ${String(cause)}\n`))
      ).pipe(Effect.provide(logging), Effect.withClock(Clock.make()))
    )
    yield* at.discord.when("the bot at the gateway", ({ sessions }) => sessions.size > before)
    return fiber
  })

/** The texts of a channel that a reader sees. */
export const texts = (channel: Channel | undefined): ReadonlyArray<string> =>
  channel === undefined ? [] : visible(channel).map(({ content }) => content)

/** The thread of a message, once it is open. */
export const threadOf = ({ discord }: Place, message: { readonly id: string }) =>
  Effect.map(
    discord.when("a thread", ({ channels }) => channels.has(message.id)),
    () => discord.world.channels.get(message.id)
  )

export const sessionIn = (thread: { readonly id: string }) => sessionOf(thread.id)

/** Waits until a channel shows these texts, and no others. */
export const shows = ({ discord }: Place, channel: Channel | undefined, expected: ReadonlyArray<string>) =>
  discord.when(
    `the texts ${JSON.stringify(expected).slice(0, 200)}`,
    () => JSON.stringify(texts(channel)) === JSON.stringify(expected)
  )
