/**
 * Admits messages of people as prompts, and opens the threads of those that mention the bot. Every step can be repeated: ids
 * derive from the message, so a message that comes twice changes nothing. Spec: DI-30..DI-36 in specs/discord.md.
 */
import type * as HttpClient from "@effect/platform/HttpClient"
import { Effect, Metric } from "effect"
import type { Delivery, PromptInput } from "@daybook/log/domain/Values"
import { Book } from "../book/Book.ts"
import { isLater, promptOf, sessionOf } from "../domain/Names.ts"
import { isAway, patiently } from "../book/Patience.ts"
import { type Beginning, Outbox } from "../outbox/Outbox.ts"
import { emoji } from "../post/Post.ts"
import * as Measured from "../send/Measured.ts"
import { Sender } from "../send/Sender.ts"
import { clip, line } from "../text/Publishable.ts"
import type { ChannelSettings } from "../trust/Settings.ts"
import { Discord } from "../wire/Discord.ts"
import * as Messages from "../wire/Messages.ts"
import type { Message } from "../wire/Packets.ts"
import * as Attachments from "./Attachments.ts"

export type Services = Book | Discord | HttpClient.HttpClient | Outbox | Sender

/** A thread of a channel that the bot works in. */
export interface Thread {
  readonly id: string
  readonly parent: string
  readonly settings: ChannelSettings
}

/** Waits for a server that is away: a message is never lost because of it. */
export const whenever = <A, E extends { readonly _tag: string; readonly message: string }, R>(
  work: Effect.Effect<A, E, R>
) =>
  work.pipe(
    Effect.tapError((error) => (isAway(error) ? Effect.logWarning(error.message) : Effect.void)),
    Effect.retry({ schedule: patiently, while: isAway })
  )

/** Waits for Discord, unless it refuses. */
export const insistently = <A, E extends { readonly _tag: string; readonly reason?: unknown }, R>(
  work: Effect.Effect<A, E, R>
) => Effect.retry(work, { schedule: patiently, while: (error) => error.reason === "lost" })

const modelOf = (text: string) => {
  const slash = text.indexOf("/")
  return { providerID: text.slice(0, slash), id: text.slice(slash + 1) }
}

/** The session of a thread, made on first use. */
export const session = Effect.fn("Admission.session")(function* ({ id, settings }: Thread, title: string) {
  const book = yield* Book
  const { agent, budget, folder, model } = settings
  const found = yield* whenever(
    book.create({
      id: sessionOf(id),
      location: { directory: folder },
      ...(agent === undefined ? {} : { agent }),
      ...(model === undefined ? {} : { model: modelOf(model) }),
      ...(title === "" ? {} : { title: line(title, 80), provisional: true })
    })
  )
  if (budget !== undefined && found.budget === undefined) yield* whenever(book.setBudget(found.id, budget))
  return found
})

/** The text of a message for a model: without the mention of the bot. */
export const textOf = ({ content }: Message, self: string): string =>
  content.replaceAll(new RegExp(`<@!?${self}>`, "g"), "").trim()

const promptFor = (message: Message, self: string) =>
  Effect.map(Attachments.read(message.attachments ?? []), (read): PromptInput => {
    const files = read.flatMap((each) => ("file" in each ? [each.file] : []))
    const missing = read.flatMap((each) => ("missing" in each ? [`[${each.missing}]`] : []))
    const text = [textOf(message, self), ...missing].filter((part) => part !== "").join("\n\n")
    return { text, ...(files.length === 0 ? {} : { files }) }
  })

/** Says in the thread, once for each message, why it was not admitted. */
const refuse = (thread: Thread, message: Message, why: string) =>
  Effect.gen(function* () {
    const [outbox, sender] = [yield* Outbox, yield* Sender]
    yield* outbox.put(thread.id, {
      type: "post",
      key: { sessionID: sessionOf(thread.id), event: `refused:${message.id}`, chunk: 0 },
      body: { content: `⚠️ Not admitted: ${clip(why, 1_500)}` }
    })
    yield* outbox.react(message.channel_id, message.id, emoji.failed)
    yield* Effect.forEach([thread.id, message.channel_id], sender.wake)
  })

/** Admits a message once. */
export const admit = Effect.fn("Admission.admit")(function* (
  thread: Thread,
  message: Message,
  delivery: Delivery = "steer",
  edit?: number
) {
  const [book, discord] = [yield* Book, yield* Discord]
  const prompt = yield* promptFor(message, discord.self.id)
  if (prompt.text === "" && prompt.files === undefined) return
  const { id } = yield* session(thread, textOf(message, discord.self.id))
  yield* whenever(
    // A member's text names no file and no template: it is taken literally.
    book.prompt({ id: promptOf(message.id, edit), sessionID: id, prompt, delivery, expand: false })
  ).pipe(
    Effect.zipRight(Metric.increment(Measured.prompts)),
    Effect.catchTags({
      // It was admitted before, and its attachments read differently then.
      PromptConflictError: () => Effect.void,
      InboxFullError: ({ limit }) =>
        refuse(thread, message, `${limit} messages wait already. Please write it again when some are done.`),
      InvalidInput: ({ message: why }) => refuse(thread, message, why)
    })
  )
})

/**
 * Opens the thread of a message. `wasOpen` runs, before the place is known, if an earlier request opened it: people may have
 * written there.
 */
const openThread = Effect.fn("Admission.openThread")(function* (
  thread: Thread,
  title: string,
  wasOpen: Effect.Effect<void>
) {
  const discord = yield* Discord
  const name = line(title, 90) || "Daybook"
  yield* insistently(Messages.openThread(discord, thread.parent, thread.id, name)).pipe(
    Effect.catchIf(
      ({ reason }) => reason === "done-before",
      () => wasOpen
    )
  )
})

/** Opens the thread of a message that mentions the bot, and admits it there. */
export const open = Effect.fn("Admission.open")(function* (
  settings: ChannelSettings,
  message: Message,
  wasOpen: Effect.Effect<void>
) {
  const [discord, outbox] = [yield* Discord, yield* Outbox]
  const thread: Thread = { id: message.id, parent: message.channel_id, settings }
  const isThere = yield* openThread(thread, textOf(message, discord.self.id), wasOpen).pipe(
    Effect.as(true),
    // The message was deleted.
    Effect.catchIf(
      ({ reason }) => reason === "message-gone",
      () => Effect.succeed(false)
    )
  )
  if (!isThere) return
  yield* outbox.addPlace(thread.id, thread.parent, message.id)
  yield* admit(thread, message)
})

/** Opens the thread of a message of the bot: for a question of a command, or for a fork. */
export const begin = Effect.fn("Admission.begin")(function* (
  settings: ChannelSettings,
  { channel, message, target: { fork, text = "" } }: Beginning,
  wasOpen: Effect.Effect<void>
) {
  const [book, outbox] = [yield* Book, yield* Outbox]
  const thread: Thread = { id: message, parent: channel, settings }
  yield* openThread(thread, fork === undefined ? text : "Fork", wasOpen)
  if (fork !== undefined) {
    const id = sessionOf(thread.id)
    const isThere = yield* whenever(Effect.as(book.get(id), true)).pipe(
      Effect.catchTag("SessionNotFound", () => Effect.succeed(false))
    )
    if (!isThere) yield* whenever(book.fork({ sessionID: fork, id }))
  }
  if (text !== "") {
    const { id } = yield* session(thread, text)
    // The place is stored last: until then a restart begins again, and nothing here happens twice.
    yield* whenever(book.prompt({ id: promptOf(message), sessionID: id, prompt: { text }, expand: false }))
  }
  yield* outbox.addPlace(thread.id, thread.parent, message)
})

/** Whether the place has handled the message. */
export const isHandled = (last: string | null, id: string): boolean => last !== null && !isLater(id, last)
