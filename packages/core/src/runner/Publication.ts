/**
 * Publishes one turn: stores its events in the log, publishes its live events, and keeps its state. One permit orders
 * what the stream and the tools publish (TU-8). Spec: EX-T3, EX-T8, EX-T12, EX-T15 (TU-8..TU-15).
 */
import { Array as Arr, Effect, Either, Metric, Predicate } from "effect"
import type { MessageID, SessionID } from "@daybook/log/domain/Identifiers"
import type { Message, ToolPart } from "@daybook/log/domain/Message"
import type { StoredError, ToolContent } from "@daybook/log/domain/Values"
import { type Draft, draft, type LiveEvent } from "@daybook/log/events/SessionEvents"
import type { AppendError, EventLog, OwnerToken } from "@daybook/log/log/EventLog"
import * as Metrics from "@daybook/log/support/Metrics"
import type { ToolOutput } from "../domain/ToolOutput.ts"
import * as ProviderStream from "../model/ProviderStream.ts"
import type { StreamPart } from "../model/ProviderStream.ts"
import { estimateOf, type Used } from "../model/Usage.ts"
import { repeated } from "../request/Reminders.ts"
import type { CallOutcome } from "../tool/ToolRegistry.ts"
import { referenceOf } from "../workspace/ToolOutputStore.ts"
import * as Recorder from "./recorder/TurnRecorder.ts"

// Detects repeated calls with the same result: the result of the third call in a row carries a reminder for the model.

const remindFrom = 3

const mark = "\n<reminder>\nThis call gave the same result"

/** JSON with sorted keys: models do not keep a stable key order. */
const stable = (value: unknown): string =>
  JSON.stringify(value, (_, inner: unknown) =>
    Predicate.isRecord(inner) ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1))) : inner
  )

/** The result text without the reminder. */
const plain = (text: string): string => {
  const at = text.indexOf(mark)
  return at < 0 ? text : text.slice(0, at)
}

const keyOf = (name: string, input: unknown, failed: boolean, result: string): string =>
  stable([name, Predicate.isRecord(input) ? input : { input }, failed, plain(result)])

/** The text of a result, without the names of spill files: each call has its own. */
const contentText = ({ content, outputPaths = [], structured }: ToolOutput): string => {
  if (content.length === 0) return JSON.stringify(structured)
  const names = outputPaths.flatMap((path) => [path, referenceOf(path)])
  return content
    .map((part) =>
      part.type === "text" ? names.reduce((text, name) => text.replaceAll(name, ""), part.text) : part.uri
    )
    .join("\n")
}

const keyOfPart = ({ content = [], error, input, name, outputPaths = [], state, structured = {} }: ToolPart): string =>
  keyOf(name, input, state === "error", error?.message ?? contentText({ content, outputPaths, structured }))

const keyOfSettled = (name: string, input: unknown, settled: CallOutcome): string =>
  settled._tag === "Failure"
    ? keyOf(name, input, true, settled.error.message)
    : keyOf(name, input, false, contentText(settled.output))

/** Settled local calls since the last prompt, newest first. */
function* newestFirst(messages: ReadonlyArray<Message>): Generator<ToolPart> {
  for (const message of messages.toReversed()) {
    if (message.type === "user") return
    if (message.type !== "assistant") continue
    for (const part of message.content.toReversed()) {
      if (part.type === "tool" && part.provider?.executed !== true && part.completedAt !== undefined) yield part
    }
  }
}

const withReminder = (settled: CallOutcome, count: number): CallOutcome => {
  const words = `\n${repeated(count)}`
  if (settled._tag === "Failure") {
    return { ...settled, error: { ...settled.error, message: `${settled.error.message}${words}` } }
  }
  const { content, structured } = settled.output
  const shown: ReadonlyArray<ToolContent> =
    content.length === 0 ? [{ type: "text", text: JSON.stringify(structured) }] : content
  const last = shown.at(-1)
  return {
    ...settled,
    output: {
      ...settled.output,
      content:
        last?.type === "text"
          ? [...shown.slice(0, -1), { type: "text", text: `${last.text}${words}` }]
          : [...shown, { type: "text", text: repeated(count) }]
    }
  }
}

export interface Repeats {
  /** Returns the result to record: with a reminder when it repeated often enough. */
  readonly note: (name: string, input: unknown, settled: CallOutcome) => CallOutcome
}

/** Starts the count from the shown messages. */
export const makeRepeats = (messages: ReadonlyArray<Message>): Repeats => {
  let key: string | undefined
  let count = 0
  for (const part of newestFirst(messages)) {
    const own = keyOfPart(part)
    if (key !== undefined && own !== key) break
    key = own
    count += 1
  }
  return {
    note: (name, input, settled) => {
      const own = keyOfSettled(name, input, settled)
      count = own === key ? count + 1 : 1
      key = own
      return count < remindFrom ? settled : withReminder(settled, count)
    }
  }
}

// The state of one turn and its transitions; each transition returns the events to store.

interface TurnState {
  readonly answer: Recorder.State
  readonly held: ReadonlyArray<Recorder.LocalCall>
  /** A request is in flight, and the provider may charge its tokens. */
  readonly charged: boolean
  /** The turn is wrapped up: no part of the turn is left to close. */
  readonly wrappedUp: boolean
}

/** Events to store and to publish, and the answer after them. */
type Step = Pick<Recorder.Step, "state" | "drafts" | "live">

/** A turn whose request is not sent yet; also the state after a failed attempt that is retried. */
const unsent = (answer: Recorder.State): TurnState => ({ answer, held: [], charged: false, wrappedUp: false })

/** Estimated usage of the request in flight. */
const usedSoFar = ({ answer, charged }: TurnState): Used | undefined =>
  charged ? estimateOf(answer.inputEstimate, answer.received, answer.info.price) : undefined

/** Parts of the stream, taken together. */
interface Taken {
  readonly step: Step
  readonly held: ReadonlyArray<Recorder.LocalCall>
  /** The calls that can start once the step is stored. */
  readonly calls: ReadonlyArray<Recorder.LocalCall>
  /** Why the stream ends with these parts; undefined if it continues or finished normally. */
  readonly fault: ProviderStream.StreamFault | undefined
}

const isBare = (part: StreamPart): boolean => Object.keys(part.metadata).length === 0

/** Joins the deltas of one text, or of one input, that arrived together (EX-780). */
const withJoinedDeltas = (parts: ReadonlyArray<StreamPart>): ReadonlyArray<StreamPart> => {
  if (parts.length === 1) return parts
  const all: Array<StreamPart> = []
  for (const part of parts) {
    const last = all.at(-1)
    const follows = last !== undefined && "delta" in last && "delta" in part && last.type === part.type
    if (follows && last.id === part.id && isBare(part))
      all[all.length - 1] = { ...last, delta: last.delta + part.delta }
    else all.push(part)
  }
  return all
}

/** Records parts that arrived together, up to the end of the answer or the first fault. */
const recordParts = (before: Pick<TurnState, "answer" | "held">, parts: ReadonlyArray<StreamPart>): Taken => {
  let state = before.answer
  const drafts: Array<Draft> = []
  const live: Array<LiveEvent> = []
  const calls: Array<Recorder.LocalCall> = []
  const held: Array<Recorder.LocalCall> = [...before.held]
  let fault: ProviderStream.StreamFault | undefined
  for (const part of withJoinedDeltas(parts)) {
    const step = Recorder.record(state, part)
    if (Either.isLeft(step)) {
      fault = ProviderStream.broken(`the provider broke the order of its stream: ${step.left.details}`, false)
      break
    }
    state = step.right.state
    drafts.push(...step.right.drafts)
    live.push(...step.right.live)
    if (step.right.call !== undefined) (step.right.held === true ? held : calls).push(step.right.call)
    if (state.ended === "failed") fault = ProviderStream.reported(step.right.providerError)
    if (state.ended !== "no") break
  }
  if (state.ended === "finished") calls.push(...held.filter(({ callID }) => Recorder.isRunning(state, callID)))
  return {
    step: { state, drafts, live },
    held: state.ended === "no" ? held : [],
    // After a reported error no tool starts (TO-7).
    calls: fault?._tag === "Reported" ? [] : calls,
    fault
  }
}

const settlement = (answer: Recorder.State, callID: string, result: CallOutcome): Step => {
  const base = { assistantMessageID: answer.messageID, callID, provider: { executed: false } }
  return {
    state: Recorder.settled(answer, callID),
    drafts: [
      result._tag === "Failure"
        ? draft("session.next.tool.failed", { ...base, error: result.error })
        : draft("session.next.tool.success", { ...base, ...result.output })
    ],
    live: []
  }
}

export interface Reasons {
  readonly local: StoredError
  readonly hosted: StoredError
  readonly step?: StoredError
}

/** Closes what is unfinished: fragments with their text so far, calls with the fitting error, then the step. */
const closing = (state: TurnState, { hosted, local, step }: Reasons): Step => {
  const { answer } = state
  const closed = Recorder.close(answer)
  const locals = Recorder.failUnsettled(closed.state, ({ executed }) => !executed, local)
  const all = Recorder.failUnsettled(locals.state, () => true, hosted)
  const failed =
    step === undefined || answer.ended === "finished"
      ? []
      : [
          draft("session.next.step.failed", {
            assistantMessageID: answer.messageID,
            error: step,
            ...usedSoFar(state)
          })
        ]
  return { ...all, drafts: [...closed.drafts, ...locals.drafts, ...all.drafts, ...failed] }
}

/** Events that end the activity together with the turn. `stored` notes that they are in the log. */
export interface Ending {
  readonly drafts: ReadonlyArray<Draft>
  readonly stored: Effect.Effect<void>
}

export interface PublicationInput {
  readonly log: EventLog["Type"]
  readonly sessionID: SessionID
  readonly owner: OwnerToken
  readonly repeats: Repeats
  /** The answer before its first part. */
  readonly begun: Recorder.State
  /** Decides whether the activity ends with an answer that left nothing open (EX-111). */
  readonly ending: (answer: Recorder.State) => Effect.Effect<Ending | undefined>
}

/** A turn that is being published. Only the functions below change its state. */
export interface Publication extends PublicationInput {
  readonly turn: { state: TurnState }
  readonly inOrder: <A, E, R>(publish: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  /** Whether nobody publishes, or waits to do so. */
  readonly isFree: () => boolean
}

/** One permit, and whether it is free. */
const makeOrder = Effect.map(Effect.makeSemaphore(1), (permit): Pick<Publication, "inOrder" | "isFree"> => {
  let users = 0
  const leave = Effect.sync(() => void (users -= 1))
  return {
    inOrder: (publish) =>
      Effect.suspend(() => {
        users += 1
        return Effect.ensuring(permit.withPermits(1)(publish), leave)
      }),
    isFree: () => users === 0
  }
})

export const make = (input: PublicationInput) =>
  Effect.map(makeOrder, (order): Publication => ({ ...input, ...order, turn: { state: unsent(input.begun) } }))

const append = ({ log, owner, sessionID }: Publication, drafts: ReadonlyArray<Draft>) =>
  Arr.isNonEmptyReadonlyArray(drafts) ? log.append(sessionID, drafts, { owner }) : Effect.void

/** Stores a step's events, then advances the answer; uninterruptible in between. */
const commit = (publication: Publication, step: Step, ending?: Ending): Effect.Effect<void, AppendError> =>
  Effect.uninterruptible(
    Effect.gen(function* () {
      yield* append(publication, ending === undefined ? step.drafts : [...step.drafts, ...ending.drafts])
      if (ending !== undefined) yield* ending.stored
      publication.turn.state = { ...publication.turn.state, answer: step.state }
      for (const event of step.live) publication.log.sendLive(event)
      for (const event of step.drafts) yield* countTokens(event)
    })
  )

export const messageID = ({ begun }: Publication): MessageID => begun.messageID

export const answer = ({ turn }: Publication): Recorder.State => turn.state.answer

export const isWrappedUp = ({ turn }: Publication): boolean => turn.state.wrappedUp

export const note = (publication: Publication, drafts: ReadonlyArray<Draft>): Effect.Effect<unknown, AppendError> =>
  publication.inOrder(append(publication, drafts))

/** Notes that the request is sent. */
export const sent = ({ turn }: Publication): Effect.Effect<void> =>
  Effect.sync(() => {
    turn.state = { ...turn.state, charged: true }
  })

/** Notes that the request failed. Returns whether part of the answer is stored. */
export const failed = ({ turn }: Publication, fault: ProviderStream.StreamFault): Effect.Effect<boolean> =>
  Effect.sync(() => {
    const { output } = turn.state.answer
    turn.state = { ...turn.state, charged: ProviderStream.isCharged(fault, output) }
    return output
  })

/** Stores a failed attempt that is retried after the pause, and starts over. */
export const retried = Effect.fnUntraced(function* (
  publication: Publication,
  attempt: number,
  fault: ProviderStream.StreamFault,
  pause: ProviderStream.Pause
) {
  const used = usedSoFar(publication.turn.state)
  yield* append(publication, [ProviderStream.retried(attempt, fault, pause, used)])
  publication.turn.state = unsent(publication.begun)
})

/** Whether there is nothing to store, to start or to fail: parts that only add to a text or an input. */
const isLiveOnly = ({ calls, fault, held, step }: Taken): boolean =>
  step.drafts.length === 0 && calls.length === 0 && held.length === 0 && fault === undefined

/** Returns what takes parts that only add to a text or an input, while nothing else is published; undefined for others. */
export const takeNow = (publication: Publication, parts: ReadonlyArray<StreamPart>): (() => void) | undefined => {
  const before = publication.turn.state
  if (before.wrappedUp || !publication.isFree()) return undefined
  const taken = recordParts(before, parts)
  if (before.held.length > 0 || !isLiveOnly(taken)) return undefined
  return () => {
    publication.turn.state = { ...before, answer: taken.step.state }
    for (const event of taken.step.live) publication.log.sendLive(event)
  }
}

/** Stores parts that arrived together with one append, then starts their calls. Fails if they end with a fault. */
export const take = (
  publication: Publication,
  parts: ReadonlyArray<StreamPart>,
  start: (call: Recorder.LocalCall) => Effect.Effect<unknown>
): Effect.Effect<void, ProviderStream.StreamFault | AppendError> =>
  Effect.suspend(() => {
    const now = takeNow(publication, parts)
    return now === undefined ? takeInOrder(publication, parts, start) : Effect.sync(now)
  })

const takeInOrder = (
  publication: Publication,
  parts: ReadonlyArray<StreamPart>,
  start: (call: Recorder.LocalCall) => Effect.Effect<unknown>
): Effect.Effect<void, ProviderStream.StreamFault | AppendError> =>
  publication.inOrder(
    Effect.gen(function* () {
      const before = publication.turn.state
      const { calls, fault, held, step } = recordParts(before, parts)
      const isLast = fault === undefined && Recorder.isComplete(step.state)
      yield* commit(publication, step, isLast ? yield* publication.ending(step.state) : undefined)
      if (held.length > 0 || before.held.length > 0) publication.turn.state = { ...publication.turn.state, held }
      for (const call of calls) yield* start(call)
      if (fault !== undefined) return yield* Effect.fail(fault)
    })
  )

/** Stores a call's progress; progress of a settled call is dropped. */
export const progress = (publication: Publication, callID: string, { content, structured }: ToolOutput) =>
  publication.inOrder(
    Effect.suspend(() => {
      const { messageID: assistantMessageID } = publication.begun
      return Recorder.isRunning(answer(publication), callID)
        ? append(publication, [
            draft("session.next.tool.progress", { assistantMessageID, callID, content, structured })
          ])
        : Effect.void
    })
  )

export const result = (publication: Publication, { callID, input, name }: Recorder.LocalCall, returned: CallOutcome) =>
  publication.inOrder(
    Effect.suspend(() =>
      commit(publication, settlement(answer(publication), callID, publication.repeats.note(name, input, returned)))
    )
  )

export const wrapUp = (publication: Publication, reasons: Reasons): Effect.Effect<void, AppendError> =>
  publication.inOrder(
    Effect.uninterruptible(
      Effect.suspend(() => {
        const { state } = publication.turn
        publication.turn.state = { ...state, wrappedUp: true }
        return commit(publication, closing(state, reasons))
      })
    )
  )

const countTokens = (event: Draft) =>
  (event.type === "session.next.step.ended" || event.type === "session.next.step.failed") &&
  event.data.tokens !== undefined
    ? Effect.forEach(
        [
          ["input", event.data.tokens.input],
          ["output", event.data.tokens.output]
        ] as const,
        ([kind, count]) => Metric.incrementBy(Metrics.tokensOf(kind), count),
        { discard: true }
      )
    : Effect.void
