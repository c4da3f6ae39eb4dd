/**
 * What the clients of a session are told: durable events and live deltas in, frames out, of one run or of all. The rows are
 * those that the files get, from the same fold; the text between them is that of `Deltas.ts`. Pure.
 * Spec: SO-20..SO-25 in specs/socket.md (FR-7, FR-9, FL-5, IX-6).
 */
import type { LiveEvent, Session, SessionEvent } from "@daybook/core"
import { Fold, shownDirectory, type EventRow, type RunID } from "@daybook/files"
import * as Deltas from "./Deltas.ts"
import type { Frame } from "./Wire.ts"

export interface State {
  readonly fold: Fold.State
  readonly deltas: Deltas.State
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

/** What to tell: a piece of a run's text of any length, or a frame and the event that it came from. */
export type Told =
  | { readonly type: "text"; readonly of: Followed; readonly text: string }
  | { readonly type: "frame"; readonly frame: Frame; readonly position: number }

export type Step = readonly [State, ReadonlyArray<Told>]

/** Follows from a place in the log at which no run is open, as the session stands there. */
export const make = (fold: Fold.State, followed?: Followed): State => ({
  fold,
  deltas: Deltas.make(Number.MAX_SAFE_INTEGER),
  followed,
  current: undefined,
  said: nothing
})

/** From now on deltas are heard: of texts that start after this place, all. */
export const hearing = (state: State, heardAfter: number): State => ({
  ...state,
  deltas: { ...state.deltas, heardAfter }
})

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
  const { current } = state
  const told: Array<Told> = current === undefined || text === "" ? [] : [{ type: "text", of: current, text }]
  const said = current === undefined || text === "" ? state.said : saying(state.said, text)
  if (!("seq" in event)) return [{ ...state, deltas, said }, told]
  const { events, state: fold } = Fold.evolve(state.fold, withoutText(event))
  let next: State = { ...state, fold, deltas, said }
  for (const bare of events) {
    if (state.followed !== undefined && bare.run !== state.followed.run) continue
    const row = bare.type === "message" ? messageOf(bare, next.said) : bare
    next = onRow(next, row)
    const frame = state.followed === undefined ? row : frameOf(row, state.followed)
    if (frame !== undefined) told.push({ type: "frame", frame, position: event.position })
  }
  return [next, told]
}

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
      current: { run: row.run, id: row.client_id },
      said: nothing
    }
  }
  return row.type === "done" ? { ...state, deltas: Deltas.end(state.deltas), current: undefined, said: nothing } : state
}

/** A row of the run that is followed, as its client is told; what is not of the answer itself is left to `resume`. */
const frameOf = (row: EventRow, { id, run }: Followed): Frame | undefined => {
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
    case "error": {
      const { code, message, recoverable, type } = row
      return { type, ...ofRun, code, message, ...(recoverable === undefined ? {} : { recoverable }) }
    }
    case "done":
      return { type: row.type, ...ofRun, status: row.status }
    default:
      return undefined
  }
}
