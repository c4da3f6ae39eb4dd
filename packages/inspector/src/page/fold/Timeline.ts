/**
 * What a session did and how long, as spans in lanes, their scale of time, and their picture. Holds one small object for each
 * span, no texts of events. Pure.
 * Spec: IP-12 in specs/http.md.
 */

export type Lane = "prompt" | "activity" | "turn" | "tool" | "compaction" | "retry"

/** The lanes, from top to bottom. */
export const lanes: ReadonlyArray<Lane> = ["prompt", "activity", "turn", "tool", "compaction", "retry"]

/** `waiting`: a prompt in the inbox. */
export type Outcome = "running" | "waiting" | "completed" | "failed" | "interrupted" | "withdrawn"

export interface Span {
  readonly lane: Lane
  /** The id of a message or an activity, or a call's id with that of its message. */
  readonly key: string
  readonly seq: number
  readonly label: string
  readonly start: number
  /** Absent while it lasts. */
  end: number | undefined
  outcome: Outcome
  /** Within its lane, 0 is the first: spans at the same time stand below each other. */
  readonly row: number
}

/** Rows of a lane; more at the same time share the last one. */
export const mostRows = 6

/** Spans by start. */
export class Timeline {
  readonly spans: Array<Span> = []
  /** The times of the first and the last event. */
  first: number | undefined
  last = 0
  readonly #open = new Map<string, Span>()
  readonly #rows = new Map<Lane, Array<Span | undefined>>()

  /** An event happened. */
  touch(at: number): void {
    this.first ??= at
    this.last = Math.max(this.last, at)
  }

  /** How many rows a lane needs: at least one. */
  rowsOf(lane: Lane): number {
    return Math.max(1, this.#rows.get(lane)?.length ?? 0)
  }

  /** A span begins. */
  begin(lane: Lane, key: string, at: { readonly seq: number; readonly start: number }, label: string): void {
    const rows = this.#rows.get(lane) ?? []
    this.#rows.set(lane, rows)
    const free = rows.findIndex((span) => span === undefined || (span.end !== undefined && span.end <= at.start))
    const row = Math.min(free < 0 ? rows.length : free, mostRows - 1)
    const span: Span = { lane, key, label, ...at, end: undefined, outcome: "running", row }
    rows[row] = span
    this.spans.push(span)
    this.#open.set(`${lane} ${key}`, span)
  }

  /** An open span waits for its turn. */
  waits(lane: Lane, key: string): void {
    const span = this.#open.get(`${lane} ${key}`)
    if (span !== undefined) span.outcome = "waiting"
  }

  end(lane: Lane, key: string, at: number, outcome: Outcome): void {
    const span = this.#open.get(`${lane} ${key}`)
    if (span === undefined) return
    span.end = Math.max(span.start, at)
    span.outcome = outcome
    this.#open.delete(`${lane} ${key}`)
  }

  /** All open spans of these lanes end: their process stopped. */
  endAll(of: ReadonlyArray<Lane>, at: number, outcome: Outcome): void {
    for (const span of this.#open.values()) if (of.includes(span.lane)) this.end(span.lane, span.key, at, outcome)
  }

  add(span: Omit<Span, "row">): void {
    this.begin(span.lane, span.key, span, span.label)
    this.end(span.lane, span.key, span.end ?? span.start, span.outcome)
  }
}

/** The longest spans of the lanes, longest first. A running one lasts until now. */
export const longestSpans = (
  spans: ReadonlyArray<Span>,
  of: ReadonlyArray<Lane>,
  now: number,
  most: number
): ReadonlyArray<Span> => {
  const length = ({ end, start }: Span) => (end ?? now) - start
  return spans
    .filter(({ lane }) => of.includes(lane))
    .sort((a, b) => length(b) - length(a))
    .slice(0, most)
}

export interface Pause {
  readonly from: number
  readonly to: number
  /** The length before it, as drawn. */
  readonly before: number
}

export interface TimeScale {
  readonly start: number
  /** The whole length, as drawn. */
  readonly length: number
  readonly pauses: ReadonlyArray<Pause>
  readonly pauseLength: number
  /** Milliseconds from the start, as drawn. */
  readonly drawn: (time: number) => number
  readonly timeAt: (drawn: number) => number
}

/** Milliseconds: longer pauses are drawn short. */
export const longestPause = 30_000

/** A short pause is this share of the time in which something happened. */
const share = 0.03

/** The index of the last item that is not after, -1 if there is none. */
const lastNotAfter = (count: number, isAfter: (index: number) => boolean): number => {
  let [low, high] = [0, count]
  while (low < high) {
    const middle = (low + high) >>> 1
    if (isAfter(middle)) high = middle
    else low = middle + 1
  }
  return low - 1
}

/** The scale of intervals from the earliest start to the latest end. `shorten` false keeps pauses as they are. */
export const timeScale = (
  intervals: ReadonlyArray<{ readonly start: number; readonly end: number }>,
  shorten = true
): TimeScale => {
  const sorted = [...intervals].sort((a, b) => a.start - b.start)
  const start = sorted[0]?.start ?? 0
  const found: Array<{ readonly from: number; readonly to: number }> = []
  let end = start
  for (const interval of sorted) {
    if (shorten && interval.start - end > longestPause) found.push({ from: end, to: interval.start })
    end = Math.max(end, interval.end)
  }
  const idle = found.reduce((sum, { from, to }) => sum + to - from, 0)
  const pauseLength = Math.min(longestPause, Math.max(1, (end - start - idle) * share))
  let cut = 0
  const pauses = found.map(({ from, to }): Pause => {
    const before = from - start - cut
    cut += to - from - pauseLength
    return { from, to, before }
  })
  const drawn = (time: number): number => {
    const pause = pauses[lastNotAfter(pauses.length, (index) => (pauses[index]?.from ?? 0) > time)]
    if (pause === undefined) return time - start
    const within = Math.min(1, (time - pause.from) / (pause.to - pause.from)) * pauseLength
    return pause.before + within + Math.max(0, time - pause.to)
  }
  const timeAt = (at: number): number => {
    const pause = pauses[lastNotAfter(pauses.length, (index) => (pauses[index]?.before ?? 0) > at)]
    if (pause === undefined) return start + at
    const past = at - pause.before
    return past <= pauseLength
      ? pause.from + (past / pauseLength) * (pause.to - pause.from)
      : pause.to + past - pauseLength
  }
  return { start, length: Math.max(1, drawn(end)), pauses, pauseLength, drawn, timeAt }
}

/** The part of the drawn time that is visible, in drawn milliseconds. */
export interface Window {
  readonly from: number
  readonly to: number
}

export interface Box {
  readonly span: Span
  readonly x: number
  readonly width: number
  readonly y: number
  readonly height: number
}

export interface LanePlace {
  readonly lane: Lane
  readonly y: number
  readonly height: number
}

const rowHeight = 20
const gap = 3
const laneGap = 14
/** Pixels above the lanes, for the times. */
export const axisHeight = 24
/** A short span is this wide. */
const narrowest = 3

/** The lanes below each other. */
export const lanePlaces = (timeline: Timeline): ReadonlyArray<LanePlace> => {
  let y = axisHeight
  return lanes.map((lane) => {
    const height = timeline.rowsOf(lane) * (rowHeight + gap) - gap
    const place = { lane, y, height }
    y += height + laneGap
    return place
  })
}

export const heightOf = (places: ReadonlyArray<LanePlace>): number => {
  const last = places.at(-1)
  return last === undefined ? axisHeight : last.y + last.height + laneGap
}

/** When a span ends, as drawn: a running one at the last event. */
export const endOf = ({ end, start }: Span, timeline: Timeline): number => Math.max(start, end ?? timeline.last)

/** The scale of the session. A prompt that waits does not make a pause long. */
export const scaleOf = (timeline: Timeline): TimeScale =>
  timeScale(
    timeline.spans.map((span) => ({
      start: span.start,
      end: span.lane === "prompt" ? span.start : endOf(span, timeline)
    }))
  )

/** The boxes in a window of some width, in the order of the spans. */
export const boxesOf = (
  timeline: Timeline,
  scale: TimeScale,
  { from, to }: Window,
  width: number
): ReadonlyArray<Box> => {
  const places = new Map(lanePlaces(timeline).map((place) => [place.lane, place.y]))
  const perMs = width / Math.max(1, to - from)
  const drawnTo = new Map<string, number>()
  const boxes: Array<Box> = []
  for (const span of timeline.spans) {
    const start = (scale.drawn(span.start) - from) * perMs
    const end = (scale.drawn(endOf(span, timeline)) - from) * perMs
    if (end < 0 || start > width) continue
    const row = `${span.lane} ${span.row}`
    // One pixel shows one span; a failure is never hidden by its neighbours.
    if (Math.max(end, start + 1) <= (drawnTo.get(row) ?? -1) && span.outcome !== "failed") continue
    const x = Math.max(-1, start)
    const whole = Math.max(end, start + narrowest)
    const right = Math.min(width + 1, whole)
    const covers = span.outcome === "failed" ? whole + 1 : whole - 1
    drawnTo.set(row, Math.max(covers, drawnTo.get(row) ?? -1))
    const y = (places.get(span.lane) ?? 0) + span.row * (rowHeight + gap)
    boxes.push({ span, x, width: right - x, y, height: rowHeight })
  }
  return boxes
}

/** The box at a point, the last drawn first. */
export const boxAt = (boxes: ReadonlyArray<Box>, x: number, y: number): Box | undefined =>
  boxes.findLast((box) => x >= box.x - 1 && x <= box.x + box.width + 1 && y >= box.y && y <= box.y + box.height)

/** The shortest window, in milliseconds. */
const closest = 20

/** Zooms around a point (0 to 1 of the window) and stays within the length. */
export const zoomed = ({ from, to }: Window, factor: number, around: number, length: number): Window => {
  const size = Math.min(length, Math.max(closest, (to - from) * factor))
  return within(from + (to - from) * around - size * around, size, length)
}

export const moved = ({ from, to }: Window, share: number, length: number): Window =>
  within(from + (to - from) * share, to - from, length)

const within = (from: number, size: number, length: number): Window => {
  const start = Math.max(0, Math.min(length - size, from))
  return { from: start, to: start + size }
}

const steps = [
  10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000, 120_000, 300_000, 600_000, 1_800_000,
  3_600_000, 7_200_000, 21_600_000, 43_200_000, 86_400_000, 604_800_000
]

/** Times of the axis, at least so many pixels apart, at round distances. */
export const ticks = ({ from, to }: Window, width: number, apart: number): ReadonlyArray<number> => {
  const least = ((to - from) / Math.max(1, width)) * apart
  const step = steps.find((each) => each >= least) ?? steps.at(-1) ?? 1
  const found: Array<number> = []
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) found.push(at)
  return found
}
