/**
 * Sends what is due: the posts of a channel in order, its reactions beside them, and channels independently. A request that
 * may have been done is looked for before it is repeated. Spec: DI-10..DI-13, DI-60..DI-66 in specs/discord.md.
 */
import { Context, Duration, Effect, FiberSet, Layer, Metric, Queue, Random } from "effect"
import type { OutboxFailed } from "../outbox/OutboxFile.ts"
import { type Beginning, type DuePost, type DueReaction, Outbox } from "../outbox/Outbox.ts"
import type { Body } from "../post/Post.ts"
import { Discord } from "../wire/Discord.ts"
import type { DiscordError } from "../wire/DiscordError.ts"
import * as Messages from "../wire/Messages.ts"
import { find, sameText } from "./Finding.ts"
import * as Measured from "./Measured.ts"

export class Sender extends Context.Tag("@daybook/discord/Sender")<
  Sender,
  {
    /** The channel has something to send. */
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

const make = Effect.gen(function* () {
  const [discord, outbox] = [yield* Discord, yield* Outbox]
  const services = yield* Effect.context<Discord | Outbox>()
  const fibers = yield* FiberSet.make<void, DiscordError | OutboxFailed>()
  const fork = yield* FiberSet.runtime(fibers)<never>()

  const begun = yield* Queue.unbounded<Beginning>()

  const created = (channel: string, { id, target }: DuePost, message: string, shown: Body) =>
    Effect.zipRight(
      Effect.zipRight(outbox.created(id, message, shown), Metric.increment(Measured.posts)),
      target?.type === "begin" ? Queue.offer(begun, { channel, message, target }) : Effect.void
    )

  const anchorOf = (channel: string) =>
    Effect.gen(function* () {
      const newest = yield* outbox.newest(channel)
      if (newest !== undefined) return newest
      const place = yield* outbox.place(channel)
      return place === undefined || place.parent !== null ? channel : (place.last ?? channel)
    })

  const create = (channel: string, post: DuePost) =>
    Effect.gen(function* () {
      if (post.attempt !== undefined) {
        yield* Metric.increment(Measured.doubts)
        const found = yield* Effect.provide(find(channel, post), services)
        if (found !== undefined) {
          const shown = sameText(found.content, post.attempt.content) ? post.attempt : { content: found.content }
          return yield* created(channel, post, found.id, shown)
        }
      }
      yield* outbox.attempted(post.id, post.body, yield* anchorOf(channel))
      const message = yield* Messages.create(discord, channel, post.nonce, post.body).pipe(
        Effect.tapError(({ reason }) => (reason === "lost" ? Effect.void : outbox.notCreated(post.id)))
      )
      // Within the nonce's window, an earlier attempt may have made it with an earlier text.
      const shown = sameText(message.content, post.body.content) ? post.body : { content: message.content }
      yield* created(channel, post, message.id, shown)
    })

  const edit = (channel: string, message: string, post: DuePost) =>
    Effect.zipRight(
      Messages.edit(discord, channel, message, post.nonce, post.body),
      Effect.zipRight(outbox.shown(post.id, post.body), Metric.increment(Measured.edits))
    )

  const post = (channel: string, due: DuePost) =>
    (due.message === undefined ? create(channel, due) : edit(channel, due.message, due)).pipe(
      Effect.catchTag("DiscordError", (error): Effect.Effect<void, DiscordError | OutboxFailed> => {
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

  const noted = (channel: string, error: DiscordError) =>
    Effect.zipRight(
      Metric.increment(Metric.tagged(Measured.failures, "reason", error.reason)),
      Effect.annotateLogs(Effect.logWarning(error.message), { channel })
    )

  const reaction = (channel: string, { emoji, message, shown }: DueReaction) =>
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

  /** Sends one after the other until nothing is due. The one in hand is finished, whatever ends the bot. */
  const drain = <A>(
    channel: string,
    next: Effect.Effect<A | undefined, OutboxFailed>,
    send: (due: A) => Effect.Effect<void, DiscordError | OutboxFailed>
  ) =>
    Effect.gen(function* () {
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

  /** Lanes that run; true: something was added since they looked. */
  const lanes = new Map<string, boolean>()
  const lane = (key: string, work: Effect.Effect<void, DiscordError | OutboxFailed>) =>
    Effect.sync(() => {
      const isNew = !lanes.has(key)
      lanes.set(key, true)
      if (!isNew) return
      fork(
        Effect.gen(function* () {
          while (lanes.get(key) === true) {
            lanes.set(key, false)
            yield* work
          }
        }).pipe(Effect.ensuring(Effect.sync(() => lanes.delete(key))))
      )
    })

  const wake = (channel: string) =>
    Effect.zipRight(
      lane(
        `posts ${channel}`,
        drain(channel, outbox.nextPost(channel), (due) => post(channel, due))
      ),
      lane(
        `reactions ${channel}`,
        drain(channel, outbox.nextReaction(channel), (due) => reaction(channel, due))
      )
    )
  // What was due when the bot ended.
  yield* Effect.flatMap(outbox.due, Effect.forEach(wake, { discard: true }))
  return Sender.of({ wake, begun, failed: Effect.zipRight(FiberSet.join(fibers), Effect.never) })
})

export const layer: Layer.Layer<Sender, OutboxFailed, Discord | Outbox> = Layer.scoped(Sender, make)
