/**
 * Admits messages of people as prompts, and opens the threads of those that mention the bot. Every step can be repeated: ids
 * derive from the message, so a message that comes twice changes nothing. Spec: DI-30..DI-36 in specs/discord.md.
 */
import * as HttpClient from "@effect/platform/HttpClient"
import { Effect, Metric, Stream } from "effect"
import type { MessageID } from "@daybook/log/domain/Identifiers"
import type { Input } from "@daybook/log/domain/Message"
import type { Delivery, PromptInput } from "@daybook/log/domain/Values"
import { editOf, isLater, messageOf, promptOf, sessionOf } from "../domain/Names.ts"
import type { ChannelSettings } from "../domain/Settings.ts"
import { Book, patiently, whenever } from "../live/Book.ts"
import { promptCount, Sender } from "../live/Sender.ts"
import { type Beginning, type Edit, Outbox } from "../outbox/Outbox.ts"
import { emoji } from "../post/Post.ts"
import { clip, line } from "../post/Text.ts"
import { Discord } from "../wire/Discord.ts"
import * as Messages from "../wire/Messages.ts"
import type { Attachment, Message } from "../wire/Packets.ts"

// Reads the attachments of a message for its prompt, within limits.

type File = NonNullable<PromptInput["files"]>[number]

const mostFiles = 10
/** Bytes of one attachment. */
const mostBytes = 8 * 1_024 * 1_024
/** Bytes of all of them: as text in a prompt they must stay below its limit (IB-31). */
const mostTogether = 20 * 1_024 * 1_024

export type AttachmentResult = { readonly file: File } | { readonly missing: string }

const mimeOf = ({ content_type: type }: Attachment): string =>
  /^[\w.+-]+\/[\w.+-]+/.exec(type ?? "")?.[0] ?? "application/octet-stream"

const bytesOf = (http: HttpClient.HttpClient, { url }: Attachment) =>
  http.get(url).pipe(
    Effect.flatMap((response) =>
      response.status !== 200
        ? Effect.fail(`Discord answered with ${response.status}`)
        : Stream.runFoldEffect(response.stream, { parts: [] as Array<Uint8Array>, size: 0 }, ({ parts, size }, part) =>
            size + part.length > mostBytes
              ? Effect.fail("it is larger than it says")
              : Effect.succeed({ parts: [...parts, part], size: size + part.length })
          )
    ),
    Effect.map(({ parts }) => Buffer.concat(parts)),
    Effect.timeoutFail({ duration: "30 seconds", onTimeout: () => "it did not come within 30 seconds" }),
    Effect.mapError((error) => (typeof error === "string" ? error : "it could not be downloaded"))
  )

/** The attachments in order. The prompt names the missing attachments. */
const read = (
  attachments: ReadonlyArray<Attachment>
): Effect.Effect<ReadonlyArray<AttachmentResult>, never, HttpClient.HttpClient> =>
  Effect.gen(function* () {
    const http = yield* HttpClient.HttpClient
    const results: Array<AttachmentResult> = []
    let together = 0
    for (const [index, attachment] of attachments.entries()) {
      const name = line(attachment.filename, 120)
      const isLarge = attachment.size > mostBytes || together + attachment.size > mostTogether
      const refusal =
        index >= mostFiles ? `more than ${mostFiles} attachments` : isLarge ? "it is too large" : undefined
      const bytes = yield* Effect.either(refusal === undefined ? bytesOf(http, attachment) : Effect.fail(refusal))
      if (bytes._tag === "Left") {
        results.push({ missing: `attachment ${name}: ${bytes.left}` })
        continue
      }
      together += bytes.right.length
      const mime = mimeOf(attachment)
      results.push({ file: { uri: `data:${mime};base64,${bytes.right.toString("base64")}`, mime, name } })
    }
    return results
  })

export type Services = Book | Discord | HttpClient.HttpClient | Outbox | Sender

/** A thread of a channel that the bot works in. */
export interface Thread {
  readonly id: string
  readonly parent: string
  readonly settings: ChannelSettings
}

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
const textOf = ({ content }: Message, self: string): string =>
  content.replaceAll(new RegExp(`<@!?${self}>`, "g"), "").trim()

const promptFor = (message: Message, self: string) =>
  Effect.map(read(message.attachments ?? []), (read): PromptInput => {
    const files = read.flatMap((each) => ("file" in each ? [each.file] : []))
    const missing = read.flatMap((each) => ("missing" in each ? [`[${each.missing}]`] : []))
    const text = [textOf(message, self), ...missing].filter((part) => part !== "").join("\n\n")
    return { text, ...(files.length === 0 ? {} : { files }) }
  })

/** Says in the thread, once for each message, why it was not admitted. */
const refuse = Effect.fnUntraced(function* (thread: Thread, message: Message, why: string) {
  const [outbox, sender] = [yield* Outbox, yield* Sender]
  yield* outbox.put(thread.id, {
    type: "post",
    key: { sessionID: sessionOf(thread.id), event: `refused:${message.id}`, chunk: 0 },
    body: { content: `⚠️ Not admitted: ${clip(why, 1_500)}` }
  })
  yield* outbox.react(message.channel_id, message.id, emoji.failed)
  yield* Effect.forEach([thread.id, message.channel_id], sender.wake)
})

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
    Effect.zipRight(Metric.increment(promptCount)),
    Effect.catchTags({
      // It was admitted before, and its attachments read differently then.
      PromptConflictError: () => Effect.void,
      InboxFullError: ({ limit }) =>
        refuse(thread, message, `${limit} messages wait already. Please write it again when some are done.`),
      InvalidInput: ({ message: why }) => refuse(thread, message, why)
    })
  )
})

/** Opens the thread of a message. `wasOpen` runs first if an earlier request opened it: it may hold messages. */
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

// Follows edits and deletions of messages whose prompts wait: withdraws the prompt, and admits an edited message again.

const waiting = (thread: Thread) =>
  Effect.flatMap(Book, (book) =>
    Effect.catchTag(book.inbox(sessionOf(thread.id)), "SessionNotFound", () => Effect.succeed([]))
  )

const waitingOf = (thread: Thread, message: string) =>
  Effect.map(waiting(thread), (inputs) => inputs.find(({ id }) => messageOf(id) === message))

const withdraw = (thread: Thread, id: MessageID) =>
  Effect.flatMap(Book, (book) =>
    // It was promoted or withdrawn in the meantime.
    Effect.catchTag(book.withdraw(sessionOf(thread.id), id), "NotWaiting", () => Effect.void)
  )

export const deleted = Effect.fn("Changes.deleted")(function* (thread: Thread, message: string) {
  const input = yield* waitingOf(thread, message)
  if (input !== undefined) yield* withdraw(thread, input.id)
})

const timeOf = ({ edited_timestamp: at }: Message): number => Date.parse(at ?? "")

/** Takes back the former prompt and admits the new one, unless the model has seen the former one. */
const replace = Effect.fn("Changes.replace")(function* (thread: Thread, message: Message, edit: Edit) {
  const [book, outbox] = [yield* Book, yield* Outbox]
  yield* withdraw(thread, edit.former)
  const isShown = (yield* book.message(sessionOf(thread.id), edit.former)) !== undefined
  if (!isShown) yield* admit(thread, message, edit.delivery, timeOf(message))
  yield* outbox.endEdit(message.id)
})

/** The message as it is now; undefined if it was deleted. */
const current = (channel: string, message: string) =>
  Effect.flatMap(Discord, (discord) =>
    Effect.catchIf(
      Messages.one(discord, channel, message),
      ({ reason }) => reason === "message-gone",
      () => Effect.succeed(undefined)
    )
  )

/** Lets a waiting prompt say what its message says now: events may be late, repeated or lost. */
const align = Effect.fn("Changes.align")(function* (thread: Thread, { delivery, id: former, prompt }: Input) {
  const id = messageOf(former)
  if (id === undefined) return
  // A thread may begin with a message of its parent.
  const message = yield* current(id === thread.id ? thread.parent : thread.id, id)
  if (message === undefined) return yield* withdraw(thread, former)
  const time = timeOf(message)
  if (Number.isNaN(time) || message.author.bot === true || editOf(former) === time) return
  if (prompt.text === textOf(message, (yield* Discord).self.id)) return
  const edit: Edit = { message: id, channel: message.channel_id, former, delivery }
  yield* (yield* Outbox).beginEdit(edit)
  yield* replace(thread, message, edit)
})

export const edited = Effect.fn("Changes.edited")(function* (thread: Thread, message: Message) {
  // A preview of a link is an update too.
  if (Number.isNaN(timeOf(message))) return
  const input = yield* waitingOf(thread, message.id)
  if (input !== undefined) yield* align(thread, input)
})

/** Compares all waiting prompts with their messages, which may have changed while the bot was away. */
export const compare = Effect.fn("Changes.compare")(function* (thread: Thread) {
  yield* Effect.forEach(yield* waiting(thread), (input) => align(thread, input), { discard: true })
})

/** Finishes an edit that a crash cut in two. */
export const finish = Effect.fn("Changes.finish")(function* (thread: Thread, edit: Edit) {
  const message = yield* current(edit.channel, edit.message)
  if (message !== undefined) return yield* replace(thread, message, edit)
  yield* withdraw(thread, edit.former)
  yield* (yield* Outbox).endEdit(edit.message)
})
