/**
 * The bot: events of sessions become posts, messages of people become prompts. Spec: specs/discord.md.
 *
 *   events -> fold -> outbox (with the cursor) -> sender -> Discord
 *   Discord -> gateway -> lanes -> Sessions.prompt
 */
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import type * as HttpClient from "@effect/platform/HttpClient"
import { PermissionFlagsBits } from "discord.js"
import { Clock, Effect, Layer, Queue, type Redacted } from "effect"
import { safeFetch } from "@daybook/core/http/SameOrigin"
import * as Interactions from "./command/Interactions.ts"
import * as Permissions from "./command/Permissions.ts"
import * as Names from "./domain/Names.ts"
import type { Settings } from "./domain/Settings.ts"
import * as Inbox from "./inbox/Inbox.ts"
import * as FeedFollower from "./live/FeedFollower.ts"
import * as Sender from "./live/Sender.ts"
import * as Outbox from "./outbox/Outbox.ts"
import type { OutboxFailed } from "./outbox/OutboxFile.ts"
import * as Discord from "./wire/Discord.ts"
import type { DiscordError } from "./wire/Discord.ts"
import type { Packet } from "./wire/Packets.ts"

// Checks that the bot can work before it does: its token, its intents, and its permissions in each channel.

const needed = {
  "View Channel": PermissionFlagsBits.ViewChannel,
  "Send Messages": PermissionFlagsBits.SendMessages,
  "Send Messages in Threads": PermissionFlagsBits.SendMessagesInThreads,
  "Create Public Threads": PermissionFlagsBits.CreatePublicThreads,
  "Read Message History": PermissionFlagsBits.ReadMessageHistory,
  "Add Reactions": PermissionFlagsBits.AddReactions,
  "Attach Files": PermissionFlagsBits.AttachFiles
} as const

export interface Finding {
  readonly channel: string
  readonly problem: string | undefined
}

/** The findings of all channels. Fails if the token or an intent is refused. The gateway must be open. */
export const check = Effect.fn("Check.check")(function* (settings: Settings) {
  const discord = yield* Discord.Discord
  return yield* Effect.forEach(Object.keys(settings.channels), (channel) =>
    Effect.match(discord.permissions(channel), {
      onFailure: ({ message }): Finding => ({ channel, problem: message }),
      onSuccess: (has): Finding => {
        const missing = Object.entries(needed).flatMap(([name, bit]) => ((has & bit) === bit ? [] : [name]))
        return { channel, problem: missing.length === 0 ? undefined : `the bot lacks: ${missing.join(", ")}` }
      }
    })
  )
})

export interface Options {
  readonly settings: Settings
  readonly token: Redacted.Redacted
  /** The bot's own database. */
  readonly outbox: string
  /** The address of Discord's API. */
  readonly api?: string | undefined
  /** Values that are never published, besides what looks like a secret. */
  readonly secrets?: ReadonlyArray<string> | undefined
}

/** How long the bot knows a post that does not change any more: for its buttons, and for deletions. Milliseconds. */
const remembered = 60 * 86_400_000

/** Runs until it is interrupted. Fails if the bot cannot work any more: its token, its outbox, or the server refuses. */
export const run = Effect.fn("Bot.run")(function* <E = never>(
  { settings, secrets = [] }: Options,
  /** Runs when Discord knows the bot. */
  ready: Effect.Effect<unknown, E> = Effect.void
) {
  const [discord, outbox, sender] = [yield* Discord.Discord, yield* Outbox.Outbox, yield* Sender.Sender]
  const inbox = yield* Inbox.make(settings)
  const decisions = yield* Effect.makeSemaphore(1)
  const interaction = yield* Interactions.make({ settings, inbox, secrets, decisions })

  const connected = (application: string) =>
    Effect.zipRight(
      Effect.catchAll(Interactions.register(application), (error) => Effect.logWarning(error.message)),
      Inbox.catchUp(inbox)
    )
  /** Messages do not wait for it: a guild that is not available is waited for. */
  const warn = Effect.gen(function* () {
    for (const { channel, problem } of yield* check(settings)) {
      if (problem !== undefined) yield* Effect.annotateLogs(Effect.logWarning(problem), { channel })
    }
  })
  const handle = (packet: Packet): Effect.Effect<void, OutboxFailed, Discord.Discord> => {
    switch (packet.t) {
      case "READY":
        return connected(packet.d.application.id)
      case "MESSAGE_CREATE":
        return Inbox.message(inbox, packet.d)
      case "MESSAGE_UPDATE":
        return Inbox.edited(inbox, packet.d)
      case "MESSAGE_DELETE":
        return Inbox.deleted(inbox, packet.d.channel_id, [packet.d.id])
      case "MESSAGE_DELETE_BULK":
        return Inbox.deleted(inbox, packet.d.channel_id, packet.d.ids)
      case "INTERACTION_CREATE":
        return interaction(packet.d)
      case "THREAD_DELETE":
      case "CHANNEL_DELETE":
        return outbox.closed(packet.d.id, "the channel was deleted")
      default:
        return Effect.void
    }
  }
  yield* FeedFollower.prepare
  yield* outbox.forget(Names.snowflakeOf((yield* Clock.currentTimeMillis) - remembered))
  yield* Inbox.begin(inbox)
  yield* discord.open
  yield* ready
  for (const beginning of yield* outbox.beginnings) yield* Inbox.begun(inbox, beginning)
  // The first failure ends the bot.
  const parts = Effect.all(
    [
      warn,
      Effect.forever(Effect.flatMap(Queue.take(discord.packets), handle)),
      Effect.forever(Effect.flatMap(Queue.take(sender.begun), (each) => Inbox.begun(inbox, each))),
      FeedFollower.follow(secrets),
      Permissions.follow(secrets, decisions),
      sender.failed,
      inbox.lanes.failed,
      discord.closed
    ],
    { concurrency: "unbounded", discard: true }
  )
  return yield* Effect.zipRight(parts, Effect.never)
})

/** What the bot needs besides the sessions. */
export const layer = (
  options: Options
): Layer.Layer<Discord.Discord | HttpClient.HttpClient | Outbox.Outbox | Sender.Sender, DiscordError | OutboxFailed> =>
  Sender.layer.pipe(
    Layer.provideMerge(
      Layer.mergeAll(
        Outbox.layer({ filename: options.outbox, secrets: options.secrets }),
        Discord.layer({ token: options.token, api: options.api }),
        // A redirect to another origin is not followed.
        Layer.provide(FetchHttpClient.layer, Layer.succeed(FetchHttpClient.Fetch, safeFetch))
      )
    )
  )

/** The bot with its services, over the sessions of the context. `ready` runs when Discord knows it. */
export const serve = <E = never>(options: Options, ready: Effect.Effect<unknown, E> = Effect.void) =>
  Effect.scoped(run(options, ready)).pipe(Effect.provide(layer(options)))
