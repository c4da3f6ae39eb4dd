/**
 * Converts durable events and live deltas into frames, for one run or all. Rows come from the fold that the files use,
 * the text between them from `Deltas.ts`. Pure. Spec: SO-20..SO-25 in specs/socket.md (FR-7, FR-9, FL-5, IX-6).
 */
import { type EventRow, Fold, type RunID, shownDirectory } from "@daybook/files"
import { MessageID } from "@daybook/log/domain/Identifiers"
import type { Session } from "@daybook/log/domain/Message"
import type { LiveEvent, SessionEvent } from "@daybook/log/events/SessionEvents"
import type { OpenText } from "@daybook/log/log/EventLog"
import type { Frame } from "../wire/Wire.ts"
import * as Deltas from "./Deltas.ts"

export interface State {
  readonly fold: Fold.State
  readonly deltas: Deltas.State
  /** The reasoning of the run, by the same rules as its text. */
  readonly reasoning: Deltas.State
  /** The run that is followed, as frames; if undefined, all rows are emitted as in the file. */
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

/** An output: a piece of a run's text or reasoning of any length, or a frame and the position of its event. */
export type Told =
  | { readonly type: "text" | "reasoning"; readonly of: Followed; readonly text: string }
  | { readonly type: "frame"; readonly frame: Frame; readonly position: number }

export type Step = readonly [State, ReadonlyArray<Told>]

/** Starts at a sequence number at which no run is open, from the session's state there. */
export const make = (fold: Fold.State, followed?: Followed): State => ({
  fold,
  deltas: Deltas.make(Number.MAX_SAFE_INTEGER),
  reasoning: Deltas.make(Number.MAX_SAFE_INTEGER),
  followed,
  current: undefined,
  said: nothing
})

/** Hears deltas from now on, and emits the given beginnings of open texts (`Deltas.hearing`). */
export const hearing = (state: State, heardAfter: number, soFar: ReadonlyArray<OpenText>): Step => {
  const of = (type: OpenText["type"]) => soFar.filter((text) => text.type === type)
  const [deltas, text] = Deltas.hearing(state.deltas, heardAfter, of("text"))
  const [reasoning, thought] = Deltas.hearing(state.reasoning, heardAfter, of("reasoning"))
  return telling({ ...state, deltas, reasoning }, text, thought)
}

/** Emits pieces of the current run's text and reasoning. */
const telling = (state: State, text: string, thought: string): Step => {
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

/** The session's present state, to render event rows from; correct until it moves or changes its model. */
export const standing = ({ address, agent, createdAt, id, location, model, root, title }: Session): Fold.State => ({
  ...Fold.initial,
  sessionID: id,
  createdAtMs: createdAt,
  directory: location.directory,
  cwd: shownDirectory(root, location.directory),
  ...(address === undefined ? {} : { address }),
  ...(root === undefined ? {} : { root }),
  ...(agent === undefined ? {} : { agent }),
  ...(model === undefined ? {} : { model }),
  ...(title === undefined ? {} : { title })
})

/** Takes one event and returns the output. */
export const step = (state: State, event: SessionEvent | LiveEvent): Step => {
  const [deltas, text] = Deltas.step(state.deltas, event)
  const thinking = thinkingAsText(event)
  const [reasoning, thought] = thinking === undefined ? [state.reasoning, ""] : Deltas.step(state.reasoning, thinking)
  const [heard, pieces] = telling({ ...state, deltas, reasoning }, text, thought)
  if (!("seq" in event)) return [heard, pieces]
  const told: Array<Told> = [...pieces]
  const { events, state: fold } = Fold.evolve(state.fold, withoutText(event))
  let next: State = { ...heard, fold }
  for (const bare of events) {
    if (state.followed !== undefined && bare.run !== state.followed.run) continue
    const row = bare.type === "message" ? messageOf(bare, next.said) : bare
    next = onRow(next, row)
    const frame = state.followed === undefined ? row : frameOf(row, state.followed, event)
    if (frame !== undefined) told.push({ type: "frame", frame, position: event.position })
  }
  return [next, told]
}

/** Converts reasoning to text events. Each part is its own message, so that an empty line separates them. */
const thinkingAsText = (event: SessionEvent | LiveEvent): SessionEvent | LiveEvent | undefined => {
  switch (event.type) {
    case "session.next.text.started":
    case "session.next.text.ended":
    case "session.next.text.delta":
      return undefined
    case "session.next.reasoning.started": {
      const { reasoningID: textID } = event.data
      return { ...event, type: "session.next.text.started", data: { textID, assistantMessageID: ownMessage(textID) } }
    }
    case "session.next.reasoning.ended": {
      const { reasoningID: textID, text } = event.data
      return {
        ...event,
        type: "session.next.text.ended",
        data: { textID, assistantMessageID: ownMessage(textID), text }
      }
    }
    case "session.next.reasoning.delta": {
      const { delta, reasoningID: textID } = event.data
      return {
        ...event,
        type: "session.next.text.delta",
        data: { textID, assistantMessageID: ownMessage(textID), delta }
      }
    }
    default:
      return event
  }
}

const ownMessage = (id: string): MessageID => MessageID.make(id, { disableValidation: true })

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

/** Code units of a tool result in a frame, at most. */
const longestResult = 65_536

/** The content that the model was shown, as far as a frame holds it; files by name. */
const resultOf = (event: SessionEvent) => {
  if (event.type !== "session.next.tool.success") return { content: [] }
  const { content, result, structured } = event.data
  const shown = content.map((part) => (part.type === "text" ? part.text : `[${part.mime} ${part.name ?? ""}]`))
  const whole = shown.length > 0 ? shown.join("\n") : JSON.stringify(result ?? structured)
  const text = Fold.clip(whole, longestResult)
  return {
    content: [{ type: "text" as const, text }],
    ...(text.length === whole.length ? {} : { truncated: true as const, length: whole.length })
  }
}

/** A row of the followed run as a frame; undefined for rows that only `resume` shows. */
const frameOf = (row: EventRow, { id, run }: Followed, event: SessionEvent): Frame | undefined => {
  const ofRun = { ...(id === undefined ? {} : { id }), run, event: row.id }
  switch (row.type) {
    case "start":
      return { type: row.type, ...ofRun, ...(row.model === undefined ? {} : { model: row.model }) }
    case "message": {
      const { content, length, role, truncated, type } = row
      return {
        type,
        ...ofRun,
        role,
        content: content.map(({ text }) => ({ type: "text", text })),
        ...(truncated === undefined ? {} : { truncated }),
        ...(length === undefined ? {} : { length })
      }
    }
    case "tool_call": {
      const { input, name, tool_call_id, type } = row
      return { type, ...ofRun, tool_call_id, name, input }
    }
    case "tool_result": {
      const { name, tool_call_id, type } = row
      return { type, ...ofRun, tool_call_id, name, ...resultOf(event) }
    }
    case "error": {
      const { code, message, recoverable, tool, tool_call_id, type } = row
      return {
        type,
        ...ofRun,
        ...(tool === undefined ? {} : { tool }),
        ...(tool_call_id === undefined ? {} : { tool_call_id }),
        code,
        message,
        ...(recoverable === undefined ? {} : { recoverable })
      }
    }
    case "done":
      return { type: row.type, ...ofRun, status: row.status }
    default:
      return undefined
  }
}
