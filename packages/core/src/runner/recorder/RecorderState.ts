/** What the recorder of a turn knows of its answer so far, and one step of it. Spec: EX-R1, EX-R2. */
import { Either } from "effect"
import type { MessageID, SessionID } from "@daybook/log/domain/Identifiers"
import type { ProviderMetadata } from "@daybook/log/domain/Values"
import type { Draft, LiveEvent } from "@daybook/log/events/SessionEvents"
import type { ModelInfo } from "../../model/ModelResolver.ts"
import { nothingReceived, type Received } from "../../model/Usage.ts"

export type Fragment = {
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

export type Result = Either.Either<Step, ProtocolFault>
export const fault = (details: string): Result => Either.left(new ProtocolFault(details))
export const step = (
  state: State,
  drafts: ReadonlyArray<Draft>,
  rest?: Omit<Step, "state" | "drafts" | "live">
): Result =>
  Either.right({ state: drafts.length === 0 ? state : { ...state, output: true }, drafts, live: [], ...rest })
export const liveStep = (state: State, event: LiveEvent): Result => Either.right({ state, drafts: [], live: [event] })

export const receive = ({ all, reasoning }: Received, text: string, kind?: Fragment["kind"]): Received => ({
  all: all + text.length,
  reasoning: kind === "reasoning" ? reasoning + text.length : reasoning
})

export const withEntry = <V>(map: ReadonlyMap<string, V>, key: string, value: V): ReadonlyMap<string, V> =>
  new Map(map).set(key, value)

export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value)
