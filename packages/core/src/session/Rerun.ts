/**
 * Sends a recorded request again: to its model or to others, with its system text and tools or with others. Nothing happens
 * but requests to models: a call is answered with the result that the record has for the same call, and ends the run where
 * the record has none. Stores nothing. Spec: RQ-810..RQ-813.
 */
import * as Prompt from "@effect/ai/Prompt"
import { Clock, Effect, Schema, Stream } from "effect"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import { type AssistantMessage, edited, type Message } from "@daybook/log/domain/Message"
import { type JsonRecord, type ModelRef, sameModel, type Tokens, Tools } from "@daybook/log/domain/Values"
import type { EventLog, ReadError } from "@daybook/log/log/EventLog"
import type { SessionStore } from "@daybook/log/store/SessionStore"
import type { StoreError } from "@daybook/log/store/StoreError"
import { matches } from "../domain/Rule.ts"
import { ModelResolver, type ResolvedModel } from "../model/ModelResolver.ts"
import * as ProviderStream from "../model/ProviderStream.ts"
import { toCost, toTokens } from "../model/Usage.ts"
import { conversation } from "../request/Lowering.ts"
import { historyAt, messagesOf, type NothingShown, shownAt, type ShownRequest } from "../request/Recorded.ts"
import { add } from "../request/TextRequest.ts"
import { shownFor } from "../request/Request.ts"
import { jsonSchemaTool } from "../tool/ToolDefinition.ts"

/** Which request to send again, and to what. */
export interface RerunOptions {
  readonly sessionID: SessionID
  /** The request of the turn with the event at this sequence number; default: the last request. */
  readonly at?: number
  /** Default: the model that answered. */
  readonly models?: ReadonlyArray<ModelRef>
  /** How often each model is asked. Default: 1. */
  readonly times?: number
  /** Replaces the system texts. */
  readonly system?: string
  /** Leaves out recorded tools by name pattern; the last match decides. */
  readonly tools?: typeof Tools.Type
}

/** One answer: of the record, or of a model that was asked again. */
export interface RerunAnswer {
  readonly model: ModelRef
  /** 0 is the record; reruns of a model count from 1. */
  readonly run: number
  readonly text: string
  /** The calls of all turns, in order. */
  readonly calls: ReadonlyArray<{ readonly name: string; readonly input: JsonRecord }>
  /** The first calls without a recorded result, which ended the run. */
  readonly unanswered?: ReadonlyArray<string>
  readonly turns: number
  readonly tokens: Tokens
  /** US dollars; 0 if no price is known. */
  readonly cost: number
  readonly durationMs: number
  /** Why there is no answer. */
  readonly error?: string
}

/** Turns of one run, at most. */
const mostTurns = 25

const noTokens: Tokens = { input: 0, output: 0, reasoning: 0, cache: { read: 0, write: 0 } }

interface Turn {
  readonly text: string
  readonly calls: ReadonlyArray<{ readonly id: string; readonly name: string; readonly input: JsonRecord }>
  readonly tokens: Tokens
}

const isInput = Schema.is(Schema.Record({ key: Schema.String, value: Schema.Unknown }))

/** Sends one request and collects the answer. */
const turnOf = Effect.fnUntraced(function* (model: ResolvedModel, request: ProviderStream.ModelRequest) {
  const turn = { text: "", calls: [] as Array<Turn["calls"][number]>, tokens: noTokens }
  const take = (parts: ReadonlyArray<ProviderStream.StreamPart>) =>
    Effect.gen(function* () {
      for (const part of parts) {
        if (part.type === "text-delta") turn.text += part.delta
        if (part.type === "error") return yield* Effect.fail(ProviderStream.reported(part.error))
        if (part.type === "finish") turn.tokens = toTokens(part.usage, part.metadata)
        if (part.type === "tool-call" && !part.providerExecuted) {
          turn.calls.push({ id: part.id, name: part.name, input: isInput(part.params) ? part.params : {} })
        }
      }
    })
  yield* ProviderStream.forEachChunk(model, request, take).pipe(ProviderStream.within(model.policy))
  return turn satisfies Turn
})

const callKey = (name: string, input: unknown): string => `${name} ${JSON.stringify(input)}`

/** The results that the record has, by call. */
const resultsOf = (messages: ReadonlyArray<Message>, model: ResolvedModel): ReadonlyMap<string, unknown> => {
  const shown = conversation(messages, shownFor(model.info, undefined)).flatMap((lowered) => lowered.shown)
  const parts = shown.flatMap(({ content }) => (typeof content === "string" ? [] : content))
  const names = new Map(
    parts.flatMap((part) => (part.type === "tool-call" ? [[part.id, callKey(part.name, part.params)] as const] : []))
  )
  const results = parts.flatMap((part) => {
    const key = part.type === "tool-result" ? names.get(part.id) : undefined
    return part.type === "tool-result" && key !== undefined ? [[key, part.result] as const] : []
  })
  return new Map(results)
}

/** The turn and the results of its calls as messages of the next request. */
const continued = ({ calls, text }: Turn, results: ReadonlyArray<unknown>): ReadonlyArray<Prompt.Message> => [
  Prompt.makeMessage("assistant", {
    content: [
      ...(text.trim() === "" ? [] : [Prompt.makePart("text", { text })]),
      ...calls.map(({ id, input, name }) =>
        Prompt.makePart("tool-call", { id, name, params: input, providerExecuted: false })
      )
    ]
  }),
  Prompt.makeMessage("tool", {
    content: calls.map(({ id, name }, at) =>
      Prompt.makePart("tool-result", { id, name, result: results[at], isFailure: false, providerExecuted: false })
    )
  })
]

interface Again {
  readonly request: ShownRequest
  readonly history: ReadonlyArray<Message>
  readonly messages: ReadonlyArray<Message>
  readonly options: RerunOptions
}

const offered = ({ options: { tools = {} }, request }: Again) =>
  request.frame.tools
    .filter(({ name }) => Object.entries(tools).findLast(([pattern]) => matches(pattern, name))?.[1] !== false)
    .map((tool) => jsonSchemaTool(tool))

const decodeMessage = Schema.decodeSync(Prompt.Message)

/** Runs the request with one model, until it answers, or calls what the record has no result for. */
const runOnce = Effect.fnUntraced(function* (again: Again, model: ResolvedModel, run: number) {
  const { history, messages, options, request } = again
  const system = options.system === undefined ? request.frame.system : [options.system]
  const results = resultsOf(messages, model)
  const shown = conversation(history, shownFor(model.info, undefined)).flatMap((lowered) => lowered.shown)
  let prompt = [
    ...system.map((content) => Prompt.makeMessage("system", { content })),
    ...shown.map((message) => decodeMessage(message))
  ]
  const startedAt = yield* Clock.currentTimeMillis
  const answer = { text: "", calls: [] as Array<RerunAnswer["calls"][number]>, turns: 0, tokens: noTokens, cost: 0 }
  let unanswered: ReadonlyArray<string> = []
  let error: string | undefined
  for (let goesOn = true; goesOn && answer.turns < mostTurns;) {
    const turn = yield* Effect.either(turnOf(model, { prompt: Prompt.fromMessages(prompt), tools: offered(again) }))
    answer.turns += 1
    if (turn._tag === "Left") {
      error = turn.left.failure.message
      break
    }
    const { calls, text, tokens } = turn.right
    answer.text = text
    answer.calls.push(...calls.map(({ input, name }) => ({ name, input })))
    answer.tokens = add(answer.tokens, tokens)
    answer.cost += toCost(tokens, model.info.price)
    const keys = calls.map(({ input, name }) => callKey(name, input))
    unanswered = keys.filter((key) => !results.has(key))
    goesOn = calls.length > 0 && unanswered.length === 0
    if (goesOn)
      prompt = [
        ...prompt,
        ...continued(
          turn.right,
          keys.map((key) => results.get(key))
        )
      ]
  }
  return {
    model: model.info.ref,
    run,
    ...answer,
    ...(unanswered.length === 0 ? {} : { unanswered }),
    durationMs: (yield* Clock.currentTimeMillis) - startedAt,
    ...(error === undefined ? {} : { error })
  } satisfies RerunAnswer
})

const recordedAnswer = ({ messages, request }: Again): RerunAnswer => {
  const answer = messages.find(
    (message): message is AssistantMessage => message.type === "assistant" && message.id === request.step?.messageID
  )
  const content = answer?.content ?? []
  return {
    model: request.model,
    run: 0,
    text: content.flatMap((part) => (part.type === "text" ? [part.text ?? ""] : [])).join("\n\n"),
    calls: content.flatMap((part) => (part.type === "tool" ? [{ name: part.name, input: part.input ?? {} }] : [])),
    turns: 1,
    tokens: answer?.tokens ?? noTokens,
    cost: answer?.cost ?? 0,
    durationMs: answer?.completedAt === undefined ? 0 : answer.completedAt - answer.createdAt,
    ...(answer?.error === undefined ? {} : { error: answer.error.message })
  }
}

/**
 * Sends a recorded request again and returns the answers as they come: the record's first, then each model's, in order.
 * Fails only if the request is not in the record, or a model is not known; what a provider refuses is an answer with
 * `error`.
 *
 * @example
 * ```ts
 * import { Sessions } from "@daybook/core"
 * import type { SessionID } from "@daybook/log/domain/Identifiers"
 * import { Effect, Stream } from "effect"
 *
 * export const compare = (sessionID: SessionID) =>
 *   Sessions.rerun({ sessionID, models: [{ providerID: "mistral", id: "mistral-large-latest" }], times: 3 }).pipe(
 *     Stream.map(({ cost, model, text }) => `${model.id} $${cost}: ${text}`),
 *     Stream.runCollect
 *   )
 * ```
 */
export const rerun = (
  options: RerunOptions
): Stream.Stream<
  RerunAnswer,
  NothingShown | ReadError | StoreError | Effect.Effect.Error<ReturnType<(typeof ModelResolver.Service)["resolve"]>>,
  EventLog | ModelResolver | SessionStore
> =>
  Stream.unwrap(
    Effect.gen(function* () {
      const { at = Number.MAX_SAFE_INTEGER, models, sessionID, times = 1 } = options
      const resolver = yield* ModelResolver
      const request = yield* shownAt(sessionID, at)
      const before = request.step?.seq ?? at
      const history = yield* historyAt(sessionID, { baselineSeq: request.frame.baselineSeq, before })
      const again: Again = { request, history, messages: edited(yield* messagesOf(sessionID)), options }
      const wanted = models ?? [request.model]
      const found = yield* Effect.forEach(
        wanted.filter((ref, index) => wanted.findIndex((other) => sameModel(ref, other)) === index),
        (ref) => resolver.resolve(ref)
      )
      const runs = found.flatMap((model) => Array.from({ length: times }, (_, index) => [model, index + 1] as const))
      return Stream.concat(
        Stream.make(recordedAnswer(again)),
        Stream.mapEffect(Stream.fromIterable(runs), ([model, run]) => runOnce(again, model, run))
      )
    })
  )
