/**
 * Turns a session's durable events and live deltas into the rows and the text of one run, or of all. Rows are those of
 * the fold; the text between them arrives as deltas. Pure. Spec: SO-20..SO-25 in specs/socket.md (FR-7, FR-9, FL-5,
 * CL-5..CL-8).
 */
import { MessageID } from "@daybook/log/domain/Identifiers"
import type { EventIn, EventOfType, LiveEvent, SessionEvent } from "@daybook/log/events/SessionEvents"
import * as Fold from "./Fold.ts"
import { separator } from "./fold/State.ts"
import type { EventRow, RunID } from "./row/Rows.ts"
import { isHigh } from "@daybook/log/domain/LongText"

// The text of one run as deltas: live deltas, completed by the stored text. At every moment, the emitted text is a
// beginning of the run's text; at the end it is all of the text. The live deltas of a text stand between its stored
// events and are a beginning of it, as `EventLog.follow` gives them.

interface Text {
  readonly message: string
  /** Whether all of its deltas so far were emitted. */
  readonly heard: boolean
  /** Emitted code units. */
  readonly told: number
  /** Half a surrogate pair, held until its other half comes. */
  readonly half: string
  /** The whole text, once it has ended. */
  readonly whole: string | undefined
}

export interface DeltaState {
  /** Whether the run has started and not ended. */
  readonly open: boolean
  /** Started texts that are not yet emitted whole, in order. */
  readonly texts: ReadonlyMap<string, Text>
  /** The message of the last emitted text. */
  readonly last: string | undefined
}

/** An event that the text of a run depends on. */
export type TextEvent =
  | EventOfType<"session.next.text.started" | "session.next.text.ended">
  | Extract<LiveEvent, { readonly type: "session.next.text.delta" }>

/** The state before anything was emitted. */
export const initial: DeltaState = { open: false, texts: new Map(), last: undefined }

type DeltaStep = readonly [DeltaState, string]

/** Starts the run. */
export const begin = (): DeltaState => ({ ...initial, open: true })

/** Takes one event and returns the output. */
export const deltaStep = (state: DeltaState, event: TextEvent): DeltaStep => {
  if (!state.open) return [state, ""]
  const { assistantMessageID: message, textID: id } = event.data
  const text = state.texts.get(id)
  const fresh: Text = { message, heard: true, told: 0, half: "", whole: undefined }
  switch (event.type) {
    case "session.next.text.started":
      return [withText(state, id, fresh), ""]
    case "session.next.text.delta":
      if (text === undefined || !text.heard || text.whole !== undefined) return [state, ""]
      // Of two concurrent texts, the later one is emitted whole after the first.
      if (frontOf(state) !== id) return [withText(state, id, { ...text, heard: false }), ""]
      return tell(state, id, text, text.half + event.data.delta, false)
    case "session.next.text.ended":
      return flush([withText(state, id, { ...fresh, ...text, whole: event.data.text }), ""])
    default:
      return event satisfies never
  }
}

const withText = (state: DeltaState, id: string, text: Text): DeltaState => ({
  ...state,
  texts: new Map(state.texts).set(id, text)
})

const frontOf = (state: DeltaState): string | undefined => state.texts.keys().next().value

/** Emits ended texts, up to the first that has not ended. */
const flush = ([state, told]: DeltaStep): DeltaStep => {
  const id = frontOf(state)
  const text = id === undefined ? undefined : state.texts.get(id)
  if (id === undefined || text?.whole === undefined) return [state, told]
  const [next, more] = tell(state, id, text, text.whole.slice(text.told), true)
  const texts = new Map(next.texts)
  texts.delete(id)
  return flush([{ ...next, texts }, told + more])
}

const tell = (state: DeltaState, id: string, text: Text, ready: string, whole: boolean): DeltaStep => {
  const cut = !whole && isHigh(ready.charCodeAt(ready.length - 1)) ? ready.length - 1 : ready.length
  const now = ready.slice(0, cut)
  const told = withText(state, id, { ...text, told: text.told + now.length, half: ready.slice(cut) })
  if (now === "") return [told, ""]
  const gap = state.last === undefined || state.last === text.message ? "" : separator
  return [{ ...told, last: text.message }, gap + now]
}

export interface State {
  readonly fold: Fold.State
  readonly deltas: DeltaState
  /** The reasoning of the run, by the same rules as its text. */
  readonly reasoning: DeltaState
  /** The run that is followed; if undefined, the rows of all are emitted, each as in the file. */
  readonly followed: Followed | undefined
  /** The run whose text is emitted now. */
  readonly current: Followed | undefined
  /** The emitted text: as much as a message may show, and its whole length. */
  readonly said: TextMark
}

type TextMark = { readonly head: string; readonly length: number }

const nothing: TextMark = { head: "", length: 0 }

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
  deltas: initial,
  reasoning: initial,
  followed,
  current: undefined,
  said: nothing
})

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
  const [deltas, text] = textEvent === undefined ? [state.deltas, ""] : deltaStep(state.deltas, textEvent)
  const [reasoning, thought] =
    thoughtEvent === undefined ? [state.reasoning, ""] : deltaStep(state.reasoning, thoughtEvent)
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
  readonly text?: TextEvent
  readonly thought?: TextEvent
}

const textsOf = (event: SessionEvent | LiveEvent): Texts => {
  switch (event.type) {
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
const asText = (event: ReasoningEvent): TextEvent => {
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

const saying = ({ head, length }: TextMark, text: string): TextMark => ({
  // A code unit takes at least one byte.
  head: head.length < Fold.textLimit ? head + text.slice(0, Fold.textLimit + 1 - head.length) : head,
  length: length + text.length
})

type MessageRow = Extract<EventRow, { readonly type: "message" }>

/** A run's `message` row with the emitted text, as far as a message may show it. */
const messageOf = (row: MessageRow, { head, length }: TextMark): MessageRow => {
  const text = Fold.clip(head)
  return { ...row, content: [{ type: "text", text }], ...(text.length === length ? {} : { truncated: true, length }) }
}

const onRow = (state: State, row: EventRow): State => {
  if (row.type === "start") {
    return {
      ...state,
      deltas: begin(),
      reasoning: begin(),
      current: { run: row.run, id: row.client_id },
      said: nothing
    }
  }
  if (row.type !== "done") return state
  return { ...state, deltas: initial, reasoning: initial, current: undefined, said: nothing }
}
