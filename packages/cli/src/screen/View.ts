/**
 * Folds the events of a session to what the screen shows: blocks that are complete, which are drawn once, and the state of what
 * goes on. Pure. Spec: SC-502, SC-505, SC-507..SC-509 in specs/screen.md.
 */
import type { ActivityID, MessageID } from "@daybook/log/domain/Identifiers"
import type { ModelRef, Tokens } from "@daybook/log/domain/Values"
import { withheldText } from "@daybook/log/domain/Message"
import type { EventIn, EventOfType, LiveEvent, SessionEvent } from "@daybook/log/events/SessionEvents"
import { type Call, commandFailure } from "../render/CallText.ts"
import { compacted, retryLine } from "../render/EventLine.ts"
import { type RunningCall, type Phase, phaseAfter } from "../render/LiveLines.ts"
import { oneLine } from "../render/Plain.ts"
import * as Markdown from "./Markdown.ts"

export interface EndedCall {
  readonly call: Call
  /** Why it failed; undefined if it did not. */
  readonly failure: string | undefined
  readonly milliseconds: number
  readonly output: string
}

/** Something complete. */
export type Block =
  | { readonly type: "prompt"; readonly text: string; readonly files: number }
  | { readonly type: "text"; readonly piece: Markdown.Piece }
  | { readonly type: "thinking"; readonly text: string }
  | ({ readonly type: "call" } & EndedCall)
  | { readonly type: "shell"; readonly command: string; readonly output: string }
  | { readonly type: "note"; readonly text: string; readonly bad?: boolean }
  /** The history goes on after another message; undefined for the beginning. */
  | { readonly type: "moved"; readonly messageID: MessageID | undefined }

export interface OpenText {
  readonly channel: "text" | "thinking"
  /** The whole text so far. */
  readonly said: string
  readonly open: Markdown.Open
}

export interface WaitingPrompt {
  readonly text: string
  readonly delivery: "steer" | "queue"
}

export interface View {
  readonly waiting: ReadonlyMap<MessageID, WaitingPrompt>
  readonly texts: ReadonlyMap<string, OpenText>
  /** Ended texts of the running step: their late deltas are dropped. */
  readonly ended: ReadonlySet<string>
  readonly running: ReadonlyMap<string, RunningCall>
  /** The running activity; undefined while nothing runs. */
  readonly activity: { readonly id: ActivityID; readonly startedAt: number } | undefined
  /** The message of the running step. */
  readonly messageID: MessageID | undefined
  readonly phase: Phase
  /** Tokens of the last request. */
  readonly last: Tokens | undefined
  readonly model: ModelRef | undefined
  readonly agent: string | undefined
  readonly title: string | undefined
  /** The last call that ended, for its whole result. */
  readonly lastCall: EndedCall | undefined
  /** Host commands that have not ended. */
  readonly commands: ReadonlyMap<string, string>
}

export const empty: View = {
  waiting: new Map(),
  texts: new Map(),
  ended: new Set(),
  running: new Map(),
  activity: undefined,
  messageID: undefined,
  phase: { type: "waiting" },
  last: undefined,
  model: undefined,
  agent: undefined,
  title: undefined,
  lastCall: undefined,
  commands: new Map()
}

export type Step = readonly [View, ReadonlyArray<Block>]

type Calling = { readonly assistantMessageID: string; readonly callID: string }
const callKey = (call: Calling) => `${call.assistantMessageID} ${call.callID}`
const textKey = (data: { readonly assistantMessageID: string; readonly textID: string }) =>
  `${data.assistantMessageID} ${data.textID}`
const thinkingKey = (data: { readonly assistantMessageID: string; readonly reasoningID: string }) =>
  `${data.assistantMessageID} ${data.reasoningID}`

const without = <K, V>(map: ReadonlyMap<K, V>, key: K): ReadonlyMap<K, V> => {
  const rest = new Map(map)
  rest.delete(key)
  return rest
}

const note = (text: string, bad = false): Block => ({ type: "note", text, bad })

/** Applies one event, durable or live; returns the blocks that it completes. */
export const step = (view: View, event: SessionEvent | LiveEvent): Step => {
  const [next, blocks] = take(view, event)
  const phase = phaseAfter(event)
  return [phase === undefined ? next : { ...next, phase }, blocks]
}

const take = (view: View, event: SessionEvent | LiveEvent): Step => {
  switch (event.type) {
    case "session.created":
      return [{ ...view, model: event.data.model, agent: event.data.agent, title: event.data.title }, []]
    case "session.next.prompt.admitted":
      return onAdmitted(view, event.data)
    case "session.next.prompt.withdrawn":
      return [{ ...view, waiting: without(view.waiting, event.data.messageID) }, []]
    case "session.next.prompt.promoted":
    case "session.next.prompted":
      return onPromoted(view, event.data)
    case "session.next.activity.started":
      return [
        { ...view, activity: { id: event.data.activityID, startedAt: event.created }, phase: { type: "waiting" } },
        []
      ]
    case "session.next.activity.settled":
      return onSettled(view, event.data)
    case "session.next.step.started":
      return [
        {
          ...view,
          ended: new Set(),
          texts: new Map(),
          running: new Map(),
          messageID: event.data.assistantMessageID,
          model: event.data.model,
          agent: event.data.agent
        },
        []
      ]
    case "session.next.step.ended":
      return [{ ...view, last: event.data.tokens }, []]
    case "session.next.text.delta":
      return onDelta(view, "text", textKey(event.data), event.data.delta)
    case "session.next.text.ended":
      return onTextEnded(view, textKey(event.data), event.data.text)
    case "session.next.reasoning.delta":
      return onDelta(view, "thinking", thinkingKey(event.data), event.data.delta)
    case "session.next.reasoning.ended":
      return onThought(view, thinkingKey(event.data), event.data.text)
    case "session.next.tool.called":
      return onCalled(view, event)
    case "session.next.tool.progress":
      return [onProgress(view, event.data), []]
    case "session.next.tool.success":
    case "session.next.tool.failed":
      return onCallEnded(view, event)
    case "session.next.shell.started":
      return [{ ...view, commands: new Map(view.commands).set(event.data.callID, event.data.command) }, []]
    case "session.next.shell.ended":
      return onCommandEnded(view, event.data)
    case "session.next.agent.switched":
      return [{ ...view, agent: event.data.agent }, [note(`the agent is ${event.data.agent}`)]]
    case "session.next.model.switched": {
      const { id, providerID } = event.data.model
      return [{ ...view, model: event.data.model }, [note(`the model is ${providerID}/${id}`)]]
    }
    case "session.next.renamed":
      return [{ ...view, title: event.data.title }, []]
    case "session.next.moved":
      return [view, [note(`the session works in ${event.data.location.directory}`)]]
    case "session.next.retried":
      return [{ ...view, texts: new Map() }, [note(retryLine(event.data))]]
    case "session.next.compaction.started":
      return [view, [note("making room: summarizing the conversation so far")]]
    case "session.next.compaction.ended":
      return [view, [note(compacted(event.data))]]
    case "session.next.compaction.failed":
      return [view, [note(`nothing was summarized: ${event.data.error.message}`, true)]]
    case "session.next.context.pruned":
      return [
        view,
        [note(event.data.through < 0 ? "all tool results are shown again" : "older tool results are left out")]
      ]
    case "session.next.part.withheld":
      return [view, [note(withheldText(event.data))]]
    case "session.next.leaf.moved":
      return [view, [{ type: "moved", messageID: event.data.messageID }]]
    case "session.next.branch.summarized":
      return [view, [note("the branch that was left is summarized")]]
    default:
      event satisfies
        | EventIn<
            | "about"
            | "prompts"
            | "steps"
            | "requests"
            | "texts"
            | "calls"
            | "compactions"
            | "tree"
            | "decisions"
            | "shells"
          >
        | LiveEvent
      return [view, []]
  }
}

const onAdmitted = (
  view: View,
  { delivery, messageID, prompt }: EventOfType<"session.next.prompt.admitted">["data"]
): Step => [{ ...view, waiting: new Map(view.waiting).set(messageID, { text: prompt.text, delivery }) }, []]

const onPromoted = (
  view: View,
  { messageID, prompt }: Pick<EventOfType<"session.next.prompt.promoted">["data"], "messageID" | "prompt">
): Step => [
  { ...view, waiting: without(view.waiting, messageID) },
  [{ type: "prompt", text: prompt.text, files: prompt.files?.length ?? 0 }]
]

const onSettled = (view: View, { error, outcome }: EventOfType<"session.next.activity.settled">["data"]): Step => {
  const next = { ...view, activity: undefined, running: new Map(), texts: new Map() }
  if (error !== undefined) {
    const advice = error.type === "BudgetExceeded" ? ": /budget --cost USD or --tokens N, then prompt again" : ""
    return [next, [note(`${oneLine(error.message, 2_000)}${advice}`, true)]]
  }
  return [next, outcome === "interrupted" ? [note("stopped; what was written is kept")] : []]
}

const onDelta = (view: View, channel: OpenText["channel"], key: string, delta: string): Step => {
  if (view.ended.has(key)) return [view, []]
  const before = view.texts.get(key) ?? { channel, said: "", open: { ...Markdown.begin, glued: false } }
  const [open, pieces] = channel === "text" ? Markdown.add(before.open, delta) : [before.open, []]
  const texts = new Map(view.texts).set(key, { channel, said: before.said + delta, open })
  return [{ ...view, texts }, pieces.map((piece) => ({ type: "text", piece }))]
}

const onTextEnded = (view: View, key: string, text: string): Step => {
  const { open, said } = view.texts.get(key) ?? { said: "", open: { ...Markdown.begin, glued: false } }
  // Deltas may be missing: then the whole text is shown again.
  const [from, rest] = text.startsWith(said)
    ? [open, text.slice(said.length)]
    : [{ ...Markdown.begin, glued: false }, text]
  const [last, pieces] = Markdown.add(from, rest)
  const end = Markdown.end(last)
  const all = end === undefined ? pieces : [...pieces, end]
  return [
    { ...view, texts: without(view.texts, key), ended: new Set(view.ended).add(key) },
    all.map((piece) => ({ type: "text", piece }))
  ]
}

const onThought = (view: View, key: string, text: string): Step => [
  { ...view, texts: without(view.texts, key), ended: new Set(view.ended).add(key) },
  text.trim() === "" ? [] : [{ type: "thinking", text: text.trim() }]
]

const onCalled = (view: View, { created, data }: EventOfType<"session.next.tool.called">): Step => {
  const call = { tool: data.tool, input: data.input, startedAt: created, output: "" }
  return [{ ...view, running: new Map(view.running).set(callKey(data), call) }, []]
}

const outputOf = (content: EventOfType<"session.next.tool.success">["data"]["content"]): string =>
  content.map((part) => (part.type === "text" ? part.text : `(${part.mime})`)).join("\n")

const onProgress = (view: View, data: EventOfType<"session.next.tool.progress">["data"]): View => {
  const call = view.running.get(callKey(data))
  const output = data.content.findLast((part) => part.type === "text")?.text
  if (call === undefined || output === undefined) return view
  return { ...view, running: new Map(view.running).set(callKey(data), { ...call, output }) }
}

const onCallEnded = (
  view: View,
  event: EventOfType<"session.next.tool.success"> | EventOfType<"session.next.tool.failed">
): Step => {
  const key = callKey(event.data)
  const call = view.running.get(key)
  if (call === undefined) return [view, []]
  const isFailed = event.type === "session.next.tool.failed"
  const ended: EndedCall = {
    call,
    failure: isFailed ? oneLine(event.data.error.message, 400) : commandFailure(call, event.data.structured),
    milliseconds: event.created - call.startedAt,
    output: isFailed ? event.data.error.message : outputOf(event.data.content)
  }
  return [{ ...view, running: without(view.running, key), lastCall: ended }, [{ type: "call", ...ended }]]
}

const onCommandEnded = (view: View, { callID, output }: EventOfType<"session.next.shell.ended">["data"]): Step => {
  const command = view.commands.get(callID)
  const next = { ...view, commands: without(view.commands, callID) }
  return command === undefined ? [next, []] : [next, [{ type: "shell", command, output }]]
}
