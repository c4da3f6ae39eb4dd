/**
 * The state of one turn and its transitions. Pure: `Publication.ts` stores the events that a transition returns and
 * keeps the state. Spec: EX-T1..EX-T12 (TU-8..TU-15).
 */
import { Either } from "effect"
import type { StoredError } from "@daybook/log/domain/Values"
import { type Draft, draft, type LiveEvent } from "@daybook/log/events/SessionEvents"
import * as Provider from "../model/ProviderStream.ts"
import type { StreamPart } from "../model/StreamPart.ts"
import { estimateOf, type Used } from "../model/Usage.ts"
import type { Settled } from "../tool/ToolRegistry.ts"
import * as Recorder from "./recorder/TurnRecorder.ts"

export interface TurnState {
  /** The recorded part of the answer. */
  readonly answer: Recorder.State
  /** Calls that wait for the end of the answer (EX-R14). */
  readonly held: ReadonlyArray<Recorder.LocalCall>
  /** A request is in flight, and the provider may charge its tokens. */
  readonly charged: boolean
  /** The turn is wrapped up: nothing of it is left to close. */
  readonly wrappedUp: boolean
}

/** Events to store and to publish, and the answer after them. */
export type Step = Pick<Recorder.Step, "state" | "drafts" | "live">

/** A turn whose request is not sent yet; also the state after a failed attempt that is retried. */
export const begin = (answer: Recorder.State): TurnState => ({ answer, held: [], charged: false, wrappedUp: false })

/** Estimated usage of the request in flight. */
export const usedSoFar = ({ answer, charged }: TurnState): Used | undefined =>
  charged ? estimateOf(answer.inputEstimate, answer.received, answer.info.price) : undefined

/** Parts of the stream, taken together. */
export interface Taken {
  readonly step: Step
  readonly held: ReadonlyArray<Recorder.LocalCall>
  /** The calls that can start once the step is stored. */
  readonly calls: ReadonlyArray<Recorder.LocalCall>
  /** Why the stream ends with these parts; undefined if it continues or finished normally. */
  readonly fault: Provider.StreamFault | undefined
}

/** Records parts that arrived together, up to the end of the answer or the first fault. */
export const take = (before: Pick<TurnState, "answer" | "held">, parts: ReadonlyArray<StreamPart>): Taken => {
  let state = before.answer
  const drafts: Array<Draft> = []
  const live: Array<LiveEvent> = []
  const calls: Array<Recorder.LocalCall> = []
  const held: Array<Recorder.LocalCall> = [...before.held]
  let fault: Provider.StreamFault | undefined
  for (const part of parts) {
    const step = Recorder.record(state, part)
    if (Either.isLeft(step)) {
      fault = Provider.broken(`the provider broke the order of its stream: ${step.left.details}`, false)
      break
    }
    state = step.right.state
    drafts.push(...step.right.drafts)
    live.push(...step.right.live)
    if (step.right.call !== undefined) (step.right.held === true ? held : calls).push(step.right.call)
    if (state.ended === "failed") fault = Provider.reported(step.right.providerError)
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

/** Records the result of a local call. */
export const settle = (answer: Recorder.State, callID: string, result: Settled): Step => {
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

/** Errors for what is unfinished at the end of a turn: local calls, hosted calls, and the step if it failed. */
export interface Reasons {
  readonly local: StoredError
  readonly hosted: StoredError
  readonly step?: StoredError
}

/** Closes what is unfinished: fragments with their text so far, calls with the fitting error, then the step. */
export const wrapUp = (state: TurnState, { hosted, local, step }: Reasons): Step => {
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
