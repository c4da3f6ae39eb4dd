/**
 * Converts a provider's stream parts to events: the state machine of one turn. Pure: for each part it returns the
 * events to append, the events to publish live, and a complete call. The turn owns order, storage and tools.
 *
 *   text / reasoning:  start -> delta* -> end          (durable: started, ended with the whole value)
 *   tool:              params start -> delta* -> end -> call -> result
 *
 * A provider that breaks this order fails its turn (TU-15). Spec: EX-R1, EX-R2, EX-R11, EX-R14, EX-R15 in
 * specs/execution.md.
 */
import * as Response from "@effect/ai/Response"
import { Either } from "effect"
import { type AnswerProblem, problemOf, refusal } from "@daybook/log/domain/AnswerProblem"
import type { MessageID, SessionID } from "@daybook/log/domain/Identifiers"
import { fitting } from "@daybook/log/domain/LongText"
import type { JsonRecord, ProviderMetadata, StoredError } from "@daybook/log/domain/Values"
import { draft, type Draft, type LiveEvent } from "@daybook/log/events/SessionEvents"
import { isBlank } from "@daybook/log/support/Text"
import type { ModelInfo } from "../../model/ModelResolver.ts"
import type { StreamPart } from "../../model/ProviderStream.ts"
import { nothingReceived, type Received, toTokens, usedOf } from "../../model/Usage.ts"
import { boundedInput, objectIn } from "../../tool/LenientInput.ts"

// What the recorder of a turn knows of its answer so far, and one step of it.

type Fragment = {
  readonly id: string
  readonly kind: "text" | "reasoning"
  readonly text: string
  readonly metadata: ProviderMetadata
}

/** A call, from its first input fragment to its result. */
export type CallState = {
  readonly name: string
  readonly phase: "input" | "input-ended" | "called" | "settled"
  readonly raw: string
  /** The input is a complete JSON object; anything else may have been cut off. */
  readonly whole: boolean
  readonly executed: boolean
  readonly metadata: ProviderMetadata
}

export interface State {
  readonly sessionID: SessionID
  readonly messageID: MessageID
  readonly info: ModelInfo
  /** Estimated tokens of the request. */
  readonly inputEstimate: number
  readonly received: Received
  readonly parts: number
  /** Open fragments by kind and provider id. */
  readonly open: ReadonlyMap<string, Fragment>
  readonly calls: ReadonlyMap<string, CallState>
  /** Whether a text that a person can see arrived. */
  readonly spoken: boolean
  /** How the answer ended, once it has: the reason as the log stores it, and the provider's count of its tokens. */
  readonly end?: { readonly finish: string; readonly tokens: number }
  /** Set by the provider's finish or error part. Parts after an error are ignored (TO-7). */
  readonly ended: "no" | "finished" | "failed"
  /** Whether part of the answer is on disk. A retry is then no longer safe (TU-12, CM-10). */
  readonly output: boolean
}

/** A complete local call; it runs once its `tool.called` event is on disk (TU-8). */
export interface LocalCall {
  readonly callID: string
  readonly name: string
  readonly input: unknown
}

export interface Step {
  readonly state: State
  readonly drafts: ReadonlyArray<Draft>
  readonly live: ReadonlyArray<LiveEvent>
  readonly call?: LocalCall
  /** The call waits for the end of the answer, which tells whether it was cut off (EX-R14). */
  readonly held?: boolean
  /** The provider reported an error inside the stream. */
  readonly providerError?: unknown
}

/** How the provider broke the order of parts. */
export class ProtocolFault {
  readonly details: string
  constructor(details: string) {
    this.details = details
  }
}

export const start = (sessionID: SessionID, messageID: MessageID, info: ModelInfo, inputEstimate = 0): State => ({
  sessionID,
  messageID,
  info,
  inputEstimate,
  received: nothingReceived,
  parts: 0,
  open: new Map(),
  calls: new Map(),
  spoken: false,
  ended: "no",
  output: false
})

type Result = Either.Either<Step, ProtocolFault>
const fault = (details: string): Result => Either.left(new ProtocolFault(details))
const step = (state: State, drafts: ReadonlyArray<Draft>, rest?: Omit<Step, "state" | "drafts" | "live">): Result =>
  Either.right({ state: drafts.length === 0 ? state : { ...state, output: true }, drafts, live: [], ...rest })
const liveStep = (state: State, event: LiveEvent): Result => Either.right({ state, drafts: [], live: [event] })

const receive = ({ all, reasoning }: Received, text: string, kind?: Fragment["kind"]): Received => ({
  all: all + text.length,
  reasoning: kind === "reasoning" ? reasoning + text.length : reasoning
})

const withEntry = <V>(map: ReadonlyMap<string, V>, key: string, value: V): ReadonlyMap<string, V> =>
  new Map(map).set(key, value)

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

// Records tool calls: their input, the call, and the result of a hosted one.

const withCall = (state: State, id: string, call: CallState): State => ({
  ...state,
  calls: withEntry(state.calls, id, call)
})

const startInput = (state: State, id: string, name: string, executed: boolean): Result => {
  if (id === "" || name === "") return fault("a call has no id or no name")
  if (state.calls.has(id)) return fault(`the input of call ${id} was started twice`)
  const call: CallState = { name, phase: "input", raw: "", whole: false, executed, metadata: {} }
  return step(withCall(state, id, call), [
    draft("session.next.tool.input.started", { assistantMessageID: state.messageID, callID: id, name })
  ])
}

const extendInput = (state: State, id: string, delta: string): Result => {
  const call = state.calls.get(id)
  if (call?.phase !== "input") return fault(`the input of call ${id} continued before it was started or after its end`)
  const { messageID: assistantMessageID, sessionID } = state
  const next = { ...state, received: receive(state.received, delta) }
  return liveStep(withCall(next, id, { ...call, raw: call.raw + delta }), {
    type: "session.next.tool.input.delta",
    sessionID,
    data: { assistantMessageID, callID: id, delta }
  })
}

const endInput = (state: State, id: string): Result => {
  const call = state.calls.get(id)
  if (call?.phase !== "input") return fault(`the input of call ${id} ended before it was started, or twice`)
  return step(withCall(state, id, { ...call, phase: "input-ended" }), [inputEnded(state, id, call.raw)])
}

const inputEnded = (state: State, callID: string, text: string) =>
  draft("session.next.tool.input.ended", { assistantMessageID: state.messageID, callID, text })

/** Input that is not an object is stored under one key and read back from it (TO-17). */
const inputRecord = (params: unknown): JsonRecord => (isRecord(params) ? params : { input: params })

const call = (state: State, part: Extract<StreamPart, { readonly type: "tool-call" }>): Result => {
  const { id, metadata, name } = part
  // Some models send their input as a JSON string; providers accept only an object in the history.
  const params = boundedInput(objectIn(part.params))
  const executed = part.providerExecuted === true
  if (id === "" || name === "") return fault("a call has no id or no name")
  const before = state.calls.get(id)
  if (before !== undefined && (before.phase === "called" || before.phase === "settled")) {
    return fault(`call ${id} was made twice`)
  }
  if (before !== undefined && before.name !== name) return fault(`call ${id} changed from ${before.name} to ${name}`)
  const assistantMessageID = state.messageID
  const written = JSON.stringify(params ?? {})
  const unseen = before === undefined || before.raw === "" ? written : ""
  const drafts: Array<Draft> = []
  if (before === undefined)
    drafts.push(draft("session.next.tool.input.started", { assistantMessageID, callID: id, name }))
  if (before?.phase !== "input-ended") {
    drafts.push(inputEnded(state, id, before === undefined || before.raw === "" ? written : before.raw))
  }
  drafts.push(
    draft("session.next.tool.called", {
      assistantMessageID,
      callID: id,
      tool: name,
      input: inputRecord(params),
      provider: { executed, ...(Object.keys(metadata).length === 0 ? {} : { metadata }) }
    })
  )
  const received = receive(state.received, unseen)
  const whole = isRecord(params) && !(before?.phase === "input" && before.raw === "")
  const next = withCall({ ...state, received }, id, { name, phase: "called", raw: "", whole, executed, metadata })
  return step(next, drafts, executed ? {} : { call: { callID: id, name, input: params }, held: !whole })
}

const hostedResult = (state: State, part: Extract<StreamPart, { readonly type: "tool-result" }>): Result => {
  const before = state.calls.get(part.id)
  if (before === undefined) return fault(`the result of call ${part.id} came before the call`)
  const raw: unknown = part.encodedResult
  if (before.phase === "settled") {
    return part.isFailure ? step(state, []) : fault(`call ${part.id} has two results`)
  }
  if (before.phase !== "called") return fault(`the result of call ${part.id} came before the call`)
  if (!before.executed) return fault(`the provider gave a result for call ${part.id}, which is a local call`)
  const base = {
    assistantMessageID: state.messageID,
    callID: part.id,
    result: raw,
    provider: {
      executed: true,
      ...(Object.keys(part.metadata).length === 0 ? {} : { metadata: part.metadata })
    }
  }
  const next = withCall(state, part.id, { ...before, phase: "settled" })
  return step(next, [
    part.isFailure
      ? draft("session.next.tool.failed", {
          ...base,
          error: { type: "tool.provider", message: `${before.name} failed at the provider` }
        })
      : draft("session.next.tool.success", { ...base, structured: {}, content: [] })
  ])
}

const outputLimit: StoredError = {
  type: "tool.output-limit",
  message:
    "the answer reached its output limit before this call was complete, so the call was not run; make its input shorter, or " +
    "do the work in several calls"
}

/** Fails the local calls that the output limit cut off, so that the model reads why. */
const cutCalls = (state: State): Pick<Step, "state" | "drafts"> => {
  const assistantMessageID = state.messageID
  const calls = new Map(state.calls)
  const drafts: Array<Draft> = []
  for (const [callID, before] of state.calls) {
    if (before.executed || before.whole || before.phase === "settled") continue
    if (before.phase === "input") drafts.push(inputEnded(state, callID, before.raw))
    if (before.phase !== "called") {
      const input = { input: before.raw }
      const provider = { executed: false }
      drafts.push(draft("session.next.tool.called", { assistantMessageID, callID, tool: before.name, input, provider }))
    }
    drafts.push(
      draft("session.next.tool.failed", {
        assistantMessageID,
        callID,
        error: outputLimit,
        provider: { executed: false }
      })
    )
    calls.set(callID, { ...before, phase: "settled" })
  }
  return { state: { ...state, calls }, drafts }
}

/** Fails every matching call without a result. */
export const failUnsettled = (state: State, which: (call: CallState) => boolean, error: StoredError): Step => {
  const calls = new Map(state.calls)
  const drafts: Array<Draft> = []
  for (const [callID, before] of state.calls) {
    if (before.phase === "settled" || !which(before)) continue
    calls.set(callID, { ...before, phase: "settled" })
    drafts.push(
      draft("session.next.tool.failed", {
        assistantMessageID: state.messageID,
        callID,
        error,
        provider: { executed: before.executed }
      })
    )
  }
  return { state: { ...state, calls }, drafts, live: [] }
}

/** Whether the call was made and has no result yet. */
export const isRunning = (state: State, callID: string): boolean => state.calls.get(callID)?.phase === "called"

/** Marks a local call as settled by its tool. */
export const settled = (state: State, callID: string): State => {
  const before = state.calls.get(callID)
  return before === undefined ? state : withCall(state, callID, { ...before, phase: "settled" })
}

// Records text and reasoning: fragments that start, grow and end.

/** Metadata arrives in pieces (a signature with the last delta); pieces of one provider are merged. */
const mergeMetadata = (a: ProviderMetadata, b: ProviderMetadata | undefined): ProviderMetadata => {
  if (b === undefined || Object.keys(b).length === 0) return a
  const merged: Record<string, unknown> = { ...a }
  for (const [provider, piece] of Object.entries(b)) {
    const before = merged[provider]
    if (piece !== undefined && piece !== null)
      merged[provider] = isRecord(before) && isRecord(piece) ? { ...before, ...piece } : piece
  }
  return merged
}

const optionalMetadata = (metadata: ProviderMetadata) =>
  Object.keys(metadata).length === 0 ? {} : { providerMetadata: metadata }

/** Part ids are generated, since providers reuse theirs within one answer. */
const partID = (state: State): string => `prt_${state.messageID.slice("msg_".length)}.${state.parts + 1}`

const fragmentKey = (kind: Fragment["kind"], id: string) => `${kind} ${id}`

const startFragment = (state: State, kind: Fragment["kind"], id: string, metadata: ProviderMetadata): Result => {
  const key = fragmentKey(kind, id)
  if (state.open.has(key)) return fault(`${kind} ${id} was started twice`)
  const own = partID(state)
  const open = withEntry(state.open, key, { id: own, kind, text: "", metadata })
  const next = { ...state, open, parts: state.parts + 1 }
  const assistantMessageID = state.messageID
  return step(next, [
    kind === "text"
      ? draft("session.next.text.started", { assistantMessageID, textID: own })
      : draft("session.next.reasoning.started", { assistantMessageID, reasoningID: own, ...optionalMetadata(metadata) })
  ])
}

const extendFragment = (
  state: State,
  kind: Fragment["kind"],
  id: string,
  delta: string,
  metadata: ProviderMetadata
): Result => {
  const key = fragmentKey(kind, id)
  const fragment = state.open.get(key)
  if (fragment === undefined) return fault(`${kind} ${id} continued before it was started`)
  if (kind === "text") {
    const now = fitting(fragment.text.length, delta)
    if (now !== delta) return goOn(state, id, now, delta.slice(now.length), metadata)
  }
  const grown = { ...fragment, text: fragment.text + delta, metadata: mergeMetadata(fragment.metadata, metadata) }
  const received = receive(state.received, delta, kind)
  const spoken = state.spoken || (kind === "text" && !isBlank(delta))
  const next = { ...state, received, spoken, open: withEntry(state.open, key, grown) }
  if (delta === "") return step(next, [])
  const { messageID: assistantMessageID, sessionID } = state
  return liveStep(
    next,
    kind === "text"
      ? { type: "session.next.text.delta", sessionID, data: { assistantMessageID, textID: fragment.id, delta } }
      : {
          type: "session.next.reasoning.delta",
          sessionID,
          data: { assistantMessageID, reasoningID: fragment.id, delta }
        }
  )
}

/** The part is full: ends it and continues the text in a new one (EX-R11). */
const goOn = (state: State, id: string, now: string, rest: string, metadata: ProviderMetadata): Result =>
  Either.gen(function* () {
    const filled = now === "" ? undefined : yield* extendFragment(state, "text", id, now, metadata)
    const ended = yield* endFragment(filled?.state ?? state, "text", id, metadata)
    const begun = yield* startFragment(ended.state, "text", id, metadata)
    const further = yield* extendFragment(begun.state, "text", id, rest, metadata)
    const steps = [...(filled === undefined ? [] : [filled]), ended, begun, further]
    return {
      state: further.state,
      drafts: steps.flatMap(({ drafts }) => drafts),
      live: steps.flatMap(({ live }) => live)
    }
  })

const endedFragment = (state: State, fragment: Fragment): Draft => {
  const assistantMessageID = state.messageID
  const { id, kind, metadata, text } = fragment
  const rest = { text, ...optionalMetadata(metadata) }
  // In the order of their schemas, in which they are printed.
  return kind === "text"
    ? draft("session.next.text.ended", { assistantMessageID, textID: id, ...rest })
    : draft("session.next.reasoning.ended", { assistantMessageID, reasoningID: id, ...rest })
}

const endFragment = (state: State, kind: Fragment["kind"], id: string, metadata: ProviderMetadata): Result => {
  const key = fragmentKey(kind, id)
  const fragment = state.open.get(key)
  if (fragment === undefined) return fault(`${kind} ${id} ended before it was started`)
  const open = new Map(state.open)
  open.delete(key)
  const whole = { ...fragment, metadata: mergeMetadata(fragment.metadata, metadata) }
  return step({ ...state, open }, [endedFragment(state, whole)])
}

/** Ends every open fragment with its text so far. */
const closeFragments = (state: State): ReadonlyArray<Draft> =>
  [...state.open.values()].map((fragment) => endedFragment(state, fragment))

/** A synthetic finish part for a stream that was cut short; its usage is unknown. */
export const cutOff: StreamPart = Response.finishPart({
  reason: "tool-calls",
  usage: new Response.Usage({ inputTokens: undefined, outputTokens: undefined, totalTokens: undefined }),
  metadata: {}
})

type FinishPart = Extract<StreamPart, { readonly type: "finish" }>

/** Why the answer ended. The model port has no reason for a refusal: it is marked in the metadata. */
const finishOf = ({ metadata, reason }: FinishPart): string =>
  isRecord(metadata["daybook"]) && metadata["daybook"]["refusal"] === true ? refusal : reason

const finish = (state: State, part: FinishPart): Result => {
  if (part.reason === "error") return failed(state, "the answer ended with an error")
  const cut = part.reason === "length" ? cutCalls(state) : { state, drafts: [] }
  const { inputEstimate, received } = state
  const counted = toTokens(part.usage, part.metadata)
  const used = usedOf(counted, inputEstimate, received, state.info.price)
  const end = { finish: finishOf(part), tokens: counted.output }
  const drafts = [
    ...closeFragments(state),
    ...cut.drafts,
    draft("session.next.step.ended", {
      assistantMessageID: state.messageID,
      finish: end.finish,
      ...used
    })
  ]
  return step({ ...cut.state, open: new Map(), ended: "finished", end }, drafts)
}

const failed = (state: State, providerError: unknown): Result =>
  step({ ...state, ended: "failed" }, [], { providerError })

/** Takes one part. Parts after an error part are ignored (TO-7); a part after the finish is a fault. */
export const record = (state: State, part: StreamPart): Result => {
  if (state.ended === "failed") return step(state, [])
  if (state.ended === "finished") return fault(`${part.type} came after the end of the answer`)
  switch (part.type) {
    case "text-start":
      return startFragment(state, "text", part.id, part.metadata)
    case "text-delta":
      return extendFragment(state, "text", part.id, part.delta, part.metadata)
    case "text-end":
      return endFragment(state, "text", part.id, part.metadata)
    case "reasoning-start":
      return startFragment(state, "reasoning", part.id, part.metadata)
    case "reasoning-delta":
      return extendFragment(state, "reasoning", part.id, part.delta, part.metadata)
    case "reasoning-end":
      return endFragment(state, "reasoning", part.id, part.metadata)
    case "tool-params-start":
      return startInput(state, part.id, part.name, part.providerExecuted === true)
    case "tool-params-delta":
      return extendInput(state, part.id, part.delta)
    case "tool-params-end":
      return endInput(state, part.id)
    case "tool-call":
      return call(state, part)
    case "tool-result":
      return hostedResult(state, part)
    case "finish":
      return finish(state, part)
    case "error":
      return failed(state, part.error)
    // No reader shows these yet: response ids, sources and generated files.
    case "response-metadata":
    case "source":
    case "file":
    case "text":
    case "reasoning":
      return step(state, [])
  }
}

/** Closes open fragments with their text so far, exactly once, after a failure or an interrupt (TU-14). */
export const close = (state: State): Step => ({
  state: { ...state, open: new Map() },
  drafts: closeFragments(state),
  live: []
})

/** Whether the answer is finished and left nothing to run, to read or to close. */
export const isComplete = ({ calls, ended }: State): boolean =>
  ended === "finished" && [...calls.values()].every(({ executed, phase }) => executed && phase === "settled")

const isMade = ({ phase }: CallState): boolean => phase === "called" || phase === "settled"

/** Whether the model goes on: it has results of local tools to read (TU-9), or paused (EX-T43). */
export const goesOn = ({ calls, end }: State): boolean =>
  end?.finish === "pause" || [...calls.values()].some((call) => !call.executed && isMade(call))

/** What the finished answer lacks. */
export const problemIn = ({ calls, end, spoken }: State): AnswerProblem | undefined =>
  end === undefined ? undefined : problemOf({ ...end, spoken, called: [...calls.values()].some(isMade) })
