/**
 * Converts a provider's stream parts to events: the state machine of one turn. Pure: for each part it returns the
 * events to append, the events to publish live, and a complete call. The turn owns order, storage and tools.
 *
 *   text / reasoning:  start -> delta* -> end          (durable: started, ended with the whole value)
 *   tool:              params start -> delta* -> end -> call -> result
 *
 * A provider that breaks this order fails its turn (TU-15). Spec: EX-R1, EX-R2, EX-R15.
 */
import * as Response from "@effect/ai/Response"
import { draft } from "@daybook/log/events/SessionEvents"
import type { StreamPart } from "../../model/StreamPart.ts"
import { toTokens, usedOf } from "../../model/Usage.ts"
import { call, cutCalls, endInput, extendInput, hostedResult, startInput } from "./Calls.ts"
import { type AnswerProblem, problemOf, refusal } from "@daybook/log/domain/AnswerProblem"
import { closeFragments, endFragment, extendFragment, startFragment } from "./Fragments.ts"
import { type CallState, fault, isRecord, type Result, type State, step, type Step } from "./RecorderState.ts"

export { failUnsettled, isRunning, settled } from "./Calls.ts"
export { type CallState, type LocalCall, ProtocolFault, start, type State, type Step } from "./RecorderState.ts"

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
