/** Schemas of what REST requests carry; what they refuse is Discord's "Invalid Form Body". */
import { Effect, Schema } from "effect"
import * as Refusal from "./Refusal.ts"

const Snowflake = Schema.String.pipe(Schema.pattern(/^\d{17,20}$/))
const Record = Schema.Record({ key: Schema.String, value: Schema.Unknown })

const CustomId = Schema.String.pipe(Schema.minLength(1), Schema.maxLength(100))

const Button = Schema.Struct({
  type: Schema.Literal(2),
  style: Schema.Int.pipe(Schema.between(1, 6)),
  label: Schema.optional(Schema.NullOr(Schema.String.pipe(Schema.maxLength(80)))),
  custom_id: Schema.optional(Schema.NullOr(CustomId)),
  url: Schema.optional(Schema.NullOr(Schema.String.pipe(Schema.maxLength(512)))),
  disabled: Schema.optional(Schema.NullOr(Schema.Boolean)),
  emoji: Schema.optional(Schema.NullOr(Record))
})

const SelectOption = Schema.Struct({
  label: Schema.String.pipe(Schema.minLength(1), Schema.maxLength(100)),
  value: Schema.String.pipe(Schema.minLength(1), Schema.maxLength(100)),
  description: Schema.optional(Schema.NullOr(Schema.String.pipe(Schema.maxLength(100)))),
  default: Schema.optional(Schema.NullOr(Schema.Boolean)),
  emoji: Schema.optional(Schema.NullOr(Record))
})

const Select = Schema.Struct({
  type: Schema.Int.pipe(Schema.filter((type) => type === 3 || (type >= 5 && type <= 8))),
  custom_id: CustomId,
  options: Schema.optional(Schema.Array(SelectOption).pipe(Schema.minItems(1), Schema.maxItems(25))),
  placeholder: Schema.optional(Schema.NullOr(Schema.String.pipe(Schema.maxLength(150)))),
  min_values: Schema.optional(Schema.NullOr(Schema.Int)),
  max_values: Schema.optional(Schema.NullOr(Schema.Int)),
  disabled: Schema.optional(Schema.NullOr(Schema.Boolean))
})

const ActionRow = Schema.Struct({
  type: Schema.Literal(1),
  components: Schema.Array(Schema.Union(Button, Select)).pipe(Schema.minItems(1), Schema.maxItems(5))
})

const customIds = (rows: ReadonlyArray<typeof ActionRow.Type>) =>
  rows.flatMap(({ components }) => components.flatMap(({ custom_id: id }) => (typeof id === "string" ? [id] : [])))

const Components = Schema.Array(ActionRow).pipe(
  Schema.maxItems(5),
  Schema.filter((rows) => new Set(customIds(rows)).size === customIds(rows).length || "custom_id is used twice"),
  Schema.filter(
    (rows) =>
      rows.every(({ components }) => components.length === 1 || components.every(({ type }) => type === 2)) ||
      "a select fills its row"
  )
)

const AllowedMentions = Schema.Struct({
  parse: Schema.optional(Schema.Array(Schema.Literal("roles", "users", "everyone"))),
  users: Schema.optional(Schema.Array(Snowflake).pipe(Schema.maxItems(100))),
  roles: Schema.optional(Schema.Array(Snowflake).pipe(Schema.maxItems(100))),
  replied_user: Schema.optional(Schema.NullOr(Schema.Boolean))
})

const Embed = Schema.Struct(
  { description: Schema.optional(Schema.NullOr(Schema.String.pipe(Schema.maxLength(4096)))) },
  Schema.Record({ key: Schema.String, value: Schema.Unknown })
)

/** The longest content of a message, in UTF-16 units: the strictest of the countings in use. */
export const longestContent = 2_000

export const MessageBody = Schema.Struct({
  content: Schema.optional(Schema.NullOr(Schema.String.pipe(Schema.maxLength(longestContent)))),
  nonce: Schema.optional(Schema.NullOr(Schema.Union(Schema.String.pipe(Schema.maxLength(25)), Schema.Int))),
  enforce_nonce: Schema.optional(Schema.NullOr(Schema.Boolean)),
  tts: Schema.optional(Schema.Boolean),
  embeds: Schema.optional(Schema.NullOr(Schema.Array(Embed).pipe(Schema.maxItems(10)))),
  components: Schema.optional(Schema.NullOr(Components)),
  allowed_mentions: Schema.optional(Schema.NullOr(AllowedMentions)),
  message_reference: Schema.optional(
    Schema.NullOr(
      Schema.Struct({ message_id: Snowflake, fail_if_not_exists: Schema.optional(Schema.NullOr(Schema.Boolean)) })
    )
  ),
  attachments: Schema.optional(
    Schema.NullOr(
      Schema.Array(
        Schema.Struct({
          id: Schema.Union(Schema.String, Schema.Int),
          filename: Schema.optional(Schema.NullOr(Schema.String)),
          description: Schema.optional(Schema.NullOr(Schema.String.pipe(Schema.maxLength(1024))))
        })
      ).pipe(Schema.maxItems(10))
    )
  ),
  flags: Schema.optional(Schema.NullOr(Schema.Int))
})
export type MessageBody = typeof MessageBody.Type

const AutoArchive = Schema.Literal(60, 1440, 4320, 10080)
const Name = Schema.String.pipe(Schema.minLength(1), Schema.maxLength(100))

export const ThreadBody = Schema.Struct({
  name: Name,
  auto_archive_duration: Schema.optional(Schema.NullOr(AutoArchive)),
  type: Schema.optional(Schema.NullOr(Schema.Int))
})

export const ChannelPatch = Schema.Struct({
  name: Schema.optional(Name),
  archived: Schema.optional(Schema.Boolean),
  locked: Schema.optional(Schema.Boolean),
  auto_archive_duration: Schema.optional(AutoArchive)
})

export const CallbackBody = Schema.Struct({
  type: Schema.Literal(4, 5, 6, 7, 8, 9),
  data: Schema.optional(Schema.NullOr(Schema.Unknown))
})

/** Application commands: names and descriptions as Discord limits them. */
export const CommandsBody = Schema.Array(
  Schema.Struct(
    {
      name: Schema.String.pipe(Schema.pattern(/^[-_'\p{L}\p{N}]{1,32}$/u)),
      description: Schema.optional(Schema.String.pipe(Schema.maxLength(100))),
      options: Schema.optional(Schema.NullOr(Schema.Array(Record).pipe(Schema.maxItems(25))))
    },
    Schema.Record({ key: Schema.String, value: Schema.Unknown })
  )
).pipe(Schema.maxItems(100))

/** The body, or the refusal 50035. */
export const decode =
  <A, I>(schema: Schema.Schema<A, I>) =>
  (body: unknown): Effect.Effect<A, Refusal.Refusal> =>
    Effect.mapError(Schema.decodeUnknown(schema)(body ?? {}), (error) => Refusal.invalidForm("body", error.message))
