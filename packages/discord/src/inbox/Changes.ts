/**
 * Follows edits and deletions of messages while their prompts wait: a deleted one is withdrawn, an edited one is withdrawn
 * and admitted anew. What the model has seen stays. Spec: DI-34 in specs/discord.md.
 */
import { Effect } from "effect"
import type { MessageID } from "@daybook/log/domain/Identifiers"
import { Book } from "../book/Book.ts"
import { messageOf, sessionOf } from "../domain/Names.ts"
import { type Edit, Outbox } from "../outbox/Outbox.ts"
import { Discord } from "../wire/Discord.ts"
import * as Messages from "../wire/Messages.ts"
import type { Message } from "../wire/Packets.ts"
import { admit, textOf, type Thread } from "./Admission.ts"

/** The prompt of a message that waits. */
const waiting = (thread: Thread, message: string) =>
  Effect.gen(function* () {
    const book = yield* Book
    const inputs = yield* Effect.catchTag(book.inbox(sessionOf(thread.id)), "SessionNotFound", () => Effect.succeed([]))
    return inputs.find(({ id }) => messageOf(id) === message)
  })

const withdraw = (thread: Thread, id: MessageID) =>
  Effect.flatMap(Book, (book) =>
    // It was promoted or withdrawn in the meantime.
    Effect.catchTag(book.withdraw(sessionOf(thread.id), id), "NotWaiting", () => Effect.void)
  )

/** Withdraws the prompt of a deleted message. */
export const deleted = Effect.fn("Changes.deleted")(function* (thread: Thread, message: string) {
  const input = yield* waiting(thread, message)
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

/** Replaces the prompt of an edited message. */
export const edited = Effect.fn("Changes.edited")(function* (thread: Thread, message: Message) {
  if (Number.isNaN(timeOf(message))) return
  const { self } = yield* Discord
  const input = yield* waiting(thread, message.id)
  // A preview of a link is an update too.
  if (input === undefined || input.prompt.text === textOf(message, self.id)) return
  const edit: Edit = { message: message.id, channel: message.channel_id, former: input.id, delivery: input.delivery }
  yield* (yield* Outbox).beginEdit(edit)
  yield* replace(thread, message, edit)
})

/** Finishes an edit that a crash cut in two. */
export const finish = Effect.fn("Changes.finish")(function* (thread: Thread, edit: Edit) {
  const discord = yield* Discord
  yield* Effect.flatMap(Messages.one(discord, edit.channel, edit.message), (message) =>
    replace(thread, message, edit)
  ).pipe(
    Effect.catchIf(
      (error) => error._tag === "DiscordError" && error.reason === "message-gone",
      () => Effect.flatMap(Outbox, (outbox) => outbox.endEdit(edit.message))
    )
  )
})
