/**
 * Turns a session's durable events and live deltas into the rows and the text of one run, or of all. Rows are those of
 * the fold; the text between them arrives as deltas (`Deltas.ts`). Pure. Spec: SO-20..SO-25 in specs/socket.md (FR-7,
 * FR-9, FL-5).
 */
import { MessageID } from "@daybook/log/domain/Identifiers"
import type { EventIn, EventOfType, LiveEvent, SessionEvent } from "@daybook/log/events/SessionEvents"
import type { OpenText } from "@daybook/log/log/EventLog"
import * as Deltas from "./Deltas.ts"
import * as Fold from "./Fold.ts"
import type { EventRow, RunID } from "./row/Rows.ts"

export interface State {
  readonly fold: Fold.State
  readonly deltas: Deltas.State
  /** The reasoning of the run, by the same rules as its text. */
  readonly reasoning: Deltas.State
  /** The run that is followed; if undefined, the rows of all are emitted, each as in the file. */
  readonly followed: Followed | undefined
  /** The run whose text is emitted now. */
  readonly current: Followed | undefined
  /** The emitted text: as much as a message may show, and its whole length. */
  readonly said: Said
}

interface Said {
  readonly head: string
  readonly length: number
}

const nothing: Said = { head: "", length: 0 }

/** A run, and the client's id for it if it has one. */
export interface Followed {
  readonly run: RunID
  readonly id: string | undefined
}

/** A piece of a run's text or reasoning, of any length. */
export interface TextItem {
  readonly type: "text" | "reasoning"
  readonly of: Followed
  readonly text: string
}

/** An output: a piece of text, or a row and its event. */
export type Item = TextItem | { readonly type: "row"; readonly row: EventRow; readonly event: SessionEvent }

export type Step = readonly [State, ReadonlyArray<Item>]

/** Starts at a sequence number at which no run is open, from the session's state there. */
export const make = (fold: Fold.State, followed?: Followed): State => ({
  fold,
  deltas: Deltas.initial,
  reasoning: Deltas.initial,
  followed,
  current: undefined,
  said: nothing
})

/** Hears deltas from now on, and emits the given beginnings of open texts (`Deltas.hearing`). */
export const hearing = (state: State, soFar: ReadonlyArray<OpenText>): readonly [State, ReadonlyArray<TextItem>] => {
  const of = (type: OpenText["type"]) => soFar.filter((text) => text.type === type)
  const [deltas, text] = Deltas.hearing(state.deltas, of("text"))
  const [reasoning, thought] = Deltas.hearing(state.reasoning, of("reasoning"))
  return telling({ ...state, deltas, reasoning }, text, thought)
}

/** Emits pieces of the current run's text and reasoning. */
const telling = (state: State, text: string, thought: string): readonly [State, ReadonlyArray<TextItem>] => {
  const { current: of, said } = state
  if (of === undefined) return [state, []]
  return [
    text === "" ? state : { ...state, said: saying(said, text) },
    [
      ...(thought === "" ? [] : [{ type: "reasoning" as const, of, text: thought }]),
      ...(text === "" ? [] : [{ type: "text" as const, of, text }])
    ]
  ]
}

/** Takes one event and returns the output. */
export const step = (state: State, event: SessionEvent | LiveEvent): Step => {
  const { text: textEvent, thought: thoughtEvent } = textsOf(event)
  const [deltas, text] = textEvent === undefined ? [state.deltas, ""] : Deltas.step(state.deltas, textEvent)
  const [reasoning, thought] =
    thoughtEvent === undefined ? [state.reasoning, ""] : Deltas.step(state.reasoning, thoughtEvent)
  const [heard, pieces] = telling({ ...state, deltas, reasoning }, text, thought)
  if (!("seq" in event)) return [heard, pieces]
  const items: Array<Item> = [...pieces]
  const { events, state: fold } = Fold.evolve(state.fold, withoutText(event))
  let next: State = { ...heard, fold }
  for (const bare of events) {
    if (state.followed !== undefined && bare.run !== state.followed.run) continue
    const row = bare.type === "message" ? messageOf(bare, next.said) : bare
    next = onRow(next, row)
    items.push({ type: "row", row, event })
  }
  return [next, items]
}

interface Texts {
  /** The event as one of the run's text. */
  readonly text?: Deltas.TextEvent
  /** The event as one of its reasoning. */
  readonly thought?: Deltas.TextEvent
}

/** Reads an event as one of text, of reasoning, or of both. */
const textsOf = (event: SessionEvent | LiveEvent): Texts => {
  switch (event.type) {
    case "session.next.step.started":
      return { text: event, thought: event }
    case "session.next.text.started":
    case "session.next.text.delta":
    case "session.next.text.ended":
      return { text: event }
    case "session.next.reasoning.started":
    case "session.next.reasoning.delta":
    case "session.next.reasoning.ended":
      return { thought: asText(event) }
    default:
      event satisfies
        | EventIn<
            "about" | "prompts" | "steps" | "requests" | "calls" | "compactions" | "tree" | "decisions" | "shells"
          >
        | LiveEvent
      return {}
  }
}

type ReasoningEvent =
  | EventOfType<"session.next.reasoning.started" | "session.next.reasoning.ended">
  | Extract<LiveEvent, { readonly type: "session.next.reasoning.delta" }>

/** Converts reasoning to text. Each part is its own message, so that an empty line separates them. */
const asText = (event: ReasoningEvent): Deltas.TextEvent => {
  const { reasoningID: textID } = event.data
  const ids = { textID, assistantMessageID: MessageID.make(textID, { disableValidation: true }) }
  switch (event.type) {
    case "session.next.reasoning.started":
      return { ...event, type: "session.next.text.started", data: ids }
    case "session.next.reasoning.ended":
      return { ...event, type: "session.next.text.ended", data: { ...ids, text: event.data.text } }
    case "session.next.reasoning.delta":
      return { ...event, type: "session.next.text.delta", data: { ...ids, delta: event.data.delta } }
    default:
      return event satisfies never
  }
}

/** Removes the text: a follower's fold makes event rows only, and need not hold the texts once per client. */
const withoutText = (event: SessionEvent): SessionEvent =>
  event.type === "session.next.text.ended" ? { ...event, data: { ...event.data, text: "" } } : event

const saying = ({ head, length }: Said, text: string): Said => ({
  // A code unit takes at least one byte.
  head: head.length < Fold.textLimit ? head + text.slice(0, Fold.textLimit + 1 - head.length) : head,
  length: length + text.length
})

type MessageRow = Extract<EventRow, { readonly type: "message" }>

/** A run's `message` row with the emitted text, as far as a message may show it. */
const messageOf = (row: MessageRow, { head, length }: Said): MessageRow => {
  const text = Fold.clip(head)
  return { ...row, content: [{ type: "text", text }], ...(text.length === length ? {} : { truncated: true, length }) }
}

const onRow = (state: State, row: EventRow): State => {
  if (row.type === "start") {
    return {
      ...state,
      deltas: Deltas.begin(state.deltas),
      reasoning: Deltas.begin(state.reasoning),
      current: { run: row.run, id: row.client_id },
      said: nothing
    }
  }
  if (row.type !== "done") return state
  const [deltas, reasoning] = [Deltas.end(state.deltas), Deltas.end(state.reasoning)]
  return { ...state, deltas, reasoning, current: undefined, said: nothing }
}
