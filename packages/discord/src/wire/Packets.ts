/** What the bot reads of Discord's messages and events, as schemas. Other fields are ignored. Spec: DI-30 in specs/discord.md. */
import { Either, Schema } from "effect"
import { Snowflake } from "../domain/Names.ts"

const optional = <A, I>(schema: Schema.Schema<A, I>) => Schema.optional(schema)

export const User = Schema.Struct({
  id: Snowflake,
  username: Schema.String,
  global_name: optional(Schema.NullOr(Schema.String)),
  bot: optional(Schema.Boolean)
})

/** A member of a guild, beside its user. */
export const Member = Schema.Struct({ roles: Schema.Array(Snowflake) })

export const Attachment = Schema.Struct({
  id: Snowflake,
  filename: Schema.String,
  size: Schema.Int,
  url: Schema.String,
  content_type: optional(Schema.String)
})
export type Attachment = typeof Attachment.Type

export const Channel = Schema.Struct({
  id: Snowflake,
  type: Schema.Int,
  guild_id: optional(Snowflake),
  parent_id: optional(Schema.NullOr(Snowflake)),
  last_message_id: optional(Schema.NullOr(Snowflake)),
  thread_metadata: optional(Schema.Struct({ archived: Schema.Boolean, locked: optional(Schema.Boolean) }))
})
export type Channel = typeof Channel.Type

export const Message = Schema.Struct({
  id: Snowflake,
  channel_id: Snowflake,
  guild_id: optional(Snowflake),
  type: Schema.Int,
  author: User,
  /** Only in events: messages that are fetched have none. */
  member: optional(Member),
  content: Schema.String,
  nonce: optional(Schema.Union(Schema.String, Schema.Number)),
  edited_timestamp: optional(Schema.NullOr(Schema.String)),
  mentions: optional(Schema.Array(User)),
  attachments: optional(Schema.Array(Attachment)),
  webhook_id: optional(Snowflake),
  interaction_metadata: optional(Schema.NullOr(Schema.Struct({ id: Snowflake })))
})
export type Message = typeof Message.Type

const Option = Schema.Struct({ name: Schema.String, type: Schema.Int, value: optional(Schema.Unknown) })

export const Interaction = Schema.Struct({
  id: Snowflake,
  application_id: Snowflake,
  /** 2: a command; 3: a button or menu; 5: a form. */
  type: Schema.Int,
  token: Schema.String,
  guild_id: optional(Snowflake),
  channel_id: optional(Snowflake),
  channel: optional(Channel),
  member: optional(Schema.Struct({ user: User, roles: Schema.Array(Snowflake) })),
  message: optional(Schema.Struct({ id: Snowflake })),
  data: optional(
    Schema.Struct({
      name: optional(Schema.String),
      options: optional(Schema.Array(Option)),
      custom_id: optional(Schema.String),
      values: optional(Schema.Array(Schema.String)),
      components: optional(Schema.Array(Schema.Unknown))
    })
  )
})
export type Interaction = typeof Interaction.Type

const packet = <const T extends string, A, I>(t: T, d: Schema.Schema<A, I>) =>
  Schema.Struct({ t: Schema.Literal(t), d })

/** An event of the gateway that the bot reacts to. */
export const Packet = Schema.Union(
  packet("READY", Schema.Struct({ user: User, application: Schema.Struct({ id: Snowflake }) })),
  packet("RESUMED", Schema.Unknown),
  packet("MESSAGE_CREATE", Message),
  packet("MESSAGE_UPDATE", Message),
  packet("MESSAGE_DELETE", Schema.Struct({ id: Snowflake, channel_id: Snowflake })),
  packet("MESSAGE_DELETE_BULK", Schema.Struct({ ids: Schema.Array(Snowflake), channel_id: Snowflake })),
  packet("INTERACTION_CREATE", Interaction),
  packet("THREAD_DELETE", Schema.Struct({ id: Snowflake })),
  packet("CHANNEL_DELETE", Schema.Struct({ id: Snowflake })),
  packet("GUILD_DELETE", Schema.Struct({ id: Snowflake, unavailable: optional(Schema.Boolean) }))
)
export type Packet = typeof Packet.Type

const decode = Schema.decodeUnknownEither(Packet)

/** The event; undefined for one that the bot does not react to, or that has another form. */
export const read = (raw: unknown): Packet | undefined => Either.getOrUndefined(decode(raw))
