/**
 * Derives the ids of sessions and prompts from Discord's ids, so that a message that comes twice is the same prompt and no
 * table maps them. Pure. Spec: DI-1, DI-30 in specs/discord.md.
 */
import { Schema } from "effect"
import { MessageID, SessionID } from "@daybook/log/domain/Identifiers"

/** An id of Discord: a number as text, ordered by time. */
export const Snowflake = Schema.String.pipe(Schema.pattern(/^\d{1,20}$/))
export type Snowflake = typeof Snowflake.Type

/** Whether the first id is of a later time. */
export const isLater = (one: Snowflake, other: Snowflake): boolean => BigInt(one) > BigInt(other)

/** The first id of a time, in milliseconds since the epoch: Discord's ids begin with 2015. */
export const snowflakeOf = (time: number): Snowflake =>
  String(BigInt(Math.max(0, Math.floor(time) - 1_420_070_400_000)) << 22n)

export const sessionOf = (thread: Snowflake): SessionID => SessionID.make(`ses_discord-${thread}`)

export const threadOf = (sessionID: string): Snowflake | undefined => /^ses_discord-(\d{1,20})$/.exec(sessionID)?.[1]

export const promptOf = (message: Snowflake, edit?: number): MessageID =>
  MessageID.make(`msg_discord-${message}${edit === undefined ? "" : `-${edit}`}`)

/** The prompt of a command, which no message of a channel holds. */
export const promptOfCommand = (interaction: Snowflake): MessageID => MessageID.make(`msg_discord-i${interaction}`)

/** The message of a prompt; undefined for a prompt of another origin. */
export const messageOf = (messageID: string): Snowflake | undefined =>
  /^msg_discord-(\d{1,20})(?:-\d+)?$/.exec(messageID)?.[1]

/** When the message of a prompt was edited; undefined for its first text. */
export const editOf = (messageID: string): number | undefined => {
  const time = /^msg_discord-\d{1,20}-(\d+)$/.exec(messageID)?.[1]
  return time === undefined ? undefined : Number(time)
}
