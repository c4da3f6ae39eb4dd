/**
 * The text of one run as deltas: live deltas that are heard from a text's start, or continue its given beginning,
 * completed by the durable text. At every moment the emitted text is a beginning of the run's text, and at the end all of
 * it. Texts of different messages are separated as in `latest.md`. A live delta may be missing, late, or ahead of its
 * durable event. Pure. Spec: SO-24, SO-25 in specs/socket.md (FR-7, CL-5..CL-8).
 */
import type { EventOfType, LiveEvent } from "@daybook/log/events/SessionEvents"
import type { OpenText } from "@daybook/log/log/EventLog"
import { separator } from "./fold/Texts.ts"

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

/** Deltas received before their text's durable start. */
interface Early {
  readonly id: string
  readonly text: string
  /** Code units of the beginning that was given when listening began; the text then has no gap. */
  readonly given?: number
}

export interface State {
  /** Texts that were open when listening began and whose beginning was not given. */
  readonly unheard: ReadonlySet<string>
  /** Whether the run has started and not ended. */
  readonly open: boolean
  /** Started texts that are not yet emitted whole, in order. */
  readonly texts: ReadonlyMap<string, Text>
  readonly early: Early | undefined
  /** Texts of the current step with dropped deltas. */
  readonly missed: ReadonlySet<string>
  /** The message of the last emitted text. */
  readonly last: string | undefined
}

/** An event that the text of a run depends on. */
export type TextEvent =
  | EventOfType<"session.next.text.started" | "session.next.text.ended" | "session.next.step.started">
  | Extract<LiveEvent, { readonly type: "session.next.text.delta" }>

/** The state before anything was emitted. */
export const initial: State = {
  unheard: new Set(),
  open: false,
  texts: new Map(),
  early: undefined,
  missed: new Set(),
  last: undefined
}

/** Code units of early deltas that are kept; they precede their durable start, or belong to another run. */
const earlyLimit = 256 * 1024

export type Step = readonly [State, string]

/**
 * Hears deltas from now on. `soFar` holds all texts with earlier deltas; of any other text, the first delta is still to
 * come, even if the log already holds its start.
 */
export const hearing = (state: State, soFar: ReadonlyArray<Omit<OpenText, "type">>): Step =>
  soFar.reduce<Step>(
    ([before, told], { id, said }) => {
      const text = before.texts.get(id)
      const first = text === undefined ? before.early === undefined : frontOf(before) === id
      // Of several open texts, the first is emitted as it comes, the others at their ends.
      if (said === undefined || !first) return [unhear(before, id), told]
      if (text === undefined) return [{ ...before, early: { id, text: said, given: said.length } }, told]
      const [next, more] = tell(before, id, { ...text, heard: true }, said, false)
      return [next, told + more]
    },
    [state, ""]
  )

const unhear = (state: State, id: string): State => {
  const unheard = { ...state, unheard: new Set([...state.unheard, id]) }
  const text = state.texts.get(id)
  return text === undefined ? unheard : withText(unheard, id, { ...text, heard: false })
}

/** Starts the run. Early deltas are kept; they count if their text belongs to the run. */
export const begin = (state: State): State => ({ ...state, open: true, texts: new Map(), last: undefined })

/** Ends the run; later deltas are ignored. */
export const end = (state: State): State => ({ ...state, open: false, texts: new Map(), missed: new Set() })

/** Takes one event and returns the output. */
export const step = (state: State, event: TextEvent): Step => {
  switch (event.type) {
    case "session.next.text.delta":
      return onDelta(state, event.data.textID, event.data.delta)
    case "session.next.text.started":
      return state.open ? onStarted(state, event.data.textID, event.data.assistantMessageID) : [state, ""]
    case "session.next.text.ended":
      return state.open
        ? onEnded(state, event.data.textID, event.data.assistantMessageID, event.data.text)
        : [state, ""]
    case "session.next.step.started":
      return [{ ...state, missed: new Set() }, ""]
    default:
      return event satisfies never
  }
}

const withText = (state: State, id: string, text: Text): State => ({
  ...state,
  texts: new Map(state.texts).set(id, text)
})

const frontOf = (state: State): string | undefined => state.texts.keys().next().value

const onDelta = (state: State, id: string, delta: string): Step => {
  const text = state.texts.get(id)
  if (text === undefined) return [early(state, id, delta), ""]
  if (!text.heard || text.whole !== undefined) return [state, ""]
  // Of two concurrent texts, the later one is emitted whole after the first.
  if (frontOf(state) !== id) return [withText(state, id, { ...text, heard: false }), ""]
  return tell(state, id, text, text.half + delta, false)
}

const early = (state: State, id: string, delta: string): State => {
  if (state.missed.has(id)) return state
  const before = state.early
  if (before !== undefined && before.id === id) {
    const length = before.text.length + delta.length - (before.given ?? 0)
    if (length <= earlyLimit) return { ...state, early: { ...before, text: before.text + delta } }
  }
  const dropped = before === undefined ? undefined : before.id
  const tooLong = dropped === id || delta.length > earlyLimit
  return {
    ...state,
    early: tooLong ? undefined : { id, text: delta },
    missed: new Set([...state.missed, ...(dropped === undefined ? [] : [dropped]), ...(tooLong ? [id] : [])])
  }
}

const onStarted = (state: State, id: string, message: string): Step => {
  const given = state.early?.id === id && state.early.given !== undefined
  const heard = given || !(state.missed.has(id) || state.unheard.has(id))
  const text: Text = { message, heard, told: 0, half: "", whole: undefined }
  const started = withText(state, id, text)
  if (state.early?.id !== id) return [started, ""]
  const rest = { ...started, early: undefined }
  return heard ? onDelta(rest, id, state.early.text) : [rest, ""]
}

const onEnded = (state: State, id: string, message: string, whole: string): Step => {
  const before = state.texts.get(id) ?? { message, heard: false, told: 0, half: "", whole: undefined }
  return flush([withText(state, id, { ...before, whole }), ""])
}

/** Emits ended texts, up to the first that has not ended. */
const flush = ([state, told]: Step): Step => {
  const id = frontOf(state)
  const text = id === undefined ? undefined : state.texts.get(id)
  if (id === undefined || text?.whole === undefined) return [state, told]
  const [next, more] = tell(state, id, text, text.whole.slice(text.told), true)
  const texts = new Map(next.texts)
  texts.delete(id)
  return flush([{ ...next, texts }, told + more])
}

const isHigh = (code: number): boolean => code >= 0xd800 && code <= 0xdbff

const tell = (state: State, id: string, text: Text, ready: string, whole: boolean): Step => {
  const cut = !whole && isHigh(ready.charCodeAt(ready.length - 1)) ? ready.length - 1 : ready.length
  const now = ready.slice(0, cut)
  const told = withText(state, id, { ...text, told: text.told + now.length, half: ready.slice(cut) })
  if (now === "") return [told, ""]
  const gap = state.last === undefined || state.last === text.message ? "" : separator
  return [{ ...told, last: text.message }, gap + now]
}
