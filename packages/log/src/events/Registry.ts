/**
 * Decodes stored rows to current events and encodes drafts. A stored name is `<type>.<version>`. Old versions keep
 * their schema and an upcast to the current one forever. Unknown names are reported as unknown, so that readers can
 * skip them. Spec: EV-D2..EV-D4.
 */
import { Either, Option, ParseResult, Schema } from "effect"
import type { ParseError } from "effect/ParseResult"
import { MessageID } from "../domain/Identifiers.ts"
import { once } from "../support/Once.ts"
import { compile, type Conforms } from "../support/Conforms.ts"
import { CompactionEnded, type Draft, durableDefinitions, type DurableType } from "./SessionEvents.ts"

type Data = Draft["data"]
/** How payloads with one stored name are read. */
export interface Codec {
  readonly type: DurableType
  /** The version of the decoded payload: always the current one. */
  readonly version: number
  /** Whether the payload is already its decoded form. */
  readonly conforms: Conforms
  /** Decodes a payload that does not conform, or says why it is invalid. */
  readonly decode: (data: unknown) => Either.Either<Data, ParseResult.ParseIssue>
}

type Definition = (typeof durableDefinitions)[number]

/** Compiled on first use, because a process meets few of the types. */
const conformsTo = (definition: Definition): Conforms => {
  let compiled: Conforms | undefined
  return (data) => (compiled ??= compile(definition.data.ast))(data)
}

/** What one definition gives: its decoder by stored name and its encoder by type. */
const ofDefinition = (definition: Definition) => {
  const { type, version } = definition
  const stored = `${type}.${version}`
  const conforms = conformsTo(definition)
  const codec: Codec = {
    type,
    version,
    conforms,
    decode: (data) => ParseResult.decodeUnknownEither(definition.data as Schema.Schema<Data, unknown>)(data)
  }
  // Every payload schema equals its encoded form.
  const encode = (data: Data) => ParseResult.encodeEither(definition.data as Schema.Schema<Data, Data>)(data)
  return { stored, codec, encoder: { stored, version, conforms, encode } }
}

const CompactionEnded1 = once(() =>
  Schema.Struct({
    messageID: MessageID,
    text: Schema.String,
    include: Schema.optionalWith(Schema.String, { exact: true })
  })
)

/** Version 1 had no reason and kept the recent context, if any, in `include`. */
const compactionEnded1: readonly [string, Codec] = [
  "session.next.compaction.ended.1",
  {
    type: CompactionEnded.type,
    version: CompactionEnded.version,
    conforms: () => false,
    decode: (data) =>
      Either.map(ParseResult.decodeUnknownEither(CompactionEnded1())(data), (old) => ({
        messageID: old.messageID,
        reason: "auto" as const,
        text: old.text,
        recent: old.include ?? ""
      }))
  }
]

const definitions = durableDefinitions.map(ofDefinition)
const codecs = new Map<string, Codec>([
  ...definitions.map(({ codec, stored }) => [stored, codec] as const),
  compactionEnded1
])
const encoders = new Map<string, (typeof definitions)[number]["encoder"]>(
  definitions.map(({ codec, encoder }) => [codec.type, encoder])
)

/** How this build reads payloads with the stored name; undefined if it cannot. */
export const codecOf = (stored: string): Codec | undefined => codecs.get(stored)

/** Every stored name that this build can read; for documentation and tests. */
export const storedNames = (): ReadonlyArray<string> => [...codecs.keys()]

/** Splits a stored name into type and version: `a.b.2` is `a.b` at version 2. */
export const splitStored = (stored: string): { readonly type: string; readonly version: number } => {
  const dot = stored.lastIndexOf(".")
  return { type: stored.slice(0, dot), version: Number(stored.slice(dot + 1)) }
}

export interface DecodedEvent {
  readonly type: DurableType
  readonly version: number
  readonly data: Data
}

/** Decodes a payload by its stored name: none for an unknown name, a parse error for invalid data of a known one. */
export const decode = (stored: string, data: unknown): Option.Option<Either.Either<DecodedEvent, ParseError>> => {
  const codec = codecOf(stored)
  if (codec === undefined) return Option.none()
  const { type, version } = codec
  // A payload that conforms to the schema has its type.
  const decoded = codec.conforms(data) ? Either.right(data as Data) : codec.decode(data)
  return Option.some(
    Either.mapBoth(decoded, { onLeft: ParseResult.parseError, onRight: (data) => ({ type, version, data }) })
  )
}

export interface EncodedEvent {
  readonly stored: string
  readonly version: number
  /** The stored JSON. */
  readonly text: string
  /** `text`, parsed again. The writer continues with it, so that writer and readers see the same value (EV-D4). */
  readonly data: Data
}

const invalid = (actual: unknown, message: string) =>
  ParseResult.parseError(new ParseResult.Type(Schema.Unknown.ast, actual, message))

/** Encodes a draft at its type's current version. The error names the field at fault. */
export const encode = (draft: Draft): Either.Either<EncodedEvent, ParseError> => {
  const encoder = encoders.get(draft.type)
  if (encoder === undefined) return Either.left(invalid(draft.type, "unknown event type"))
  const encoded = encoder.conforms(draft.data) ? Either.right(draft.data) : encoder.encode(draft.data)
  if (Either.isLeft(encoded)) return Either.left(ParseResult.parseError(encoded.left))
  return Either.try({
    try: () => {
      const text = JSON.stringify(encoded.right)
      // Parsed from the text, so that `data` is exactly what readers get.
      return { stored: encoder.stored, version: encoder.version, text, data: JSON.parse(text) as Data }
    },
    // A cycle or a BigInt, in a field with unknown content.
    catch: () => invalid(draft.type, "the payload holds a value that JSON cannot")
  })
}
