/**
 * Sends what is due: the posts of a channel in order, its reactions beside them, and channels independently. A request
 * that may have been done is looked for before it is repeated. Spec: DI-10..DI-13, DI-60..DI-67 in specs/discord.md.
 */
import { Context, Duration, Effect, FiberSet, Layer, Metric, Queue, Random } from "effect"
import { type Beginning, type DuePost, type DueReaction, Outbox } from "../outbox/Outbox.ts"
import type { OutboxFailed } from "../outbox/OutboxFile.ts"
import type { Body } from "../post/Post.ts"
import { Discord, type DiscordError } from "../wire/Discord.ts"
import * as Messages from "../wire/Messages.ts"
import type { Message } from "../wire/Packets.ts"

// Defines the metrics of the bot.

const counter = (name: string, description: string) =>
  Metric.counter(`daybook_discord_${name}`, { description, incremental: true })

export const postCount = counter("posts", "messages that were created")
export const editCount = counter("edits", "messages that were changed")
export const doubtCount = counter("doubts", "posts that were looked for, because the end of a request was unknown")
export const failureCount = counter("failures", "requests that failed, by reason")
export const promptCount = counter("prompts", "messages that were admitted as prompts")

export class Sender extends Context.Tag("@daybook/discord/Sender")<
  Sender,
  {
    readonly wake: (channel: string) => Effect.Effect<void>
    /** Messages that begin a thread, after they were created. */
    readonly begun: Queue.Dequeue<Beginning>
    /** Fails when nothing can be sent any more. */
    readonly failed: Effect.Effect<never, DiscordError | OutboxFailed>
  }
>() {}

/** Growing pauses, up to a minute, or up to ten where the bot may not write. */
const pause = (error: DiscordError, failures: number): Effect.Effect<Duration.Duration> => {
  const most = error.reason === "refused" || error.reason === "archived" ? 600_000 : 60_000
  return Effect.map(Random.nextRange(0.75, 1.25), (jitter) =>
    Duration.millis(Math.min(most, 1_000 * 2 ** Math.min(failures, 20)) * jitter)
  )
}

type Work = Effect.Effect<void, DiscordError | OutboxFailed>

/** What the lanes of all channels share. */
const makeSending = Effect.gen(function* () {
  const fibers = yield* FiberSet.make<void, DiscordError | OutboxFailed>()
  return {
    discord: yield* Discord,
    outbox: yield* Outbox,
    begun: yield* Queue.unbounded<Beginning>(),
    fork: yield* FiberSet.runtime(fibers)<never>(),
    failed: Effect.zipRight(FiberSet.join(fibers), Effect.never),
    /** Lanes that run; true: something was added since they looked. */
    lanes: new Map<string, boolean>()
  }
})

type Sending = Effect.Effect.Success<typeof makeSending>

// Finds the message of an attempt whose end is unknown. A channel has at most one open attempt, so the message is the
// bot's only message after the attempt's anchor that is no post yet.

/** A message and an answer to a message; other types are notes of Discord. */
const types = [0, 19]

/** Pages of a hundred messages that are looked through. */
const mostPages = 20

/** Whether both show the same text: Discord removes space around it. */
const sameText = (one: string, other: string): boolean => one.trim() === other.trim()

/** The message of the attempt; undefined if it made none. */
const find = Effect.fn("Finding.find")(function* (
  { discord, outbox }: Sending,
  channel: string,
  { anchor = channel, attempt }: DuePost
) {
  const candidates: Array<Message> = []
  let place = anchor
  for (let page = 0; page < mostPages; page++) {
    const messages = yield* Messages.after(discord, channel, place)
    for (const message of messages) {
      const isOwn = message.author.id === discord.self.id && types.includes(message.type)
      if (!isOwn || message.interaction_metadata != null || message.webhook_id !== undefined) continue
      if (!(yield* outbox.isPost(message.id))) candidates.push(message)
    }
    const last = messages.at(-1)
    if (last === undefined || messages.length < 100) break
    place = last.id
  }
  return candidates.find(({ content }) => sameText(content, attempt?.content ?? "")) ?? candidates[0]
})

// Sends one post or reaction.

const created = ({ begun, outbox }: Sending, channel: string, { id, target }: DuePost, message: string, shown: Body) =>
  Effect.zipRight(
    Effect.zipRight(outbox.created(id, message, shown), Metric.increment(postCount)),
    target?.type === "begin" ? Queue.offer(begun, { channel, message, target }) : Effect.void
  )

const anchorOf = Effect.fnUntraced(function* ({ outbox }: Sending, channel: string) {
  const newest = yield* outbox.newest(channel)
  if (newest !== undefined) return newest
  const place = yield* outbox.place(channel)
  return place === undefined || place.parent !== null ? channel : (place.last ?? channel)
})

const create = Effect.fnUntraced(function* (sending: Sending, channel: string, post: DuePost) {
  const { discord, outbox } = sending
  if (post.attempt !== undefined) {
    yield* Metric.increment(doubtCount)
    const found = yield* find(sending, channel, post)
    if (found !== undefined) {
      const shown = sameText(found.content, post.attempt.content) ? post.attempt : { content: found.content }
      return yield* created(sending, channel, post, found.id, shown)
    }
  }
  yield* outbox.attempted(post.id, post.body, yield* anchorOf(sending, channel))
  const message = yield* Messages.create(discord, channel, post.nonce, post.body).pipe(
    Effect.tapError(({ reason }) => (reason === "lost" ? Effect.void : outbox.notCreated(post.id)))
  )
  // Within the nonce's window, an earlier attempt may have made it with an earlier text.
  const shown = sameText(message.content, post.body.content) ? post.body : { content: message.content }
  yield* created(sending, channel, post, message.id, shown)
})

const edit = ({ discord, outbox }: Sending, channel: string, message: string, { body, id, nonce }: DuePost) =>
  Messages.edit(discord, channel, message, nonce, body).pipe(
    Effect.zipRight(outbox.shown(id, body)),
    Effect.zipRight(Metric.increment(editCount))
  )

const noted = (channel: string, error: DiscordError) =>
  Effect.zipRight(
    Metric.increment(Metric.tagged(failureCount, "reason", error.reason)),
    Effect.annotateLogs(Effect.logWarning(error.message), { channel })
  )

const post = (sending: Sending, channel: string, due: DuePost) =>
  (due.message === undefined ? create(sending, channel, due) : edit(sending, channel, due.message, due)).pipe(
    Effect.catchTag("DiscordError", (error): Work => {
      const { discord, outbox } = sending
      switch (error.reason) {
        case "channel-gone":
          return Effect.zipRight(noted(channel, error), outbox.closed(channel, error.message))
        case "message-gone":
        case "invalid":
        case "done-before":
          return Effect.zipRight(noted(channel, error), outbox.dropped(due.id, error.message))
        case "archived":
          return Effect.catchTag(Messages.unarchive(discord, channel), "DiscordError", () => error)
        default:
          return error
      }
    })
  )

const reaction = ({ discord, outbox }: Sending, channel: string, { emoji, message, shown }: DueReaction) =>
  Effect.gen(function* () {
    if (emoji !== null) yield* Messages.react(discord, channel, message, emoji)
    if (shown !== null && shown !== emoji) yield* Messages.unreact(discord, channel, message, shown)
  }).pipe(
    Effect.catchIf(
      ({ reason }) => reason !== "lost" && reason !== "unauthorized",
      (error) => Effect.annotateLogs(Effect.logDebug(error.message), { channel })
    ),
    Effect.zipRight(outbox.reacted(message, emoji))
  )

// Sends what is due, in lanes.

/** Sends posts one at a time until nothing is due. The one in hand is finished, whatever ends the bot. */
const drain = Effect.fnUntraced(function* <A>(
  { outbox }: Sending,
  channel: string,
  next: Effect.Effect<A | undefined, OutboxFailed>,
  send: (due: A) => Work
) {
  let failures = 0
  for (;;) {
    const due = yield* next
    if (due === undefined) break
    const error = yield* send(due).pipe(
      Effect.as(undefined),
      Effect.catchTag("DiscordError", (error) => Effect.succeed(error)),
      Effect.uninterruptible
    )
    if (error === undefined) {
      if (failures > 0) yield* outbox.setProblem(channel, null)
      failures = 0
      continue
    }
    if (error.reason === "unauthorized") return yield* error
    yield* noted(channel, error)
    yield* outbox.setProblem(channel, error.message)
    yield* Effect.sleep(yield* pause(error, failures++))
  }
})

/** Does the work in the lane: now, or again after it if the lane does it already. */
const lane = ({ fork, lanes }: Sending, key: string, work: Work) =>
  Effect.sync(() => {
    const isNew = !lanes.has(key)
    lanes.set(key, true)
    if (!isNew) return
    const run = Effect.gen(function* () {
      while (lanes.get(key) === true) {
        lanes.set(key, false)
        yield* work
      }
    })
    fork(
      Effect.ensuring(
        run,
        Effect.sync(() => lanes.delete(key))
      )
    )
  })

const wake = (sending: Sending, channel: string) => {
  const { outbox } = sending
  const posts = drain(sending, channel, outbox.nextPost(channel), (due) => post(sending, channel, due))
  const reactions = drain(sending, channel, outbox.nextReaction(channel), (due) => reaction(sending, channel, due))
  return Effect.zipRight(lane(sending, `posts ${channel}`, posts), lane(sending, `reactions ${channel}`, reactions))
}

const make = Effect.gen(function* () {
  const sending = yield* makeSending
  const { begun, failed, outbox } = sending
  // What was due when the bot ended.
  yield* Effect.flatMap(
    outbox.due,
    Effect.forEach((channel) => wake(sending, channel), { discard: true })
  )
  return Sender.of({ wake: (channel) => wake(sending, channel), begun, failed })
})

export const layer: Layer.Layer<Sender, OutboxFailed, Discord | Outbox> = Layer.scoped(Sender, make)
