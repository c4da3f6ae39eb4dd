/**
 * Creates, edits, lists and deletes messages, as REST asks for it. `enforce_nonce` returns the author's message of the same nonce
 * while the server's clock is within the nonce window; neither history nor a lookup tells a nonce.
 */
import { GatewayIntentBits, MessageFlags, PermissionFlagsBits } from "discord.js"
import { Effect } from "effect"
import { longestContent, type MessageBody } from "./Bodies.ts"
import { dispatch, dispatchMessage } from "./Dispatching.ts"
import { requireBot } from "./Permissions.ts"
import * as Refusal from "./Refusal.ts"
import { unarchive } from "./Threads.ts"
import { memberOf } from "./Wire.ts"
import {
  type Attachment,
  type Channel,
  type Member,
  type Message,
  nextId,
  now,
  type User,
  visible,
  type World
} from "./World.ts"

export interface File {
  /** The name of its part, such as `files[0]`. */
  readonly field: string
  readonly filename: string
  readonly contentType: string
  readonly bytes: Uint8Array
}

export const largestFile = 10_485_760

const mentioned = (text: string, form: RegExp) => [...new Set([...text.matchAll(form)].map(([, id]) => id ?? ""))]

/** Whom a text notifies. Without `allowed_mentions` everything in it counts; mentions in code are not exempt here. */
const pingsOf = (
  world: World,
  content: string,
  allowed: MessageBody["allowed_mentions"],
  replyTo: Message | undefined
): Message["pings"] => {
  const parses = (kind: "everyone" | "users" | "roles") => allowed == null || (allowed.parse ?? []).includes(kind)
  const users = mentioned(content, /<@!?(\d+)>/g).filter(
    (id) => world.members.has(id) && (parses("users") || (allowed?.users ?? []).includes(id))
  )
  const replied = replyTo !== undefined && (allowed == null || allowed.replied_user === true) ? [replyTo.author.id] : []
  return {
    everyone: parses("everyone") && /@(?:everyone|here)\b/.test(content),
    users: [...new Set([...users, ...replied])],
    roles: mentioned(content, /<@&(\d+)>/g).filter(
      (id) => world.roles.has(id) && (parses("roles") || (allowed?.roles ?? []).includes(id))
    )
  }
}

/** Stores files, each with an id and an address. */
const storeFiles = (world: World, files: ReadonlyArray<File>): ReadonlyArray<Attachment> =>
  files.map(({ bytes, contentType, filename }) => {
    const attachment = { id: nextId(world), filename, contentType, bytes }
    world.attachments.set(attachment.id, attachment)
    return attachment
  })

export interface Draft {
  readonly author: User
  readonly body: MessageBody
  readonly files?: ReadonlyArray<File>
  readonly type?: number
  readonly answerTo?: Message["answerTo"]
}

/** A message that is in no channel yet. Discord trims the text. */
export const draft = (world: World, channel: Channel, { answerTo, author, body, files = [], type }: Draft): Message => {
  const content = (body.content ?? "").trim()
  const replyTo = visible(channel).find(({ id }) => id === body.message_reference?.message_id)
  return {
    id: nextId(world),
    channelId: channel.id,
    type: type ?? (replyTo === undefined ? 0 : 19),
    author,
    content,
    attachments: storeFiles(world, files),
    components: body.components ?? [],
    embeds: body.embeds ?? [],
    pings: pingsOf(world, content, body.allowed_mentions, replyTo),
    flags: body.flags ?? 0,
    nonce: body.nonce ?? undefined,
    answerTo,
    reference: replyTo === undefined ? undefined : { channelId: channel.id, messageId: replyTo.id },
    createdAt: now(world),
    editedAt: undefined,
    deleted: false,
    threadId: undefined,
    revisions: [content],
    reactions: new Map()
  }
}

/** Puts a message into its channel, which unarchives a thread, and announces it. */
export const post = (world: World, channel: Channel, message: Message): Message => {
  unarchive(world, channel)
  channel.messages.push(message)
  dispatchMessage(world, "MESSAGE_CREATE", channel, message)
  return message
}

/** Refuses an empty text, and files that are too large. */
export const checkContent = (body: MessageBody, files: ReadonlyArray<File>): Effect.Effect<void, Refusal.Refusal> => {
  if (files.some(({ bytes }) => bytes.length > largestFile)) return Refusal.tooLarge()
  const parts = (body.embeds?.length ?? 0) + (body.components?.length ?? 0) + files.length
  if ((body.content ?? "").length > longestContent)
    return Refusal.invalidForm("content", "Must be 2000 or fewer in length.")
  return (body.content ?? "").trim() === "" && parts === 0 ? Refusal.emptyMessage() : Effect.void
}

/** The right to write into a channel or a thread. */
export const requireSend = (world: World, channel: Channel, files: number) =>
  requireBot(
    world,
    channel,
    (channel.thread === undefined ? PermissionFlagsBits.SendMessages : PermissionFlagsBits.SendMessagesInThreads) |
      (files > 0 ? PermissionFlagsBits.AttachFiles : 0n)
  )

export const create = Effect.fnUntraced(function* (
  world: World,
  channel: Channel,
  body: MessageBody,
  files: ReadonlyArray<File>
) {
  yield* requireSend(world, channel, files.length)
  if (channel.thread?.locked === true && channel.thread.archived) return yield* Refusal.lockedThread()
  yield* checkContent(body, files)
  const key = body.enforce_nonce === true && body.nonce != null ? String(body.nonce) : undefined
  const known = key === undefined ? undefined : world.nonces.get(key)
  if (known !== undefined && now(world) - known.at < world.settings.nonceWindow) return known.message
  const replyTo = body.message_reference
  const missing = replyTo != null && !visible(channel).some(({ id }) => id === replyTo.message_id)
  if (missing && replyTo.fail_if_not_exists !== false)
    return yield* Refusal.invalidForm("message_reference", "Unknown message")
  const message = post(world, channel, draft(world, channel, { author: world.bot, body, files }))
  if (body.nonce != null) world.nonces.set(String(body.nonce), { message, at: now(world) })
  return message
})

/** The message, if it exists in the channel and the bot may read its history. */
export const messageOf = (world: World, channel: Channel, id: string): Effect.Effect<Message, Refusal.Refusal> =>
  Effect.flatMap(requireBot(world, channel, PermissionFlagsBits.ReadMessageHistory), () => {
    const message = channel.messages.find((one) => one.id === id && !one.deleted)
    return message === undefined ? Refusal.unknownMessage() : Effect.succeed(message)
  })

const active = (channel: Channel) => (channel.thread?.archived === true ? Refusal.archivedThread() : Effect.void)

/** Replaces the parts that the body names. Attachments that it does not name go. */
export const change = (world: World, message: Message, body: MessageBody, files: ReadonlyArray<File>): void => {
  if (body.content !== undefined) {
    message.content = (body.content ?? "").trim()
    message.revisions.push(message.content)
    message.pings = pingsOf(world, message.content, body.allowed_mentions, undefined)
  }
  if (body.components !== undefined) message.components = body.components ?? []
  if (body.embeds !== undefined) message.embeds = body.embeds ?? []
  if (body.flags != null) {
    const kept = message.flags & ~MessageFlags.SuppressEmbeds
    message.flags = kept | (body.flags & MessageFlags.SuppressEmbeds)
  }
  const named = body.attachments?.map(({ id }) => String(id))
  const kept = named === undefined ? message.attachments : message.attachments.filter(({ id }) => named.includes(id))
  message.attachments = [...kept, ...storeFiles(world, files)]
  message.editedAt = now(world)
}

export const edit = Effect.fnUntraced(function* (
  world: World,
  channel: Channel,
  id: string,
  body: MessageBody,
  files: ReadonlyArray<File>
) {
  const message = yield* messageOf(world, channel, id)
  if (message.author.id !== world.bot.id) return yield* Refusal.notTheAuthor()
  yield* active(channel)
  const content = body.content === undefined ? message.content : body.content
  const embeds = body.embeds === undefined ? message.embeds : body.embeds
  const components = body.components === undefined ? message.components : body.components
  yield* checkContent({ ...body, content, embeds: embeds ?? [], components: null }, files).pipe(
    Effect.catchIf(
      ({ code }) => code === 50006 && ((components?.length ?? 0) > 0 || message.attachments.length > 0),
      () => Effect.void
    )
  )
  change(world, message, body, files)
  dispatchMessage(world, "MESSAGE_UPDATE", channel, message)
  return message
})

/** Marks it as deleted and announces it. */
export const remove = (world: World, channel: Channel, message: Message): void => {
  message.deleted = true
  dispatch(world, "MESSAGE_DELETE", GatewayIntentBits.GuildMessages, {
    id: message.id,
    channel_id: channel.id,
    guild_id: world.guildId
  })
}

export const removeByBot = Effect.fnUntraced(function* (world: World, channel: Channel, id: string) {
  const message = yield* messageOf(world, channel, id)
  if (message.author.id !== world.bot.id) yield* requireBot(world, channel, PermissionFlagsBits.ManageMessages)
  remove(world, channel, message)
})

/** Newest first, as Discord answers; without the right to read history, none. */
export const list = (world: World, channel: Channel, query: URLSearchParams) => {
  const limit = Number(query.get("limit") ?? 50)
  if (!Number.isInteger(limit) || limit < 1 || limit > 100)
    return Refusal.invalidForm("limit", "int value should be between 1 and 100.")
  const all = visible(channel)
  const [before, after, around] = ["before", "after", "around"].map((name) => query.get(name))
  const earlier = (id: string) => all.filter((one) => BigInt(one.id) < BigInt(id))
  const later = (id: string) => all.filter((one) => BigInt(one.id) > BigInt(id))
  const found =
    around != null
      ? [
          ...earlier(around).slice(-Math.floor(limit / 2)),
          ...all.filter(({ id }) => id === around),
          ...later(around).slice(0, Math.floor(limit / 2))
        ]
      : before != null
        ? earlier(before).slice(-limit)
        : after != null
          ? later(after).slice(0, limit)
          : all.slice(-limit)
  return requireBot(world, channel, PermissionFlagsBits.ReadMessageHistory).pipe(
    Effect.as(found.toReversed()),
    Effect.catchIf(
      ({ code }) => code === 50013,
      () => Effect.succeed<ReadonlyArray<Message>>([])
    )
  )
}

const reactionEvent = (world: World, message: Message, member: Member | undefined, emoji: string) => ({
  user_id: member?.user.id,
  ...(member === undefined ? {} : { member: memberOf(member) }),
  message_author_id: message.author.id,
  channel_id: message.channelId,
  message_id: message.id,
  guild_id: world.guildId,
  emoji: { id: null, name: emoji },
  burst: false,
  type: 0
})

/** Adds or removes one reaction; repeated, it changes nothing. */
export const setReaction = (world: World, message: Message, userId: string, emoji: string, present: boolean): void => {
  const users = message.reactions.get(emoji) ?? new Set<string>()
  if (users.has(userId) === present) return
  message.reactions.set(emoji, users)
  if (present) users.add(userId)
  else users.delete(userId)
  const type = present ? "MESSAGE_REACTION_ADD" : "MESSAGE_REACTION_REMOVE"
  dispatch(
    world,
    type,
    GatewayIntentBits.GuildMessageReactions,
    reactionEvent(world, message, world.members.get(userId), emoji)
  )
}

export const react = Effect.fnUntraced(function* (
  world: World,
  channel: Channel,
  id: string,
  emoji: string,
  present: boolean
) {
  const message = yield* messageOf(world, channel, id)
  yield* active(channel)
  if (present && !message.reactions.has(emoji)) yield* requireBot(world, channel, PermissionFlagsBits.AddReactions)
  setReaction(world, message, world.bot.id, emoji, present)
})
