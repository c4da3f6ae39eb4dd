/**
 * Renders a running turn: deltas as they arrive, completed by the durable events. Any delta may be missing or late; the durable
 * `text.ended` has the whole text, so at the end each text was printed once, in full. Pure: state and event in, state and
 * writes out. Spec: CL-5..CL-8, CL-45..CL-47 in specs/cli.md.
 */
import type { MessageID } from "@daybook/log/domain/Identifiers"
import { goesOn } from "@daybook/log/domain/LongText"
import type { JsonRecord } from "@daybook/log/domain/Values"
import { withheldText } from "@daybook/log/domain/Message"
import type { EventIn, EventOfType, LiveEvent, SessionEvent } from "@daybook/log/events/SessionEvents"
import { type Call, callText, changes, commandFailure, elapsed } from "./CallText.ts"
import { compacted, retryLine } from "./EventLine.ts"
import { type Phase, phaseAfter, type Piece, type RunningCall } from "./LiveLines.ts"
import { oneLine, visible, wholeLength } from "./Plain.ts"
import { plain, type Style } from "./Style.ts"

/** A write: the answer goes to stdout, everything else to stderr. */
export interface Write extends Piece {
  readonly to: "stdout" | "stderr"
}

export interface ActivityEnd {
  readonly outcome: "completed" | "failed" | "interrupted"
  readonly error: { readonly type: string; readonly message: string } | undefined
}

interface OpenText {
  readonly channel: "text" | "reasoning"
  /** The written part. It is only appended to, so that a long text is copied once. */
  readonly written: string
  /** The part not written yet: the prompt is not promoted yet, or half a character waits for its other half. */
  readonly pending: string
}

export interface Options {
  /** The followed prompt; without one, everything is shown. */
  readonly promptID?: MessageID | undefined
  readonly terminal?: boolean
  /** Running calls are shown live, so only their end is a line; reasoning is shown as it arrives. */
  readonly live?: boolean
  readonly reasoning?: boolean
  readonly style?: Style
}

export interface RunView extends Required<Options> {
  /** The prompt has been promoted: later events belong to its turn. */
  readonly promoted: boolean
  readonly settled: ActivityEnd | undefined
  /** The last activity that settled before the promotion. */
  readonly elsewhere: ActivityEnd | undefined
  /** Texts that deltas have started and no durable event has ended, by message and text. */
  readonly open: ReadonlyMap<string, OpenText>
  /** The text that was written to stdout last. */
  readonly current: string | undefined
  /** Ended texts of the latest steps: their late deltas are dropped. */
  readonly ended: ReadonlySet<string>
  /** Whether stdout is at the start of a line. */
  readonly fresh: boolean
  /** Whether anything was written to stdout. */
  readonly spoke: boolean
  /** Values that calls of the running step offer as the answer. */
  readonly offered: ReadonlyMap<string, JsonRecord>
  readonly value: JsonRecord | undefined
  /** Calls that were refused without a person's answer. */
  readonly refused: ReadonlyArray<string>
  /** Calls of the running step that a person decided. */
  readonly decided: ReadonlySet<string>
  /** What the run waits for. */
  readonly phase: Phase
  readonly running: ReadonlyMap<string, RunningCall>
}

/** A view without events. */
export const make = (options: Options = {}): RunView => ({
  promptID: options.promptID,
  terminal: options.terminal ?? false,
  live: options.live ?? false,
  reasoning: options.reasoning ?? true,
  style: options.style ?? plain,
  promoted: options.promptID === undefined,
  settled: undefined,
  elsewhere: undefined,
  open: new Map(),
  current: undefined,
  ended: new Set(),
  fresh: true,
  spoke: false,
  offered: new Map(),
  value: undefined,
  refused: [],
  decided: new Set(),
  phase: { type: options.promptID === undefined ? "waiting" : "queued" },
  running: new Map()
})

type Step = readonly [RunView, ReadonlyArray<Write>]

const textKey = (data: { readonly assistantMessageID: string; readonly textID: string }) =>
  `text ${data.assistantMessageID} ${data.textID}`

const reasoningKey = (data: { readonly assistantMessageID: string; readonly reasoningID: string }) =>
  `reasoning ${data.assistantMessageID} ${data.reasoningID}`

const callKey = (call: { readonly assistantMessageID: string; readonly callID: string }) =>
  `${call.assistantMessageID} ${call.callID}`

/** Applies one event, durable or live, and returns the writes for it. */
export const step = (view: RunView, event: SessionEvent | LiveEvent): Step => {
  const [next, writes] = take(view, event)
  const phase = next.promoted ? phaseAfter(event) : undefined
  return [phase === undefined ? next : { ...next, phase }, writes]
}

/** Writes a line about something beside the run, such as a server, also before the run begins. */
export const beside = (view: RunView, line: string): Step => {
  const [next, writes] = note({ ...view, promoted: true }, `${view.style.bad("✗")} ${line}`)
  return [{ ...next, promoted: view.promoted }, writes]
}

const take = (view: RunView, event: SessionEvent | LiveEvent): Step => {
  switch (event.type) {
    case "session.next.prompt.promoted":
    case "session.next.prompted":
      return event.data.messageID === view.promptID ? flushOpen({ ...view, promoted: true }) : [view, []]
    case "session.next.text.delta":
      return onDelta(view, "text", textKey(event.data), event.data.delta)
    case "session.next.text.ended":
      return onEnded(view, "text", textKey(event.data), event.data.text)
    case "session.next.reasoning.delta":
      return view.live && view.reasoning
        ? onDelta(view, "reasoning", reasoningKey(event.data), event.data.delta)
        : [view, []]
    case "session.next.reasoning.ended":
      return view.reasoning ? onReasoned(view, reasoningKey(event.data), event.data.text) : [view, []]
    case "session.next.tool.called":
      return onCalled(view, event)
    case "session.next.tool.progress":
      return [onProgress(view, event.data), []]
    case "session.next.tool.success":
      return onSuccess(view, event)
    case "session.next.tool.failed":
      return onFailed(view, event)
    case "session.next.retried":
      return note(view, `… ${oneLine(retryLine(event.data), 220)}`)
    case "session.next.compaction.started":
      return note(view, "… making room: summarizing the conversation so far")
    case "session.next.compaction.ended":
      return note(view, `… ${compacted(event.data)}`)
    case "session.next.compaction.failed":
      return note(view, `${view.style.bad("✗")} nothing was summarized: ${oneLine(event.data.error.message, 400)}`)
    case "session.next.context.pruned":
      return note(
        view,
        event.data.through < 0 ? "… all tool results are shown again" : "… older tool results are left out"
      )
    case "session.next.part.withheld":
      return note(view, `… ${oneLine(withheldText(event.data), 400)}`)
    case "session.next.step.started":
      // Ended texts and calls are kept for the running step only; a long activity would accumulate them.
      return [{ ...view, ended: new Set(), offered: new Map(), running: new Map(), decided: new Set() }, []]
    case "session.next.permission.decided":
      return [{ ...view, decided: new Set(view.decided).add(callKey(event.data)) }, []]
    case "session.next.activity.settled":
      return onSettled({ ...view, running: new Map() }, event.data)
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

/** The tool that takes an answer of a given form. */
const valueTool = "structured_output"

const onCalled = (view: RunView, { created, data }: EventOfType<"session.next.tool.called">): Step => {
  // The value is printed at the end, whole.
  if (data.tool === valueTool) return [{ ...view, offered: new Map(view.offered).set(callKey(data), data.input) }, []]
  const call = { tool: data.tool, input: data.input, startedAt: created, output: "" }
  const next = { ...view, running: new Map(view.running).set(callKey(data), call) }
  return view.live ? [next, []] : note(next, `→ ${callText(call)}`)
}

const onProgress = (view: RunView, data: EventOfType<"session.next.tool.progress">["data"]): RunView => {
  const call = view.running.get(callKey(data))
  const output = data.content.findLast((part) => part.type === "text")?.text
  if (call === undefined || output === undefined) return view
  return { ...view, running: new Map(view.running).set(callKey(data), { ...call, output }) }
}

/** The call that an event ends, and the view without the call. */
const ended = (
  view: RunView,
  data: { readonly assistantMessageID: string; readonly callID: string }
): readonly [RunView, RunningCall | undefined] => {
  const running = new Map(view.running)
  const call = running.get(callKey(data))
  running.delete(callKey(data))
  return [{ ...view, running }, call]
}

const took = ({ startedAt }: RunningCall, at: number): string =>
  at - startedAt < 1_000 ? "" : ` (${elapsed(at - startedAt)})`

const onSuccess = (view: RunView, { created, data }: EventOfType<"session.next.tool.success">): Step => {
  const value = view.offered.get(callKey(data)) ?? view.value
  const [next, call] = ended({ ...view, value }, data)
  if (call === undefined) return [next, []]
  const failure = commandFailure(call, data.structured)
  const mark = failure === undefined ? view.style.good("✓") : view.style.bad("✗")
  const why = failure === undefined ? "" : `: ${failure}`
  return note(next, `${mark} ${callText(call)}${why}${took(call, created)}${changeLines(view, call)}`)
}

const changeLines = ({ style }: RunView, call: Call): string =>
  changes(call)
    .map(({ sign, text }) => {
      const line = `  ${sign} ${text}`
      return `\n${sign === "+" ? style.good(line) : sign === "-" ? style.bad(line) : style.dim(line)}`
    })
    .join("")

const onFailed = (view: RunView, { created, data }: EventOfType<"session.next.tool.failed">): Step => {
  const [after, call] = ended(view, data)
  const isRefused = view.promoted && data.error.type === "permission.denied" && !view.decided.has(callKey(data))
  const next = isRefused
    ? { ...after, refused: [...after.refused, call === undefined ? "a call" : callText(call)] }
    : after
  const what = call === undefined ? "" : `${callText(call)}: `
  const time = call === undefined ? "" : took(call, created)
  return note(next, `${view.style.bad("✗")} ${what}${oneLine(data.error.message, 400)}${time}`)
}

const onDelta = (view: RunView, channel: OpenText["channel"], id: string, delta: string): Step => {
  if (view.ended.has(id)) return [view, []]
  const before = view.open.get(id) ?? { channel, written: "", pending: "" }
  const open = new Map(view.open).set(id, { ...before, pending: before.pending + delta })
  return view.promoted ? write({ ...view, open }, id, false) : [{ ...view, open }, []]
}

/** Removes an ended text from the open ones and returns its unwritten part. */
const close = (view: RunView, channel: OpenText["channel"], id: string, text: string) => {
  const { written } = view.open.get(id) ?? { written: "" }
  const open = new Map(view.open)
  open.delete(id)
  // If the first deltas were missed, the written part is not a prefix of the text: then the whole text is written again.
  const known = text.startsWith(written)
  const last: OpenText = known
    ? { channel, written, pending: text.slice(written.length) }
    : { channel, written: "", pending: text }
  return { without: { ...view, open, ended: new Set(view.ended).add(id) }, last, known }
}

const onEnded = (view: RunView, channel: "text", id: string, text: string): Step => {
  const { known, last, without } = close(view, channel, id, text)
  if (!view.promoted) return [without, []]
  const [next, writes] = write(
    { ...without, open: new Map(without.open).set(id, last), current: known ? view.current : undefined },
    id,
    true
  )
  // The ended event may arrive after stdout has begun the next text: the next text's line continues.
  if (next.current !== id) return [{ ...next, open: without.open }, writes]
  if (goesOn(text)) return [{ ...next, open: without.open, current: goingOn }, writes]
  const [closed, breaks] = endLine(next)
  return [{ ...closed, open: without.open }, [...writes, ...breaks]]
}

/** Replaces a text's key: the next text continues where this one ended (EX-R11). */
const goingOn = "goes on"

/** Writes ended reasoning; if it was not shown live, as a block of lines. */
const onReasoned = (view: RunView, id: string, text: string): Step => {
  const { last, without } = close(view, "reasoning", id, text)
  if (!view.promoted || text.trim() === "") return [without, []]
  if (view.live) return [without, [reasoning(`${last.pending.trimEnd()}\n`)]]
  return note(without, visible(text.trim()).replaceAll(/^/gm, "> "))
}

const reasoning = (text: string): Write => ({ to: "stderr", channel: "reasoning", text: visible(text) })

/** How much of an unfinished text can be written unchanged: not half a surrogate pair. */
const rawLength = (text: string): number => text.length - (/[\ud800-\udbff]$/.test(text) ? 1 : 0)

/** Writes the pending part of the text; without `whole`, it holds back a possibly half character or line break. */
const write = (view: RunView, id: string, whole: boolean): Step => {
  const text = view.open.get(id)
  if (text === undefined) return [view, []]
  const shown = view.terminal || text.channel === "reasoning"
  const end = whole ? text.pending.length : shown ? wholeLength(text.pending) : rawLength(text.pending)
  const ready = text.pending.slice(0, end)
  if (ready === "") return [view, []]
  const open = new Map(view.open).set(id, {
    ...text,
    written: text.written + ready,
    pending: text.pending.slice(end)
  })
  if (text.channel === "reasoning") return [{ ...view, open }, [reasoning(ready)]]
  const here = view.current === id || view.current === goingOn
  const [at, breaks] = here ? ([view, []] as const) : endLine(view)
  // An empty line between two texts; none before the first.
  const gap = !here && at.spoke && text.written === "" ? [said("\n")] : []
  return [
    { ...at, open, current: id, fresh: ready.endsWith("\n"), spoke: true },
    [...breaks, ...gap, said(view.terminal ? visible(ready) : ready)]
  ]
}

const said = (text: string): Write => ({ to: "stdout", channel: "text", text })

/** Writes the deltas that arrived before the promotion: they belong to this turn unless their text has ended. */
const flushOpen = (view: RunView): Step =>
  [...view.open.keys()].reduce<Step>(
    ([state, writes], id) => {
      const [next, more] = write(state, id, false)
      return [next, [...writes, ...more]]
    },
    [view, []]
  )

const endLine = (view: RunView): Step =>
  view.fresh ? [{ ...view, current: undefined }, []] : [{ ...view, fresh: true, current: undefined }, [said("\n")]]

/** A line about the turn. On a terminal, which shows both streams, the answer's line is ended first. */
const note = (view: RunView, text: string): Step => {
  if (!view.promoted) return [view, []]
  const [next, breaks] = view.terminal ? endLine(view) : ([view, []] as const)
  return [next, [...breaks, { to: "stderr", channel: "note", text: `${text}\n` }]]
}

const onSettled = (
  view: RunView,
  data: {
    readonly outcome: ActivityEnd["outcome"]
    readonly error?: { readonly type: string; readonly message: string }
  }
): Step => {
  const settled = { outcome: data.outcome, error: data.error }
  if (!view.promoted) return [{ ...view, elsewhere: settled }, []]
  // A prompt has one activity; without a prompt, the last activity counts.
  if (view.settled !== undefined && view.promptID !== undefined) return [view, []]
  const [next, writes] = endLine(view)
  return [{ ...next, settled }, writes]
}
