/**
 * What a session did and how long, as spans in lanes. Holds one small object for each span, no texts of events. Pure.
 * Spec: IP-12 in specs/inspector.md.
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

  /** A span ends, if it began. */
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

  /** A span of a known length. */
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
