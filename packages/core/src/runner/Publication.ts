/**
 * Publishes one turn: stores its events in the log, publishes its live events, and keeps its state. One permit orders
 * what the stream and the tools publish (TU-8). Spec: EX-T3, EX-T8, EX-T12.
 */
import { Array as Arr, Effect, Metric, Ref } from "effect"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import { type Draft, draft } from "@daybook/log/events/SessionEvents"
import { type AppendError, EventLog, type OwnerToken } from "@daybook/log/log/EventLog"
import * as Metrics from "@daybook/log/support/Metrics"
import type { ToolOutput } from "../domain/ToolOutput.ts"
import * as Provider from "../model/ProviderStream.ts"
import type { StreamPart } from "../model/StreamPart.ts"
import type { Settled } from "../tool/ToolRegistry.ts"
import type { Repeats } from "./Repeats.ts"
import * as Recorder from "./recorder/TurnRecorder.ts"
import * as TurnState from "./TurnState.ts"

/** Events that end the activity together with the turn. `stored` notes that they are in the log. */
export interface Ending {
  readonly drafts: ReadonlyArray<Draft>
  readonly stored: Effect.Effect<void>
}

export interface PublicationInput {
  readonly sessionID: SessionID
  readonly owner: OwnerToken
  readonly repeats: Repeats
  /** The answer before its first part. */
  readonly begun: Recorder.State
  /** Decides at the end of an answer that left nothing open whether the activity ends with it (EX-111). */
  readonly ending: (answer: Recorder.State) => Effect.Effect<Ending | undefined>
}

/** A turn that is being published. Only the functions below change its state. */
export interface Publication extends PublicationInput {
  readonly log: EventLog["Type"]
  readonly state: Ref.Ref<TurnState.TurnState>
  readonly inOrder: <A, E, R>(publish: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
}

export const make = Effect.fnUntraced(function* (
  input: PublicationInput
): Effect.fn.Return<Publication, never, EventLog> {
  const log = yield* EventLog
  const permit = yield* Effect.makeSemaphore(1)
  const state = yield* Ref.make(TurnState.begin(input.begun))
  return { ...input, log, state, inOrder: permit.withPermits(1) }
})

const append = ({ log, owner, sessionID }: Publication, drafts: ReadonlyArray<Draft>) =>
  Arr.isNonEmptyReadonlyArray(drafts) ? log.append(sessionID, drafts, { owner }) : Effect.void

/** Stores a step's events, then advances the answer; uninterruptible in between. */
const commit = (publication: Publication, step: TurnState.Step, ending?: Ending): Effect.Effect<void, AppendError> =>
  Effect.uninterruptible(
    Effect.gen(function* () {
      yield* append(publication, ending === undefined ? step.drafts : [...step.drafts, ...ending.drafts])
      if (ending !== undefined) yield* ending.stored
      yield* Ref.update(publication.state, (state) => ({ ...state, answer: step.state }))
      for (const event of step.live) yield* publication.log.publishLive(event)
      for (const event of step.drafts) yield* countTokens(event)
    })
  )

/** The message of the turn. */
export const messageID = ({ state }: Publication) => Effect.map(Ref.get(state), ({ answer }) => answer.messageID)

/** Stores events beside the answer. */
export const note = (publication: Publication, drafts: ReadonlyArray<Draft>): Effect.Effect<unknown, AppendError> =>
  publication.inOrder(append(publication, drafts))

/** Notes that the request is sent. */
export const sent = ({ state }: Publication): Effect.Effect<void> =>
  Ref.update(state, (now) => ({ ...now, charged: true }))

/** Notes that the request failed. Returns whether part of the answer is stored. */
export const failed = ({ state }: Publication, fault: Provider.StreamFault): Effect.Effect<boolean> =>
  Ref.modify(state, (now) => [now.answer.output, { ...now, charged: Provider.isCharged(fault, now.answer.output) }])

/** Stores a failed attempt that is retried after the pause, and starts over. */
export const retried = Effect.fnUntraced(function* (
  publication: Publication,
  attempt: number,
  fault: Provider.StreamFault,
  pause: Provider.Pause
) {
  const used = TurnState.usedSoFar(yield* Ref.get(publication.state))
  yield* append(publication, [Provider.retried(attempt, fault, pause, used)])
  yield* Ref.set(publication.state, TurnState.begin(publication.begun))
})

/** Stores parts that arrived together with one append, then starts their calls. Fails if they end with a fault. */
export const take = (
  publication: Publication,
  parts: ReadonlyArray<StreamPart>,
  start: (call: Recorder.LocalCall) => Effect.Effect<unknown>
): Effect.Effect<void, Provider.StreamFault | AppendError> =>
  publication.inOrder(
    Effect.gen(function* () {
      const before = yield* Ref.get(publication.state)
      const { calls, fault, held, step } = TurnState.take(before, parts)
      const isLast = fault === undefined && Recorder.isComplete(step.state)
      yield* commit(publication, step, isLast ? yield* publication.ending(step.state) : undefined)
      if (held.length > 0 || before.held.length > 0) {
        yield* Ref.update(publication.state, (state) => ({ ...state, held }))
      }
      for (const call of calls) yield* start(call)
      if (fault !== undefined) return yield* Effect.fail(fault)
    })
  )

/** Stores a call's progress; progress of a settled call is dropped. */
export const progress = (publication: Publication, callID: string, { content, structured }: ToolOutput) =>
  publication.inOrder(
    Effect.flatMap(Ref.get(publication.state), ({ answer }) =>
      Recorder.isRunning(answer, callID)
        ? append(publication, [
            draft("session.next.tool.progress", { assistantMessageID: answer.messageID, callID, content, structured })
          ])
        : Effect.void
    )
  )

/** Stores the result of a local call. */
export const result = (publication: Publication, { callID, input, name }: Recorder.LocalCall, returned: Settled) =>
  publication.inOrder(
    Effect.flatMap(Ref.get(publication.state), ({ answer }) =>
      commit(publication, TurnState.settle(answer, callID, publication.repeats.note(name, input, returned)))
    )
  )

/** Closes what is unfinished. */
export const wrapUp = (publication: Publication, reasons: TurnState.Reasons): Effect.Effect<void, AppendError> =>
  publication.inOrder(
    Effect.uninterruptible(
      Effect.flatMap(
        Ref.getAndUpdate(publication.state, (state) => ({ ...state, wrappedUp: true })),
        (state) => commit(publication, TurnState.wrapUp(state, reasons))
      )
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
        ([kind, count]) => Metric.incrementBy(Metric.tagged(Metrics.tokens, "kind", kind), count),
        { discard: true }
      )
    : Effect.void
