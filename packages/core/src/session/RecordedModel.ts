/**
 * A language model that answers as a recorded session's did, for tests of an application without a network: `record` reads
 * requests and answers from the log, and the model gives an answer to the request that it was given to. A request that was
 * not recorded fails with the first difference. Spec: RQ-800..RQ-802.
 */
import * as AiError from "@effect/ai/AiError"
import * as LanguageModel from "@effect/ai/LanguageModel"
import type * as Prompt from "@effect/ai/Prompt"
import * as Response from "@effect/ai/Response"
import { createHash } from "node:crypto"
import { Effect, Layer, Schema, Stream } from "effect"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import { type AssistantMessage, type Message, Part } from "@daybook/log/domain/Message"
import { ModelRef, Tokens } from "@daybook/log/domain/Values"
import type { EventLog, ReadError } from "@daybook/log/log/EventLog"
import type { SessionStore } from "@daybook/log/store/SessionStore"
import type { StoreError } from "@daybook/log/store/StoreError"
import { optional, present } from "@daybook/log/support/Optional"
import * as Redaction from "@daybook/log/support/Redaction"
import { layerLanguageModel, type ModelResolver } from "../model/ModelResolver.ts"
import { messagesOf, type NothingShown, shownAt } from "../request/Recorded.ts"

/** One request and its answer. */
const RecordedTurn = Schema.Struct({
  /** The conversation without system texts, a line for each part: `user: Hi`, `call bash: {...}`, `result bash: {...}`. */
  asked: Schema.Array(Schema.String),
  /** The parts of the answer, as the log has them. */
  answered: Schema.Array(Part),
  finish: optional(Schema.String),
  tokens: optional(Tokens)
})
type RecordedTurn = typeof RecordedTurn.Type

/** A recorded session: what `daybook export --format fixture` writes. */
export const Fixture = Schema.Struct({
  version: Schema.Literal(1),
  model: ModelRef,
  turns: Schema.Array(RecordedTurn)
})
export type Fixture = typeof Fixture.Type

// ---- requests as lines

/** A message of a request, as the log shows it or as the library gives it to a model. */
interface SomeMessage {
  readonly role: string
  readonly content: unknown
}

const redactor = Redaction.make()

const digest = (data: unknown): string => {
  const bytes = data instanceof Uint8Array ? data : data instanceof URL ? data.href : String(data)
  return createHash("sha256").update(bytes).digest("hex").slice(0, 12)
}

const LinePart = Schema.Union(
  Schema.Struct({ type: Schema.Literal("text"), text: Schema.String }),
  Schema.Struct({ type: Schema.Literal("file"), mediaType: Schema.String, data: Schema.Unknown }),
  Schema.Struct({ type: Schema.Literal("tool-call"), name: Schema.String, params: Schema.Unknown }),
  Schema.Struct({ type: Schema.Literal("tool-result"), name: Schema.String, result: Schema.Unknown })
)
const linePart = Schema.decodeUnknownOption(LinePart)

/** The lines of a part; none for reasoning, which a model is not asked to repeat. */
const linesOfPart = (role: string, part: unknown): ReadonlyArray<string> => {
  const known = linePart(part)
  if (known._tag === "None") return []
  switch (known.value.type) {
    case "text":
      return [`${role}: ${known.value.text}`]
    case "file":
      return [`${role}: [${known.value.mediaType} ${digest(known.value.data)}]`]
    case "tool-call":
      return [`call ${known.value.name}: ${JSON.stringify(known.value.params)}`]
    case "tool-result":
      return [`result ${known.value.name}: ${JSON.stringify(known.value.result)}`]
  }
}

/** A conversation as lines, without system texts, which name folders and dates, and without secrets. */
const linesOf = (messages: ReadonlyArray<SomeMessage>): ReadonlyArray<string> =>
  messages
    .filter(({ role }) => role !== "system")
    .flatMap(({ content, role }) =>
      Array.isArray(content)
        ? content.flatMap((part: unknown) => linesOfPart(role, part))
        : linesOfPart(role, { type: "text", text: content })
    )
    .map((line) => redactor.text(line))

// ---- recording

const isAnswer = (message: Message): message is AssistantMessage =>
  message.type === "assistant" && message.error === undefined && message.finish !== undefined

/** The fixture of a session: the answers of its history, and what was asked. Secrets are replaced by a mark. */
export const record = Effect.fn("RecordedModel.record")(function* (
  sessionID: SessionID
): Effect.fn.Return<Fixture, NothingShown | ReadError | StoreError, EventLog | SessionStore> {
  const turns: Array<RecordedTurn> = []
  let model: ModelRef | undefined
  for (const message of (yield* messagesOf(sessionID)).filter(isAnswer)) {
    const { messages } = yield* shownAt(sessionID, message.seq)
    model = message.model
    turns.push({
      asked: linesOf(messages),
      answered: message.content.map(withoutSecrets),
      ...present({ finish: message.finish, tokens: message.tokens })
    })
  }
  return { version: 1, model: model ?? { providerID: "recorded", id: "none" }, turns }
})

const decodePart = Schema.decodeUnknownSync(Part)
const encodePart = Schema.encodeSync(Part)
const jsonOf = (part: Part): Redaction.Json => JSON.parse(JSON.stringify(encodePart(part)))

/** The part with marks in place of secrets in its texts and inputs. */
const withoutSecrets = (part: Part): Part => decodePart(redactor.value(jsonOf(part)))

// ---- answering

const metadataOf = Schema.decodeUnknownSync(Response.ProviderMetadata)

/** The parts of a recorded answer, as a provider streams them. */
const streamed = (part: Part, at: number): ReadonlyArray<Response.StreamPartEncoded> => {
  const id = `${part.type}-${at}`
  if (part.type !== "tool") {
    const { providerMetadata = {}, text = "", type } = part
    return [
      { type: `${type}-start`, id, metadata: metadataOf(providerMetadata) },
      { type: `${type}-delta`, id, delta: text },
      { type: `${type}-end`, id }
    ]
  }
  const { input, name, provider, raw, result } = part
  const providerExecuted = provider?.executed ?? false
  const call: ReadonlyArray<Response.StreamPartEncoded> = [
    { type: "tool-params-start", id: part.id, name, providerExecuted },
    { type: "tool-params-delta", id: part.id, delta: raw ?? JSON.stringify(input ?? {}) },
    { type: "tool-params-end", id: part.id },
    {
      type: "tool-call",
      id: part.id,
      name,
      params: input ?? {},
      providerExecuted,
      metadata: metadataOf(provider?.metadata ?? {})
    }
  ]
  if (!providerExecuted || result === undefined) return call
  return [
    ...call,
    { type: "tool-result", id: part.id, name, result, isFailure: part.state === "error", providerExecuted: true }
  ]
}

const finishReason = Schema.decodeUnknownOption(Response.FinishReason)

const partsOf = ({ answered, finish, tokens }: RecordedTurn): ReadonlyArray<Response.StreamPartEncoded> => {
  const reason = finishReason(finish)
  const { input: inputTokens = 0, output: outputTokens = 0 } = tokens ?? {}
  return [
    ...answered.flatMap(streamed),
    {
      type: "finish",
      reason: reason._tag === "Some" ? reason.value : "stop",
      usage: { inputTokens, outputTokens, totalTokens: inputTokens + outputTokens }
    }
  ]
}

const shown = (line: string | undefined): string =>
  line === undefined ? "nothing" : JSON.stringify(line.length <= 400 ? line : `${line.slice(0, 400)}...`)

/** Where a request differs from the recorded one. */
const difference = (asked: ReadonlyArray<string>, recorded: ReadonlyArray<string>): string => {
  const at = asked.findIndex((line, index) => line !== recorded[index])
  const index = at < 0 ? asked.length : at
  return `line ${index + 1} is ${shown(asked[index])}; recorded was ${shown(recorded[index])}`
}

const refused = (description: string) =>
  new AiError.UnknownError({ module: "RecordedModel", method: "streamText", description })

/** The model of a fixture. Each recorded answer is given once, in any order of the requests. */
const make = ({ turns }: Fixture) =>
  Effect.suspend(() => {
    const left = new Set(turns)
    const answer = (
      prompt: Prompt.Prompt
    ): Effect.Effect<ReadonlyArray<Response.StreamPartEncoded>, AiError.AiError> => {
      const asked = linesOf(prompt.content)
      const text = asked.join("\n")
      const turn = [...left].find((each) => each.asked.join("\n") === text)
      if (turn !== undefined) {
        left.delete(turn)
        return Effect.succeed(partsOf(turn))
      }
      const [next] = left
      return refused(
        next === undefined
          ? `all ${turns.length} recorded answers were given, and the application asks again: ${shown(asked.at(-1))}`
          : `the application asks something else than was recorded: ${difference(asked, next.asked)}`
      )
    }
    return LanguageModel.make({
      generateText: () => refused("a recorded answer is streamed: the runtime asks so"),
      streamText: ({ prompt }) => Stream.unwrap(Effect.map(answer(prompt), Stream.fromIterable))
    })
  })

/**
 * Answers from a fixture. The runtime resolves every model reference of the fixture's model to it.
 *
 * @example
 * ```ts
 * import { RecordedModel } from "@daybook/core"
 * import { Daybook } from "@daybook/embedded"
 * import { Layer, Schema } from "effect"
 * import { readFileSync } from "node:fs"
 *
 * const read = Schema.decodeUnknownSync(Schema.parseJson(RecordedModel.Fixture))
 *
 * export const runtime = Daybook.layer({ filename: ":memory:" }).pipe(
 *   Layer.provide(RecordedModel.layer(read(readFileSync("triage.fixture.json", "utf8"))))
 * )
 * ```
 */
export const layer = (fixture: Fixture): Layer.Layer<ModelResolver> =>
  layerLanguageModel({ ref: fixture.model, name: "a recorded session" }).pipe(
    Layer.provide(Layer.effect(LanguageModel.LanguageModel, make(fixture)))
  )
