/** The bot over a served runtime with a scripted model, in the loopback Discord. */
import { it } from "@effect/vitest"
import { Context, Deferred, Effect, Layer, Logger, LogLevel, Redacted, type Scope } from "effect"
import { join } from "node:path"
import * as Book from "../../../packages/discord/src/live/Book.ts"
import * as Bot from "../../../packages/discord/src/Bot.ts"
import { sessionOf } from "../../../packages/discord/src/domain/Names.ts"
import { waiting } from "../../../packages/discord/src/post/PostFold.ts"
import type { ChannelSettings } from "../../../packages/discord/src/domain/Settings.ts"
import type * as Daybook from "../../../packages/embedded/src/Daybook.ts"
import * as Asks from "../../../packages/server/src/shared/Asks.ts"
import * as ServedApi from "../../server/http/support/ServedApi.ts"
import { temporaryFolder } from "../../support/Harness.ts"
import { hasty } from "../../support/HastyClock.ts"
import { says, ScriptedModel } from "../../support/ScriptedModel.ts"
import { waitingFor } from "../../support/Waiting.ts"
import type { FaultPlan } from "./Faults.ts"
import * as Loopback from "./Loopback.ts"
import * as People from "./People.ts"
import { type Channel, type Settings, type User, visible } from "./World.ts"

/** The pauses of the bot and of its sender are of real time, and shorter by this factor. */
const usualHaste = 10

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
export const layerWith = (options: Partial<Daybook.Options>, given: Asks.Asks = asks) =>
  ServedApi.layer({ permissionAsker: given.layer, questions: true, ...options }, {}, { asks: given })

export const layer = layerWith({})

/** A law of the bot on a runtime of its own. */
export const law = <A, E>(
  title: string,
  effect: () => Effect.Effect<A, E, Layer.Layer.Success<typeof layer> | Scope.Scope>,
  timeout?: number,
  options?: Partial<Daybook.Options>,
  given?: Asks.Asks
) =>
  it.scoped(title, () => Effect.provide(effect(), options === undefined ? layer : layerWith(options, given)), timeout)

/** A Discord with these settings, and a folder of the bot. */
export const placeWith = Effect.fnUntraced(function* (settings: Partial<Settings>, faults?: FaultPlan) {
  const folder = yield* temporaryFolder
  const discord = yield* Loopback.make({ limitOf: Loopback.fasterLimits(50), ...settings }, faults)
  return { discord, folder }
})

/** A Discord, and a folder of the bot. */
export const place = placeWith({})

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

/** Watches or holds what the bot asks the server. */
export type Around = (book: Context.Tag.Service<Book.Book>) => Context.Tag.Service<Book.Book>

/** What the bot needs. */
export const services = (
  at: Place,
  given: Bot.Options = options(at),
  token: string = ServedApi.token,
  around: Around = (book) => book
) =>
  Effect.gen(function* () {
    const { url } = yield* ServedApi.Served
    const book = Layer.map(Book.layer({ url, token: Redacted.make(token) }), (context) =>
      Context.make(Book.Book, around(Context.get(context, Book.Book)))
    )
    return yield* Layer.build(Layer.provideMerge(Bot.layer(given), book))
  })

/** Takes what the bot logs. */
export interface Lines {
  readonly push: (line: string) => unknown
}

/** A logger that gives on messages with their annotations. */
const keeping = (lines: Lines) =>
  Logger.add(
    Logger.make(({ annotations, message }) => {
      const notes = [...annotations].map(([name, value]) => ` ${name}=${String(value)}`)
      lines.push(`${String(message)}${notes.join("")}`)
    })
  )

/** Runs the bot until the scope closes; returns when the gateway knows it. `lines` gets what it logs. */
export const start = (
  at: Place,
  given: Bot.Options = options(at),
  lines: Lines = { push: () => 0 },
  haste: number = usualHaste,
  around?: Around
) =>
  Effect.gen(function* () {
    const needed = services(at, given, undefined, around)
    const built = yield* Effect.withClock(Effect.provide(needed, keeping(lines)), hasty(haste))
    const ready = yield* Deferred.make<void>()
    const running = Effect.provide(Bot.run(given, Deferred.succeed(ready, undefined)), built).pipe(
      Effect.tapErrorCause((cause) => Effect.sync(() => process.stderr.write(`the bot ended: ${String(cause)}\n`))),
      Effect.provide(Layer.merge(logging, keeping(lines))),
      Effect.withClock(hasty(haste))
    )
    const fiber = yield* Effect.forkScoped(running)
    yield* waitingFor("the bot")(Deferred.await(ready))
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

/**
 * Waits until the run of a thread has ended, which marks its prompt as done, and until the thread shows its text. Reactions
 * and messages are sent beside each other, so a reaction can come while the thread still shows that it waits.
 */
export const settled = ({ discord }: Place, thread: Channel | undefined) =>
  discord.when(
    "a prompt that is done",
    ({ channels }) =>
      texts(thread).length > 0 &&
      !texts(thread).includes(waiting.content ?? "") &&
      [...channels.values()].some(({ messages }) =>
        messages.some(({ id, reactions }) => id === thread?.id && (reactions.get("✅")?.size ?? 0) > 0)
      )
  )

/** A thread whose first answer is there. */
export const threadIn = Effect.fnUntraced(function* (at: Place, author: User) {
  const { general, world } = at.discord
  const model = yield* ScriptedModel
  yield* model.answer(says("Hello."))
  const thread = yield* threadOf(at, People.say(world, author, general, `<@${world.bot.id}> Hi`))
  yield* settled(at, thread)
  yield* model.request
  return thread ?? (yield* Effect.dieMessage("there is no thread"))
})

/** A bot that runs, a person, and the model that answers. */
export const setting = Effect.gen(function* () {
  const at = yield* place
  yield* start(at)
  return { ...at, ...at.discord, ann: People.join(at.discord.world, "ann"), model: yield* ScriptedModel }
})
