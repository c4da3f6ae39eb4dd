/** Folds steps: an assistant row at a step's end, then a row for each result. Pure. Spec: FI-26..FI-29 (FL-4, FL-5). */
import { modelText, type StoredError } from "@daybook/log/domain/Values"
import type { EventOfType } from "@daybook/log/events/SessionEvents"
import { type Block, timeText } from "../row/Rows.ts"
import {
  blocksOf,
  codeOf,
  type Content,
  type LongBlock,
  ofRun,
  type Out,
  place,
  set,
  textLimit,
  toolContent
} from "./Out.ts"
import {
  headOf,
  isStored,
  lengthOf,
  type OpenStep,
  remember,
  type EndedText,
  type StepCall,
  type StepText
} from "./State.ts"

const stepOf = ({ state }: Out, messageID: string) => state.steps.find((step) => step.messageID === messageID)

const openStepOf = (out: Out, messageID: string): OpenStep | undefined => {
  const step = stepOf(out, messageID)
  return step?.ended === false ? step : undefined
}

const replace = (out: Out, step: OpenStep): void =>
  set(out, { steps: out.state.steps.map((other) => (other.messageID === step.messageID ? step : other)) })

const remove = (out: Out, { messageID }: OpenStep): void =>
  set(out, { steps: out.state.steps.filter((other) => other.messageID !== messageID) })

const withPart = (out: Out, step: OpenStep, part: StepText | StepCall): void => {
  const known = step.parts.some(({ id, kind }) => kind === part.kind && id === part.id)
  const parts = known
    ? step.parts.map((other) => (other.kind === part.kind && other.id === part.id ? part : other))
    : [...step.parts, part]
  replace(out, { ...step, parts })
}

const callOf = (step: OpenStep | undefined, callID: string): StepCall | undefined =>
  step?.parts.find((part): part is StepCall => part.kind === "call" && part.id === callID)

const textsOf = (parts: OpenStep["parts"]): ReadonlyArray<EndedText> =>
  parts.flatMap((part) => (part.kind === "text" && part.said !== undefined && part.said.text !== "" ? [part.said] : []))

const textLength = (said: ReadonlyArray<EndedText>): number => lengthOf(said.map(({ text }) => text))

/** The beginning of the text that the run's row still has room for. */
const shownHead = ({ state: { run } }: Out, step: OpenStep, id: string, text: string): string => {
  if (run === undefined) return ""
  const slot = run.texts.findIndex(({ messageID }) => messageID === step.messageID)
  const part = step.parts.findIndex((other) => other.kind === "text" && other.id === id)
  const before =
    run.texts.slice(0, slot).reduce((sum, { texts }) => sum + textLength(texts), 0) +
    textLength(textsOf(step.parts.slice(0, part)))
  // A code unit takes at least one byte.
  return headOf(text, Math.max(0, textLimit - before))
}

/** Writes the results up to the first call without one. */
const writeResults = (out: Out, step: OpenStep): void => {
  const calls = step.parts.filter((part): part is StepCall => part.kind === "call" && part.made)
  const open = calls.findIndex(({ result }) => result === undefined)
  const ready = open === -1 ? calls : calls.slice(0, open)
  for (const { id, name, result } of ready) {
    if (result === undefined) continue
    out.messages.push({
      role: "tool",
      id: `${step.messageID}:${id}`,
      time: timeText(result.atMs),
      ...ofRun(out),
      content: [result.block],
      name
    })
  }
  const rest = calls.slice(ready.length)
  if (rest.length === 0) remove(out, step)
  else replace(out, { ...step, parts: rest })
}

const contentOf = ({ parts }: OpenStep): ReadonlyArray<Block | LongBlock> =>
  parts.flatMap((part): ReadonlyArray<Block | LongBlock> => {
    if (part.kind === "text")
      return textsOf([part]).map(({ text }) => (isStored(text) ? { type: "text", text } : { type: "text", text }))
    return part.made ? [{ type: "tool_call", tool_call_id: part.id, name: part.name, input: part.input }] : []
  })

/** Ends the step: writes its row, unless it failed before any output, and the available results. */
const end = (out: Out, step: OpenStep, error: StoredError | undefined): void => {
  const content = contentOf(step)
  const { run } = out.state
  if (run !== undefined) {
    const texts = textsOf(step.parts)
    const slots = run.texts.map((slot) => (slot.messageID === step.messageID ? { ...slot, texts } : slot))
    set(out, { run: { ...run, texts: slots } })
  }
  if (error === undefined || content.length > 0) {
    out.messages.push({
      role: "assistant",
      id: step.messageID,
      time: timeText(out.event.created),
      ...ofRun(out),
      content,
      model: modelText(step.model),
      ...(error === undefined ? {} : { error: { code: codeOf(error.type), message: error.message } })
    })
  }
  writeResults(out, { ...step, ended: true })
}

export const started = (out: Out, { data, seq }: EventOfType<"session.next.step.started">): void => {
  const { agent, assistantMessageID: messageID, model } = data
  const { run, steps } = out.state
  set(out, {
    lastStep: { seq, messageID, agent, model },
    steps: [...steps, { messageID, model, ended: false, parts: [] }],
    ...(run === undefined ? {} : { run: { ...run, texts: [...run.texts, { messageID, texts: [] }] } })
  })
}

export const ended = (out: Out, { data }: EventOfType<"session.next.step.ended">): void => {
  const step = openStepOf(out, data.assistantMessageID)
  if (step === undefined) return
  end(out, step, undefined)
  const texts = textsOf(step.parts)
  // In a log without activities each answer is its own `latest.md` (FI-38).
  if (out.state.run === undefined && texts.length > 0) set(out, { latest: texts.map(({ text }) => text) })
}

export const failed = (out: Out, { data }: EventOfType<"session.next.step.failed">): void => {
  const step = openStepOf(out, data.assistantMessageID)
  if (step === undefined) return
  end(out, step, data.error)
  if (out.state.run !== undefined) return
  // Within a run, the end of the run reports the error.
  const { message, type } = data.error
  out.events.push({ type: "error", ...place(out), code: codeOf(type), message })
}

/** Cuts off the open steps: writes their texts so far; their later events have no row. */
export const cutOff = (out: Out, error: StoredError): void => {
  for (const { messageID } of out.state.steps) {
    const open = openStepOf(out, messageID)
    if (open !== undefined) end(out, open, error)
    const rest = stepOf(out, messageID)
    if (rest === undefined) continue
    // Calls without a result no longer hold back the others.
    writeResults(out, {
      ...rest,
      parts: rest.parts.filter((part) => part.kind === "call" && part.result !== undefined)
    })
  }
}

export const textStarted = (out: Out, { data }: EventOfType<"session.next.text.started">): void => {
  const step = openStepOf(out, data.assistantMessageID)
  if (step !== undefined) withPart(out, step, { kind: "text", id: data.textID, said: undefined })
}

export const textEnded = (out: Out, { data, seq }: EventOfType<"session.next.text.ended">): void => {
  const step = openStepOf(out, data.assistantMessageID)
  if (step === undefined) return
  const { text, textID: id } = data
  const remembered = remember(text, seq)
  const head = remembered === text ? text : shownHead(out, step, id, text)
  withPart(out, step, { kind: "text", id, said: { text: remembered, head } })
}

export const inputStarted = (out: Out, { data }: EventOfType<"session.next.tool.input.started">): void => {
  const step = openStepOf(out, data.assistantMessageID)
  if (step === undefined) return
  const { callID: id, name } = data
  withPart(out, step, { kind: "call", id, name, input: undefined, made: false, result: undefined })
}

export const called = (out: Out, { data }: EventOfType<"session.next.tool.called">): void => {
  const step = openStepOf(out, data.assistantMessageID)
  if (step === undefined || callOf(step, data.callID)?.made === true) return
  const { callID: id, input, tool: name } = data
  withPart(out, step, { kind: "call", id, name, input, made: true, result: undefined })
  out.events.push({ type: "tool_call", ...place(out), ...ofRun(out), tool_call_id: id, name, input })
}

/** Records the call's result. Its row follows that of its step and the results of earlier calls. */
const settle = (out: Out, step: OpenStep, call: StepCall, content: Content, isError: boolean): void => {
  const block = {
    type: "tool_result",
    tool_call_id: call.id,
    content: blocksOf(out, content),
    ...(isError ? { is_error: true } : {})
  } as const
  const parts = step.parts.map((part) =>
    part === call ? { ...call, result: { atMs: out.event.created, block } } : part
  )
  const next = { ...step, parts }
  if (step.ended) writeResults(out, next)
  else replace(out, next)
}

export const succeeded = (out: Out, { data }: EventOfType<"session.next.tool.success">): void => {
  const step = stepOf(out, data.assistantMessageID)
  const call = callOf(step, data.callID)
  if (step === undefined || call === undefined || !call.made || call.result !== undefined) return
  // A provider-executed call has its own form of result and no other.
  const value = data.result === undefined ? data.structured : data.result
  settle(out, step, call, toolContent(data.content, value), false)
  out.events.push({ type: "tool_result", ...place(out), ...ofRun(out), tool_call_id: call.id, name: call.name })
}

export const callFailed = (out: Out, { data }: EventOfType<"session.next.tool.failed">): void => {
  const step = stepOf(out, data.assistantMessageID)
  const call = callOf(step, data.callID)
  if (step === undefined || call === undefined || call.result !== undefined) return
  const { message, type } = data.error
  // A call that was never made has no row.
  if (call.made) settle(out, step, call, { blocks: [{ type: "text", text: message }], blobs: [] }, true)
  else replace(out, { ...step, parts: step.parts.filter((part) => part !== call) })
  out.events.push({
    type: "error",
    ...place(out),
    ...ofRun(out),
    tool: call.name,
    tool_call_id: call.id,
    code: codeOf(type),
    message,
    recoverable: true
  })
}
