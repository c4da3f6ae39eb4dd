/** Records tool calls: their input, the call, and the result of a hosted one. Spec: EX-R1, EX-R2, EX-R14 in specs/execution.md. */
import type { JsonRecord, StoredError } from "@daybook/log/domain/Values"
import { type Draft, draft } from "@daybook/log/events/SessionEvents"
import type { StreamPart } from "../../model/StreamPart.ts"
import { boundedInput } from "../../tool/InputDepth.ts"
import { objectIn } from "../../tool/LenientInput.ts"
import {
  type CallState,
  fault,
  isRecord,
  liveStep,
  receive,
  type Result,
  type State,
  step,
  type Step,
  withEntry
} from "./RecorderState.ts"

const withCall = (state: State, id: string, call: CallState): State => ({
  ...state,
  calls: withEntry(state.calls, id, call)
})

export const startInput = (state: State, id: string, name: string, executed: boolean): Result => {
  if (id === "" || name === "") return fault("a call has no id or no name")
  if (state.calls.has(id)) return fault(`the input of call ${id} was started twice`)
  const call: CallState = { name, phase: "input", raw: "", whole: false, executed, metadata: {} }
  return step(withCall(state, id, call), [
    draft("session.next.tool.input.started", { assistantMessageID: state.messageID, callID: id, name })
  ])
}

export const extendInput = (state: State, id: string, delta: string): Result => {
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

export const endInput = (state: State, id: string): Result => {
  const call = state.calls.get(id)
  if (call?.phase !== "input") return fault(`the input of call ${id} ended before it was started, or twice`)
  return step(withCall(state, id, { ...call, phase: "input-ended" }), [inputEnded(state, id, call.raw)])
}

const inputEnded = (state: State, callID: string, text: string) =>
  draft("session.next.tool.input.ended", { assistantMessageID: state.messageID, callID, text })

/** Input that is not an object is stored under one key and read back from it (TO-17). */
const inputRecord = (params: unknown): JsonRecord => (isRecord(params) ? params : { input: params })

type ToolCallPart = Extract<StreamPart, { readonly type: "tool-call" }>
export const call = (state: State, part: ToolCallPart): Result => {
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

type ToolResultPart = Extract<StreamPart, { readonly type: "tool-result" }>
export const hostedResult = (state: State, part: ToolResultPart): Result => {
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
export const cutCalls = (state: State): Pick<Step, "state" | "drafts"> => {
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
