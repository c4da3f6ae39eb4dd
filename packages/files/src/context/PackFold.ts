/**
 * Folds events, and the lines of `messages.jsonl` that they wrote, into `PackState`. A change that affects the next
 * request is pending until that request's step begins, so the state is always that of the last step. Pure. Spec: FI-44,
 * FI-57 in specs/files.md.
 */
import { Chunk, Option, Schema } from "effect"
import { nothingPruned } from "@daybook/core/request/Prune"
import { fold as foldFrame } from "@daybook/core/request/RequestFrame"
import * as HistoryPath from "@daybook/log/domain/HistoryPath"
import { TodoItem } from "@daybook/log/domain/Values"
import type { EventIn, EventOfType, SessionEvent } from "@daybook/log/events/SessionEvents"
import type { MessageRow } from "@daybook/transcript/row/Rows"
import { type Line, nothingPending, type PackState, type Swap } from "./PackState.ts"

/** A row, and the size of its line in bytes, newline included. */
export interface WrittenLine {
  readonly row: Pick<MessageRow, "id" | "role">
  readonly bytes: number
}

/** Code units of a summary's beginning. */
const summaryChars = 200

const firstLine = (text: string): string => {
  const line = text.split("\n").find((line) => /[\p{L}\p{N}]/u.test(line) && !line.startsWith("#")) ?? ""
  // Drops half of a surrogate pair.
  return line
    .trim()
    .slice(0, summaryChars)
    .replace(/[\uD800-\uDBFF]$/, "")
}

const prompts: ReadonlySet<string> = new Set(["session.next.prompt.promoted", "session.next.prompted"])

/** The message that a line belongs to, and how a checkpoint treats it. */
const ofMessage = (
  { data, type }: SessionEvent,
  { id, role }: WrittenLine["row"]
): Pick<Line, "kind" | "message" | "call"> => {
  // A prompt may have a line of privileged text before its own.
  if (prompts.has(type) && "messageID" in data) return { kind: "user", message: data.messageID }
  if (role !== "tool") return { kind: type === "session.next.context.updated" ? "told" : "other", message: id }
  const colon = id.indexOf(":")
  return { kind: "tool", message: id.slice(0, colon), call: id.slice(colon + 1) }
}

const withLines = (state: PackState, event: SessionEvent, lines: ReadonlyArray<WrittenLine>): PackState => {
  if (lines.length === 0) return state
  let { bytes: at, lines: line, shown } = state
  for (const { bytes, row } of lines) {
    line += 1
    shown = Chunk.append(shown, { line, at, bytes, seq: event.seq, ...ofMessage(event, row) })
    at += bytes
  }
  return { ...state, lines: line, bytes: at, shown }
}

type Compacted = PackState["pending"]["compacted"][number]

/** Groups lines into ranges without gaps. */
const runsOf = (lines: ReadonlyArray<Line>, { seq, summary }: Compacted): ReadonlyArray<Swap> =>
  lines.reduce<ReadonlyArray<Swap>>((runs, { at, bytes, line }) => {
    const last = runs.at(-1)
    return last?.to === line - 1
      ? [...runs.slice(0, -1), { ...last, to: line, bytes: last.bytes + bytes }]
      : [...runs, { from: line, to: line, at, bytes, seq, summary }]
  }, [])

/** Applies a checkpoint: swaps out earlier lines but kept prompts and context changes since the baseline (CP-49). */
const compact = (state: PackState, compacted: Compacted): PackState => {
  const { baselineSeq } = state.framed.frame
  const [stays, goes] = Chunk.partition(
    state.shown,
    ({ kind, line, seq }) =>
      line <= compacted.lines &&
      !(kind === "told" && seq > baselineSeq) &&
      !(kind === "user" && compacted.firstKeptSeq !== undefined && seq >= compacted.firstKeptSeq) &&
      !(kind !== "told" && compacted.keptSeq !== undefined && seq >= compacted.keptSeq)
  )
  return { ...state, shown: stays, swaps: [...state.swaps, ...runsOf(Chunk.toReadonlyArray(goes), compacted)] }
}

/**
 * The leaf moved: what is off the path takes no effect with the next step, and results are shown again (HP-8). Lines that a
 * checkpoint or an earlier move removed do not come back: the state holds only what is shown.
 */
const leafMoved = (state: PackState, { data, seq }: EventOfType<"session.next.leaf.moved">): PackState => {
  const path = HistoryPath.moved(data.path, seq)
  const { compacted, framed, todo } = state.pending
  const isOn = (at: { readonly seq: number }) => HistoryPath.contains(path, at.seq)
  return {
    ...state,
    pending: {
      framed,
      path,
      prunedSeq: nothingPruned,
      compacted: compacted.filter(isOn),
      ...(todo !== undefined && isOn(todo) ? { todo } : {})
    }
  }
}

/** Drops what is off the path. */
const onPath = (state: PackState, path: HistoryPath.HistoryPath | undefined): PackState => {
  if (path === undefined) return state
  const isOn = (at: { readonly seq: number }) => HistoryPath.contains(path, at.seq)
  const { todo } = state
  return {
    ...state,
    shown: Chunk.filter(state.shown, isOn),
    swaps: state.swaps.filter(isOn),
    todo: todo !== undefined && isOn(todo) ? todo : undefined
  }
}

const stepped = (before: PackState, { data, seq }: EventOfType<"session.next.step.started">): PackState => {
  const { pending } = before
  const state = onPath(before, pending.path)
  const framed = pending.framed.reduce((folded, data) => foldFrame(folded, { data }), state.framed)
  return {
    ...pending.compacted.reduce(compact, { ...state, framed }),
    prunedSeq: pending.prunedSeq ?? state.prunedSeq,
    todo: newer(state.todo, pending.todo),
    step: {
      seq,
      messageID: data.assistantMessageID,
      agent: data.agent,
      model: data.model,
      lines: state.lines
    },
    // All calls of earlier steps have ended.
    calls: [],
    pending: nothingPending
  }
}

const newer = (a: PackState["todo"], b: PackState["todo"]): PackState["todo"] =>
  a === undefined || (b !== undefined && b.seq > a.seq) ? b : a

/** Results of releases up to 0.1 lack `changed`; the call's input tells whether it wrote the list. */
const Items = Schema.Struct({
  items: Schema.Array(TodoItem),
  changed: Schema.optionalWith(Schema.Boolean, { exact: true })
})
const itemsOf = Schema.decodeUnknownOption(Items)

type CallEvent = EventOfType<
  "session.next.tool.input.started" | "session.next.tool.called" | "session.next.tool.success"
>

/** The list is the result of the last `todo` call that wrote it (TO-92). */
const todoCalled = (state: PackState, event: CallEvent): PackState => {
  const { assistantMessageID: message, callID: call } = event.data
  const isIt = (other: PackState["calls"][number]) => other.message === message && other.call === call
  if (event.type === "session.next.tool.input.started") {
    return event.data.name === "todo"
      ? { ...state, calls: [...state.calls, { message, call, seq: event.seq, writes: false }] }
      : state
  }
  const known = state.calls.find(isIt)
  if (known === undefined) return state
  const others = state.calls.filter((other) => !isIt(other))
  if (event.type === "session.next.tool.called") {
    const writes = event.data.tool === "todo" && event.data.input["items"] !== undefined
    return { ...state, calls: [...others, { ...known, writes }] }
  }
  const items = Option.filter(itemsOf(event.data.structured), ({ changed = known.writes }) => changed)
  const todo = newer(
    state.pending.todo,
    Option.getOrUndefined(Option.map(items, ({ items }) => ({ seq: known.seq, items })))
  )
  return { ...state, calls: others, pending: { ...state.pending, ...(todo === undefined ? {} : { todo }) } }
}

/** Applies an event, except for its lines. */
const fold = (state: PackState, event: SessionEvent): PackState => {
  const { pending } = state
  switch (event.type) {
    case "session.next.request.framed":
      return { ...state, pending: { ...pending, framed: [...pending.framed, event.data] } }
    case "session.next.context.pruned":
      return { ...state, pending: { ...pending, prunedSeq: event.data.through } }
    case "session.next.compaction.ended": {
      const { firstKeptSeq, keptSeq, text } = event.data
      const compacted: Compacted = {
        seq: event.seq,
        lines: state.lines,
        summary: firstLine(text),
        ...(firstKeptSeq === undefined ? {} : { firstKeptSeq }),
        ...(keptSeq === undefined ? {} : { keptSeq })
      }
      return { ...state, pending: { ...pending, compacted: [...pending.compacted, compacted] } }
    }
    case "session.next.leaf.moved":
      return leafMoved(state, event)
    case "session.next.step.started":
      return stepped(state, event)
    case "session.next.tool.input.started":
    case "session.next.tool.called":
    case "session.next.tool.success":
      return todoCalled(state, event)
    default:
      event satisfies EventIn<
        "about" | "prompts" | "steps" | "requests" | "texts" | "calls" | "compactions" | "tree" | "decisions" | "shells"
      >
      return state
  }
}

/** The state after an event and the lines that it wrote. */
export const evolve = (state: PackState, event: SessionEvent, lines: ReadonlyArray<WrittenLine> = []): PackState =>
  fold(withLines(state, event, lines), event)
