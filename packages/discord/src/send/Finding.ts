/**
 * Finds the message that an attempt made whose end is unknown. Of each channel at most one attempt is open, and the bot
 * writes there only through its outbox and in answers to interactions: so the message is the one of the bot, behind the
 * attempt's anchor, that is no post yet. Spec: DI-11, DI-12 in specs/discord.md, specs/decisions/0069-discord-outbox.md.
 */
import { Context, Effect } from "effect"
import { Outbox } from "../outbox/Outbox.ts"
import type { DuePost } from "../outbox/Outbox.ts"
import { Discord } from "../wire/Discord.ts"
import * as Messages from "../wire/Messages.ts"
import type { Message } from "../wire/Packets.ts"

/** A message and an answer to a message; other types are notes of Discord. */
const types = [0, 19]

/** Pages of a hundred messages that are looked through. */
const mostPages = 20

/** Whether both show the same text: Discord removes space around it. */
export const sameText = (one: string, other: string): boolean => one.trim() === other.trim()

/** The message of the attempt; undefined if it made none. */
export const find = Effect.fn("Finding.find")(function* (channel: string, { anchor = channel, attempt }: DuePost) {
  const [discord, outbox] = [yield* Discord, yield* Outbox]
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

export type Services = Context.Tag.Identifier<typeof Discord> | Context.Tag.Identifier<typeof Outbox>
