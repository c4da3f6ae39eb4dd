/**
 * Defines the messages of a shown request: those of `@effect/ai` in encoded form, as schemas whose encoded form is
 * plain JSON. Bytes are encoded as `{ bytes }` in base64, URLs as `{ url }`; a text is base64 already.
 */
import { Schema } from "effect"
import { JsonValue } from "@daybook/log/domain/Json"
import { JsonRecord } from "@daybook/log/domain/Values"

const bytes = Schema.transform(Schema.Struct({ bytes: Schema.Uint8ArrayFromBase64 }), Schema.Uint8ArrayFromSelf, {
  strict: true,
  decode: (encoded) => encoded.bytes,
  encode: (value) => ({ bytes: value })
})

const url = Schema.transform(Schema.Struct({ url: Schema.URL }), Schema.URLFromSelf, {
  strict: true,
  decode: (encoded) => encoded.url,
  encode: (value) => ({ url: value })
})

/** Options by provider. JSON drops an undefined value, which has no meaning. */
const options = Schema.optional(
  Schema.Record({
    key: Schema.String,
    value: Schema.UndefinedOr(JsonRecord).annotations({
      arbitrary: () => (fc) => fc.dictionary(fc.string({ minLength: 1, maxLength: 5 }), fc.integer())
    })
  })
)

const text = Schema.Struct({ type: Schema.Literal("text"), text: Schema.String, options })
const reasoning = Schema.Struct({ type: Schema.Literal("reasoning"), text: Schema.String, options })
const file = Schema.Struct({
  type: Schema.Literal("file"),
  mediaType: Schema.String,
  fileName: Schema.optional(Schema.String),
  data: Schema.Union(Schema.String, bytes, url),
  options
})
const call = Schema.Struct({
  type: Schema.Literal("tool-call"),
  id: Schema.String,
  name: Schema.String,
  params: JsonValue,
  providerExecuted: Schema.optional(Schema.Boolean),
  options
})
const result = Schema.Struct({
  type: Schema.Literal("tool-result"),
  id: Schema.String,
  name: Schema.String,
  isFailure: Schema.Boolean,
  result: JsonValue,
  providerExecuted: Schema.Boolean,
  options
})

const message = <const Role extends string, Content extends Schema.Schema.All>(role: Role, content: Content) =>
  Schema.Struct({ role: Schema.Literal(role), content, options })

/** A message of a request. */
export const ShownMessage = Schema.Union(
  message("system", Schema.String),
  message("user", Schema.Union(Schema.String, Schema.Array(Schema.Union(text, file)))),
  message("assistant", Schema.Union(Schema.String, Schema.Array(Schema.Union(text, file, reasoning, call, result)))),
  message("tool", Schema.Array(result))
)
export type ShownMessage = typeof ShownMessage.Type
