/**
 * Where the spans of a timeline are drawn. Spans that fall on one pixel are drawn once, so the number of boxes follows the
 * width, not the length of the session. Pure. Spec: IP-12 in specs/inspector.md.
 */
import { type Lane, lanes, type Span, type Timeline } from "./Timeline.ts"
import { type TimeScale, timeScale } from "./TimeScale.ts"

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

/** Moves by a share of the window. */
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
