/**
 * Time as it is drawn: pauses in which nothing happened are short. Pure. Spec: IP-12 in specs/inspector.md.
 *
 *   time    |--work--|........a night........|--work--|
 *   drawn   |--work--|..|--work--|
 */
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
  /** Milliseconds from the start, as drawn. */
  readonly drawn: (time: number) => number
  readonly timeAt: (drawn: number) => number
}

/** Milliseconds: a longer pause is drawn as this long. */
export const longestPause = 30_000

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
  const pauses: Array<Pause> = []
  let [end, cut] = [start, 0]
  for (const interval of sorted) {
    if (shorten && interval.start - end > longestPause) {
      pauses.push({ from: end, to: interval.start, before: end - start - cut })
      cut += interval.start - end - longestPause
    }
    end = Math.max(end, interval.end)
  }
  const drawn = (time: number): number => {
    const pause = pauses[lastNotAfter(pauses.length, (index) => (pauses[index]?.from ?? 0) > time)]
    if (pause === undefined) return time - start
    const within = Math.min(1, (time - pause.from) / (pause.to - pause.from)) * longestPause
    return pause.before + within + Math.max(0, time - pause.to)
  }
  const timeAt = (at: number): number => {
    const pause = pauses[lastNotAfter(pauses.length, (index) => (pauses[index]?.before ?? 0) > at)]
    if (pause === undefined) return start + at
    const past = at - pause.before
    return past <= longestPause
      ? pause.from + (past / longestPause) * (pause.to - pause.from)
      : pause.to + past - longestPause
  }
  return { start, length: Math.max(1, drawn(end)), pauses, drawn, timeAt }
}
