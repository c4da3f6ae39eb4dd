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
  /** The length of a short pause, as drawn. */
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
