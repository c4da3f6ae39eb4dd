/**
 * Follows edits and deletions of messages while their prompts wait: a deleted one is withdrawn, an edited one is withdrawn
 * and admitted anew. What the model has seen stays. Spec: DI-34 in specs/discord.md.
 */
import { Effect } from "effect"
import type { MessageID } from "@daybook/log/domain/Identifiers"
import type { Input } from "@daybook/log/domain/Message"
import { Book } from "../book/Book.ts"
import { editOf, messageOf, sessionOf } from "../domain/Names.ts"
import { type Edit, Outbox } from "../outbox/Outbox.ts"
import { Discord } from "../wire/Discord.ts"
import * as Messages from "../wire/Messages.ts"
import type { Message } from "../wire/Packets.ts"
import { admit, textOf, type Thread } from "./Admission.ts"

/** The prompts that wait. */
const waiting = (thread: Thread) =>
  Effect.flatMap(Book, (book) =>
    Effect.catchTag(book.inbox(sessionOf(thread.id)), "SessionNotFound", () => Effect.succeed([]))
  )

/** The prompt of a message that waits. */
const waitingOf = (thread: Thread, message: string) =>
  Effect.map(waiting(thread), (inputs) => inputs.find(({ id }) => messageOf(id) === message))

const withdraw = (thread: Thread, id: MessageID) =>
  Effect.flatMap(Book, (book) =>
    // It was promoted or withdrawn in the meantime.
    Effect.catchTag(book.withdraw(sessionOf(thread.id), id), "NotWaiting", () => Effect.void)
  )

/** Withdraws the prompt of a deleted message. */
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

/** Replaces the prompt of an edited message. */
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
