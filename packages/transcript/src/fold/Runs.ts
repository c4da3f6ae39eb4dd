/** Folds runs: an activity from start to end, with its text. Pure. Spec: FI-20..FI-22, FI-30..FI-33. */
import { isAnswerProblem } from "@daybook/log/domain/AnswerProblem"
import { modelText, type Prompt, type StoredError } from "@daybook/log/domain/Values"
import type { EventOfType } from "@daybook/log/events/SessionEvents"
import { agentDirectory, runOf } from "../row/Rows.ts"
import { clip, codeOf, type Out, place, set } from "./Out.ts"
import { lengthOf, type OpenRun, type EndedText, separator } from "./State.ts"
import * as Steps from "./Steps.ts"

const between: EndedText = { text: separator, head: separator }

/** The text of a run: the texts of its messages in order, with an empty line between messages (FR-7). */
const textsOf = ({ texts }: OpenRun): ReadonlyArray<EndedText> =>
  texts.filter((slot) => slot.texts.length > 0).flatMap((slot, n) => (n === 0 ? slot.texts : [between, ...slot.texts]))

/** The beginning of the text, up to the first text that is not held whole. */
const beginning = (texts: ReadonlyArray<EndedText>): string => {
  const cut = texts.findIndex(({ head, text }) => head.length < text.length)
  return (cut === -1 ? texts : texts.slice(0, cut + 1)).map(({ head }) => head).join("")
}

const cutOff: StoredError = { type: "process.ended", message: "the step was cut off" }

/** Starts a run once the id that names it is known. */
const start = (out: Out, activityID: string, of: string, client: Prompt["client"]): void => {
  const { address, directory, model, root, sessionID } = out.state
  const id = runOf(sessionID, of)
  const cwd = client?.cwd ?? agentDirectory(root, directory)
  const run: OpenRun = { id, activityID, clientID: client?.id, texts: [] }
  out.events.push({
    type: "start",
    ...place(out),
    run: id,
    ...(client === undefined ? {} : { client_id: client.id }),
    scope: address?.scope ?? "private",
    cwd,
    ...(model === undefined ? {} : { model: modelText(model) })
  })
  set(out, {
    opening: undefined,
    run,
    cwd,
    lastRun: id,
    runStartedPosition: out.event.position,
    ...(client === undefined ? {} : { clientID: client.id })
  })
}

/** Begins the run of a started activity: named after the prompt that follows directly, else after the activity. */
export const begin = (out: Out): void => {
  const { opening } = out.state
  if (opening === undefined) return
  const { event } = out
  if (event.type === "session.next.prompt.promoted" || event.type === "session.next.prompted")
    start(out, opening, event.data.messageID, event.data.prompt.client)
  else start(out, opening, opening, undefined)
}

const done = (out: Out, { clientID, id }: OpenRun, status: "ok" | "error" | "cancelled"): void => {
  out.events.push({
    type: "done",
    ...place(out),
    run: id,
    ...(clientID === undefined ? {} : { client_id: clientID }),
    status
  })
  const word = status === "ok" ? "done" : status === "error" ? "error" : "idle"
  set(out, { run: undefined, word, lastStatus: status })
}

const failed = (out: Out, run: OpenRun, { message, type }: StoredError): void => {
  out.events.push({ type: "error", ...place(out), run: run.id, code: codeOf(type), message })
  done(out, run, "error")
}

export const activityStarted = (out: Out, { data }: EventOfType<"session.next.activity.started">): void => {
  // No process works on two activities, so the earlier one has ended.
  Steps.cutOff(out, cutOff)
  const { run } = out.state
  if (run !== undefined)
    failed(out, run, { type: "process.ended", message: "the process that worked on this ended before it was done" })
  set(out, { opening: data.activityID, word: "active" })
  // A resume has no prompt to wait for.
  if (data.trigger === "resume") start(out, data.activityID, data.activityID, undefined)
}

export const activitySettled = (out: Out, { data }: EventOfType<"session.next.activity.settled">): void => {
  if (out.state.run?.activityID !== data.activityID) return
  Steps.cutOff(out, data.error ?? cutOff)
  const { run } = out.state
  if (run === undefined) return
  const error = data.error ?? { type: "unknown", message: "the run failed" }
  if (data.outcome === "failed" || (data.outcome === "interrupted" && error.type === "process.ended"))
    return failed(out, run, error)
  if (data.outcome === "interrupted") return done(out, run, "cancelled")
  const texts = textsOf(run)
  const latest = texts.map(({ text }) => text)
  const length = lengthOf(latest)
  const shown = clip(beginning(texts))
  out.events.push({
    type: "message",
    ...place(out),
    run: run.id,
    role: "assistant",
    content: [{ type: "text", text: shown }],
    ...(shown.length === length ? {} : { truncated: true, length }),
    ...(isAnswerProblem(data.error) ? { problem: data.error.message } : {})
  })
  set(out, { latest })
  done(out, run, "ok")
}

/** A withdrawn prompt has a run that ends without a start (DC-19). */
export const withdrawn = (out: Out, messageID: string): void => {
  out.events.push({ type: "done", ...place(out), run: runOf(out.state.sessionID, messageID), status: "cancelled" })
}
