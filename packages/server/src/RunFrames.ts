/**
 * What the clients of a session are told: durable events and live deltas in, frames out, of one run or of all. The rows are
 * those that the files get, from the same fold; the text between them is that of `Deltas.ts`. Pure.
 * Spec: SO-20..SO-25 in specs/socket.md (FR-7, FR-9, FL-5, IX-6).
 */
import { MessageID, type LiveEvent, type OpenText, type Session, type SessionEvent } from "@daybook/core"
import { Fold, shownDirectory, type EventRow, type RunID } from "@daybook/files"
import * as Deltas from "./Deltas.ts"
import type { Frame } from "./Wire.ts"

export interface State {
  readonly fold: Fold.State
  readonly deltas: Deltas.State
  /** The reasoning of the run, by the same rules as its text. */
  readonly reasoning: Deltas.State
  /** The run that is followed, told in frames; without one all rows are told, as they are in the file. */
  readonly followed: Followed | undefined
  /** The run that text is told of. */
  readonly current: Followed | undefined
  /** What was told of its text: as much as a message may show, and how long all of it is. */
  readonly said: Said
}

interface Said {
  readonly head: string
  readonly length: number
}

const nothing: Said = { head: "", length: 0 }

/** A run, and the client's id for it where it came from one. */
export interface Followed {
  readonly run: RunID
  readonly id: string | undefined
}

/** What to tell: a piece of a run's text or reasoning of any length, or a frame and the event that it came from. */
export type Told =
  | { readonly type: "text" | "reasoning"; readonly of: Followed; readonly text: string }
  | { readonly type: "frame"; readonly frame: Frame; readonly position: number }

export type Step = readonly [State, ReadonlyArray<Told>]

/** Follows from a place in the log at which no run is open, as the session stands there. */
export const make = (fold: Fold.State, followed?: Followed): State => ({
  fold,
  deltas: Deltas.make(Number.MAX_SAFE_INTEGER),
  reasoning: Deltas.make(Number.MAX_SAFE_INTEGER),
  followed,
  current: undefined,
  said: nothing
})

/** From now on deltas are heard, and what was said before of texts under way is told (`Deltas.hearing`). */
export const hearing = (state: State, heardAfter: number, soFar: ReadonlyArray<OpenText>): Step => {
  const of = (type: OpenText["type"]) => soFar.filter((text) => text.type === type)
  const [deltas, text] = Deltas.hearing(state.deltas, heardAfter, of("text"))
  const [reasoning, thought] = Deltas.hearing(state.reasoning, heardAfter, of("reasoning"))
  return telling({ ...state, deltas, reasoning }, text, thought)
}

/** Tells pieces of the text and the reasoning of the run that is under way. */
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

/** What event rows need to know of before, as the session stands now: right while it neither moves nor changes models. */
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

/** Takes one event and says what to tell. */
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

/** Reasoning is told as text is; each part of it as a message of its own, so that an empty line sets them apart. */
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

/** A follower's fold makes event rows only: the texts of a long run need not be kept once more for each client. */
const withoutText = (event: SessionEvent): SessionEvent =>
  event.type === "session.next.text.ended" ? { ...event, data: { ...event.data, text: "" } } : event

const saying = ({ head, length }: Said, text: string): Said => ({
  // No code unit takes less than a byte.
  head: head.length < Fold.textLimit ? head + text.slice(0, Fold.textLimit + 1 - head.length) : head,
  length: length + text.length
})

type MessageRow = Extract<EventRow, { readonly type: "message" }>

/** The message of a run whose text was told: that text, as far as a message may show it. */
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

/** Code units of a tool's result in a frame, at most. */
const longestResult = 65_536

/** What a tool showed the model, as far as a frame holds it; files by their names. */
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

/** A row of the run that is followed, as its client is told; what is not of the answer itself is left to `resume`. */
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
