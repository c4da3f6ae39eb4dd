/**
 * A running turn on a terminal: deltas as they come, completed by the durable events behind them. Deltas are a courtesy:
 * any of them may be missing or late, and the durable `text.ended` tells the whole text, so that what is printed at the
 * end is each text once, in full. Pure: a state, an item, what to write. Spec: CL-5..CL-8 in specs/cli.md.
 */
import type { EventOfType, JsonRecord, LiveEvent, MessageID, SessionEvent } from "@daybook/core"
import { Predicate } from "effect"
import { compacted } from "./CompactionText.ts"
import { nextTry } from "./EventLine.ts"
import { oneLine, visible } from "./Plain.ts"

/** What to write where: the answer goes to stdout, everything about it to stderr. */
export interface Write {
  readonly to: "stdout" | "stderr"
  readonly text: string
}

/** How the prompt's activity ended. */
export interface Settled {
  readonly outcome: "completed" | "failed" | "interrupted"
  readonly error: { readonly type: string; readonly message: string } | undefined
}

interface OpenText {
  /** What was written of it so far. Only ever appended to, so that a long text costs its length once. */
  readonly written: string
  /** Deltas not yet written: the prompt is not visible yet, or half a surrogate pair waits for its other half. */
  readonly pending: string
}

const nothing: OpenText = { written: "", pending: "" }

export interface TurnView {
  /** The prompt that is followed; without one, everything is shown. */
  readonly promptID: MessageID | undefined
  readonly terminal: boolean
  /** The prompt has become visible: what follows is its turn. */
  readonly promoted: boolean
  readonly settled: Settled | undefined
  /** The last activity that settled while the prompt was not visible yet. */
  readonly elsewhere: Settled | undefined
  /** Texts that deltas began and no `text.ended` has ended, by message and text. */
  readonly open: ReadonlyMap<string, OpenText>
  /** The text that stdout stands in. */
  readonly current: string | undefined
  /** Texts of the latest steps that have ended: a late delta of theirs is dropped. */
  readonly ended: ReadonlySet<string>
  /** Whether stdout stands at the start of a line. */
  readonly fresh: boolean
  /** Something was written to stdout. */
  readonly spoke: boolean
  /** Values that calls of the running step give as the answer, and the one that was accepted. */
  readonly offered: ReadonlyMap<string, JsonRecord>
  readonly value: JsonRecord | undefined
}

/** A view that has seen nothing yet. */
export const make = (promptID: MessageID | undefined, terminal: boolean): TurnView => ({
  promptID,
  terminal,
  promoted: promptID === undefined,
  settled: undefined,
  elsewhere: undefined,
  open: new Map(),
  current: undefined,
  ended: new Set(),
  fresh: true,
  spoke: false,
  offered: new Map(),
  value: undefined
})

type Step = readonly [TurnView, ReadonlyArray<Write>]

const key = (data: { readonly assistantMessageID: string; readonly textID: string }) =>
  `${data.assistantMessageID} ${data.textID}`

/** Takes one event, durable or live, and says what to write for it. */
export const step = (view: TurnView, event: SessionEvent | LiveEvent): Step => {
  switch (event.type) {
    case "session.next.prompt.promoted":
    case "session.next.prompted":
      return event.data.messageID === view.promptID ? flushOpen({ ...view, promoted: true }) : [view, []]
    case "session.next.text.delta":
      return onDelta(view, key(event.data), event.data.delta)
    case "session.next.text.ended":
      return onEnded(view, key(event.data), event.data.text)
    case "session.next.tool.called":
      return onCalled(view, event.data)
    case "session.next.tool.success":
      return [{ ...view, value: view.offered.get(callKey(event.data)) ?? view.value }, []]
    case "session.next.tool.failed":
      return note(view, `✗ ${oneLine(event.data.error.message, 140)}`)
    case "session.next.retried":
      return note(
        view,
        `… attempt ${event.data.attempt} failed, ${nextTry(event.data)}: ${oneLine(event.data.error.message, 140)}`
      )
    case "session.next.compaction.started":
      return note(view, "… making room: summarising the conversation so far")
    case "session.next.compaction.ended":
      return note(view, `… ${compacted(event.data)}`)
    case "session.next.compaction.failed":
      return note(view, `✗ nothing was summarised: ${oneLine(event.data.error.message, 400)}`)
    case "session.next.context.pruned":
      return note(
        view,
        event.data.through < 0 ? "… all tool results are shown again" : "… older tool results are left out"
      )
    case "session.next.step.started":
      // Ended texts and calls are remembered for the running step only, or a long activity would collect them.
      return [{ ...view, ended: new Set(), offered: new Map() }, []]
    case "session.next.activity.settled":
      return onSettled(view, event.data)
    default:
      return [view, []]
  }
}

/** The tool that takes an answer of a given form. */
const valueTool = "structured_output"

const callKey = (call: { readonly assistantMessageID: string; readonly callID: string }) =>
  `${call.assistantMessageID} ${call.callID}`

const onCalled = (view: TurnView, data: EventOfType<"session.next.tool.called">["data"]): Step => {
  // The value is told at the end, whole.
  if (data.tool === valueTool) return [{ ...view, offered: new Map(view.offered).set(callKey(data), data.input) }, []]
  return note(
    view,
    `→ ${data.tool} ${oneLine(data.tool === "question" ? asked(data.input) : JSON.stringify(data.input), 100)}`
  )
}

/** The questions of a call, in words. */
const asked = (input: JsonRecord): string => {
  const { questions } = input
  const words = Array.isArray(questions)
    ? questions.map((item) => (Predicate.hasProperty(item, "question") ? item.question : ""))
    : []
  return words.join(" ")
}

const onDelta = (view: TurnView, id: string, delta: string): Step => {
  if (view.ended.has(id)) return [view, []]
  const before = view.open.get(id) ?? nothing
  const open = new Map(view.open).set(id, { ...before, pending: before.pending + delta })
  return view.promoted ? write({ ...view, open }, id, false) : [{ ...view, open }, []]
}

const onEnded = (view: TurnView, id: string, text: string): Step => {
  const { written } = view.open.get(id) ?? nothing
  const open = new Map(view.open)
  open.delete(id)
  const ended = new Set(view.ended).add(id)
  if (!view.promoted) return [{ ...view, open, ended }, []]
  // The written part may be no beginning of the text when its first deltas were missed: then the whole is told anew.
  const known = text.startsWith(written)
  const last = known ? { written, pending: text.slice(written.length) } : { ...nothing, pending: text }
  const [next, writes] = write(
    { ...view, open: new Map(open).set(id, last), ended, current: known ? view.current : undefined },
    id,
    true
  )
  // The ended event may come while stdout stands in the next text already: that one's line goes on.
  const [closed, breaks] = next.current === id ? endLine(next) : ([next, []] as const)
  return [{ ...closed, open }, [...writes, ...breaks]]
}

/** Writes what of the text is pending; without `whole`, half a surrogate pair at its end is held back. */
const write = (view: TurnView, id: string, whole: boolean): Step => {
  const text = view.open.get(id)
  if (text === undefined) return [view, []]
  const last = text.pending.charCodeAt(text.pending.length - 1)
  const end = !whole && last >= 0xd800 && last <= 0xdbff ? text.pending.length - 1 : text.pending.length
  const ready = text.pending.slice(0, end)
  if (ready === "") return [view, []]
  const [at, breaks] = view.current === id ? ([view, []] as const) : endLine(view)
  // An empty line between two texts; none before the first.
  const gap = view.current !== id && at.spoke && text.written === "" ? [{ to: "stdout", text: "\n" } as const] : []
  return [
    {
      ...at,
      open: new Map(at.open).set(id, { written: text.written + ready, pending: text.pending.slice(end) }),
      current: id,
      fresh: ready.endsWith("\n"),
      spoke: true
    },
    [...breaks, ...gap, { to: "stdout", text: view.terminal ? visible(ready) : ready }]
  ]
}

/** Deltas that came before the promotion was seen belong to this turn unless their text has ended. */
const flushOpen = (view: TurnView): Step =>
  [...view.open.keys()].reduce<Step>(
    ([state, writes], id) => {
      const [next, more] = write(state, id, false)
      return [next, [...writes, ...more]]
    },
    [view, []]
  )

const endLine = (view: TurnView): Step =>
  view.fresh
    ? [{ ...view, current: undefined }, []]
    : [{ ...view, fresh: true, current: undefined }, [{ to: "stdout", text: "\n" }]]

/** A line about the turn. On a terminal, where both streams meet, the answer's line is ended first. */
const note = (view: TurnView, text: string): Step => {
  if (!view.promoted) return [view, []]
  const [next, breaks] = view.terminal ? endLine(view) : ([view, []] as const)
  return [next, [...breaks, { to: "stderr", text: `${text}\n` }]]
}

const onSettled = (
  view: TurnView,
  data: { readonly outcome: Settled["outcome"]; readonly error?: { readonly type: string; readonly message: string } }
): Step => {
  const settled = { outcome: data.outcome, error: data.error }
  if (!view.promoted) return [{ ...view, elsewhere: settled }, []]
  // One prompt has one activity; without a prompt, the last one counts.
  if (view.settled !== undefined && view.promptID !== undefined) return [view, []]
  const [next, writes] = endLine(view)
  return [{ ...next, settled }, writes]
}
