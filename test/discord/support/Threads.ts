/** Creates, changes, archives and deletes threads. A thread that starts from a message has the id of that message. */
import { ChannelType, GatewayIntentBits, PermissionFlagsBits } from "discord.js"
import { Effect } from "effect"
import type { ChannelPatch, ThreadBody } from "./Bodies.ts"
import { dispatch } from "./Dispatching.ts"
import { requireBot } from "./Permissions.ts"
import * as Refusal from "./Refusal.ts"
import * as Wire from "./Wire.ts"
import { type Channel, nextId, now, type World } from "./World.ts"

/** Opens a thread and announces it; `id` is that of the message it starts from. */
export const open = (
  world: World,
  parent: Channel,
  { autoArchive, id, name, ownerId }: { id: string; name: string; ownerId: string; autoArchive?: number | undefined }
): Channel => {
  const at = now(world)
  const channel: Channel = {
    id,
    name,
    overwrites: [],
    messages: [],
    deleted: false,
    thread: {
      parentId: parent.id,
      ownerId,
      createdAt: at,
      archivedAt: at,
      archived: false,
      locked: false,
      autoArchive: autoArchive ?? 1440,
      members: new Set([ownerId])
    }
  }
  world.channels.set(id, channel)
  dispatch(world, "THREAD_CREATE", GatewayIntentBits.Guilds, { ...Wire.channelOf(world, channel), newly_created: true })
  return channel
}

export const createFrom = Effect.fnUntraced(function* (
  world: World,
  parent: Channel,
  messageId: string,
  body: typeof ThreadBody.Type
) {
  yield* requireBot(world, parent, PermissionFlagsBits.CreatePublicThreads)
  const message = parent.messages.find(({ deleted, id }) => id === messageId && !deleted)
  if (message === undefined) return yield* Refusal.unknownMessage()
  if (message.threadId !== undefined) return yield* Refusal.threadExists()
  message.threadId = messageId
  const autoArchive = body.auto_archive_duration ?? undefined
  return open(world, parent, { id: messageId, name: body.name, ownerId: world.bot.id, autoArchive })
})

export const createAlone = Effect.fnUntraced(function* (world: World, parent: Channel, body: typeof ThreadBody.Type) {
  const isPrivate = body.type == null || body.type === ChannelType.PrivateThread
  yield* requireBot(
    world,
    parent,
    isPrivate ? PermissionFlagsBits.CreatePrivateThreads : PermissionFlagsBits.CreatePublicThreads
  )
  const autoArchive = body.auto_archive_duration ?? undefined
  return open(world, parent, { id: nextId(world), name: body.name, ownerId: world.bot.id, autoArchive })
})

const announce = (world: World, channel: Channel) =>
  dispatch(world, "THREAD_UPDATE", GatewayIntentBits.Guilds, Wire.channelOf(world, channel))

/** Archives or unarchives. */
export const setArchived = (world: World, channel: Channel, archived: boolean, locked?: boolean): void => {
  const { thread } = channel
  if (thread === undefined) return
  thread.archived = archived
  if (locked !== undefined) thread.locked = locked
  thread.archivedAt = now(world)
  announce(world, channel)
}

/** A message in an archived thread opens it again. */
export const unarchive = (world: World, channel: Channel): void => {
  if (channel.thread?.archived === true) setArchived(world, channel, false)
}

export const change = Effect.fnUntraced(function* (world: World, channel: Channel, body: typeof ChannelPatch.Type) {
  const { thread } = channel
  const manages = thread === undefined ? PermissionFlagsBits.ManageChannels : PermissionFlagsBits.ManageThreads
  const asOwner = thread?.ownerId === world.bot.id && body.locked === undefined
  const opens = body.archived === false && Object.keys(body).length === 1
  if (thread?.locked === true || (!asOwner && !opens)) yield* requireBot(world, channel, manages)
  if (thread?.archived === true && body.archived !== false) return yield* Refusal.archivedThread()
  if (body.name !== undefined) channel.name = body.name
  if (thread !== undefined) {
    if (body.auto_archive_duration !== undefined) thread.autoArchive = body.auto_archive_duration
    setArchived(world, channel, body.archived ?? thread.archived, body.locked)
  }
  return channel
})

/** Deletes a channel or a thread, with its messages. */
export const destroy = (world: World, channel: Channel): void => {
  channel.deleted = true
  const parent = channel.thread?.parentId
  dispatch(world, parent === undefined ? "CHANNEL_DELETE" : "THREAD_DELETE", GatewayIntentBits.Guilds, {
    id: channel.id,
    guild_id: world.guildId,
    type: parent === undefined ? ChannelType.GuildText : ChannelType.PublicThread,
    ...(parent === undefined ? { name: channel.name } : { parent_id: parent })
  })
}

export const setMember = Effect.fnUntraced(function* (
  world: World,
  channel: Channel,
  userId: string,
  present: boolean
) {
  const { thread } = channel
  if (thread === undefined) return yield* Refusal.unknownChannel()
  if (thread.archived) return yield* Refusal.archivedThread()
  if (!world.members.has(userId)) return yield* Refusal.unknownMember()
  if (present) thread.members.add(userId)
  else thread.members.delete(userId)
  dispatch(world, "THREAD_MEMBERS_UPDATE", userId === world.bot.id ? 0 : GatewayIntentBits.GuildMembers, {
    id: channel.id,
    guild_id: world.guildId,
    member_count: thread.members.size,
    ...(present ? { added_members: [Wire.threadMemberOf(world, channel, userId)] } : { removed_member_ids: [userId] })
  })
})
