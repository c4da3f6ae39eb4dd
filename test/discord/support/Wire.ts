/** The objects of the state as Discord's JSON: users, members, channels, messages, the guild. Spec: Discord's API v10. */
import { ChannelType } from "discord.js"
import { permissionsIn } from "./Permissions.ts"
import {
  type Channel,
  type Interaction,
  type Json,
  type Member,
  type Message,
  type User,
  visible,
  type World
} from "./World.ts"

const iso = (at: number) => new Date(at).toISOString()

export const userOf = ({ bot, id, username }: User): Json => ({
  id,
  username,
  bot,
  discriminator: "0",
  global_name: null,
  avatar: null,
  flags: 0
})

/** A member without its user, as it is in messages. */
const partialMemberOf = (member: Member | undefined): Json => ({
  roles: member?.roles ?? [],
  joined_at: iso(0),
  deaf: false,
  mute: false,
  flags: 0
})

export const memberOf = (member: Member): Json => ({ user: userOf(member.user), ...partialMemberOf(member) })

const threadOf = (world: World, channel: Channel) => {
  const { thread } = channel
  if (thread === undefined) return {}
  return {
    parent_id: thread.parentId,
    owner_id: thread.ownerId,
    message_count: visible(channel).length,
    member_count: thread.members.size,
    thread_metadata: {
      archived: thread.archived,
      locked: thread.locked,
      auto_archive_duration: thread.autoArchive,
      archive_timestamp: iso(thread.archivedAt),
      create_timestamp: iso(thread.createdAt)
    },
    ...(thread.members.has(world.bot.id) ? { member: threadMemberOf(world, channel, world.bot.id) } : {})
  }
}

export const threadMemberOf = (world: World, channel: Channel, userId: string): Json => ({
  id: channel.id,
  user_id: userId,
  join_timestamp: iso(channel.thread?.createdAt ?? 0),
  flags: 0
})

export const channelOf = (world: World, channel: Channel): Json => ({
  id: channel.id,
  type: channel.thread === undefined ? ChannelType.GuildText : ChannelType.PublicThread,
  guild_id: world.guildId,
  name: channel.name,
  position: 0,
  nsfw: false,
  topic: null,
  parent_id: null,
  rate_limit_per_user: 0,
  last_message_id: channel.messages.at(-1)?.id ?? null,
  permission_overwrites: channel.overwrites.map(({ allow, deny, id, type }) => ({
    id,
    type,
    allow: String(allow),
    deny: String(deny)
  })),
  ...threadOf(world, channel)
})

const rolesOf = (world: World) =>
  [...world.roles.values()].map(({ id, name, permissions }) => ({
    id,
    name,
    permissions: String(permissions),
    position: id === world.guildId ? 0 : 1,
    color: 0,
    colors: { primary_color: 0, secondary_color: null, tertiary_color: null },
    hoist: false,
    managed: false,
    mentionable: false,
    flags: 0
  }))

/** What marks the answer to an interaction. */
const answering = (world: World, { answerTo }: Message): Json => {
  const member = answerTo === undefined ? undefined : world.members.get(answerTo.userId)
  if (answerTo === undefined || member === undefined) return {}
  return {
    webhook_id: world.bot.id,
    application_id: world.bot.id,
    interaction_metadata: {
      id: answerTo.id,
      type: 2,
      user: userOf(member.user),
      authorizing_integration_owners: { 0: world.guildId }
    }
  }
}

/** The message; its nonce only where the author learns it: in the reply to its creation, and over the gateway. */
export const messageOf = (world: World, message: Message, withNonce = false): Json => ({
  id: message.id,
  type: message.type,
  channel_id: message.channelId,
  author: userOf(message.author),
  content: message.content,
  timestamp: iso(message.createdAt),
  edited_timestamp: message.editedAt === undefined ? null : iso(message.editedAt),
  tts: false,
  pinned: false,
  mention_everyone: message.pings.everyone,
  mentions: message.pings.users.flatMap((id) => {
    const member = world.members.get(id)
    return member === undefined ? [] : [userOf(member.user)]
  }),
  mention_roles: message.pings.roles,
  attachments: message.attachments.map(({ bytes, contentType, filename, id }) => {
    const url = `http://127.0.0.1:${world.address.port}/attachments/${message.channelId}/${id}/${encodeURIComponent(filename)}`
    return { id, filename, size: bytes.length, url, proxy_url: url, content_type: contentType }
  }),
  embeds: message.embeds,
  components: message.components,
  flags: message.flags,
  reactions: [...message.reactions].flatMap(([name, users]) =>
    users.size === 0
      ? []
      : [
          {
            count: users.size,
            count_details: { burst: 0, normal: users.size },
            me: users.has(world.bot.id),
            me_burst: false,
            burst_colors: [],
            emoji: { id: null, name }
          }
        ]
  ),
  ...(message.reference === undefined
    ? {}
    : {
        message_reference: {
          type: 0,
          guild_id: world.guildId,
          channel_id: message.reference.channelId,
          message_id: message.reference.messageId
        }
      }),
  ...answering(world, message),
  ...(withNonce && message.nonce !== undefined ? { nonce: message.nonce } : {})
})

/** A message as the gateway sends it: with its guild and member. */
export const messageEvent = (world: World, message: Message): Json => ({
  ...messageOf(world, message, true),
  guild_id: world.guildId,
  member: partialMemberOf(world.members.get(message.author.id))
})

export const interactionOf = (
  world: World,
  interaction: Interaction,
  channel: Channel,
  type: number,
  data: Json
): Json => {
  const member = world.members.get(interaction.userId)
  return {
    id: interaction.id,
    application_id: world.bot.id,
    type,
    token: interaction.token,
    version: 1,
    guild_id: world.guildId,
    channel_id: channel.id,
    channel: channelOf(world, channel),
    locale: "en-US",
    guild_locale: "en-US",
    entitlements: [],
    authorizing_integration_owners: { 0: world.guildId },
    context: 0,
    attachment_size_limit: 10_485_760,
    app_permissions: String(permissionsIn(world, channel, world.bot.id)),
    member: {
      ...(member === undefined ? {} : memberOf(member)),
      permissions: String(permissionsIn(world, channel, interaction.userId))
    },
    ...(interaction.source === undefined ? {} : { message: messageOf(world, interaction.source) }),
    data
  }
}

const absent = {
  icon: null,
  splash: null,
  banner: null,
  description: null,
  afk_channel_id: null,
  application_id: null,
  system_channel_id: null,
  rules_channel_id: null,
  public_updates_channel_id: null,
  safety_alerts_channel_id: null,
  vanity_url_code: null
}

export const guildOf = (world: World): Json => ({
  ...absent,
  id: world.guildId,
  name: "guild",
  owner_id: "100000000000000001",
  features: [],
  emojis: [],
  stickers: [],
  afk_timeout: 300,
  default_message_notifications: 0,
  explicit_content_filter: 0,
  mfa_level: 0,
  nsfw_level: 0,
  preferred_locale: "en-US",
  premium_progress_bar_enabled: false,
  premium_tier: 0,
  system_channel_flags: 0,
  verification_level: 0,
  roles: rolesOf(world)
})

const sees = (world: World) => (channel: Channel) =>
  !channel.deleted && (permissionsIn(world, channel, world.bot.id) & (1n << 10n)) !== 0n

/** The guild as a gateway session starts with it: the channels and active threads that the bot sees. */
export const guildCreated = (world: World): Json => {
  const seen = [...world.channels.values()].filter(sees(world))
  return {
    ...guildOf(world),
    members: [...world.members.values()].map(memberOf),
    channels: seen.filter(({ thread }) => thread === undefined).map((channel) => channelOf(world, channel)),
    threads: seen.filter(({ thread }) => thread?.archived === false).map((channel) => channelOf(world, channel)),
    presences: [],
    voice_states: [],
    stage_instances: [],
    guild_scheduled_events: [],
    soundboard_sounds: [],
    member_count: world.members.size,
    large: false,
    unavailable: false,
    joined_at: iso(0)
  }
}
