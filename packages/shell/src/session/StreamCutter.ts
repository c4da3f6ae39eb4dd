/**
 * Cuts one stream of a shell at the marks of its commands: what came before a command, what the command printed, and what
 * comes after. A mark has a token that a command does not know, so that nothing a command prints is one. It may be split over
 * chunks. Bytes are passed on as they come. Pure. Spec: SL-14, SL-15 in specs/shell.md.
 */

/** Takes a piece of a stream. The bytes must not be kept: they are a view of the chunk. */
export type Sink = (bytes: Uint8Array) => void

/** What a mark's text begins with; of an end and of a note, a record follows, up to a NUL. */
export const markOf = {
  begin: (token: string) => `${token}<`,
  end: (token: string) => `${token}>`,
  note: (token: string) => `${token}|`
}

/** A record is shorter: a path has at most 4,096 bytes. */
const longestRecord = 16_384

const nothing = Buffer.alloc(0)

/** Marks that may still come: of a command, its end, a question for it, and notes. An interrupt can take each of them. */
const mostMarks = 8

interface Mark {
  readonly text: Buffer
  readonly kind: "begin" | "end" | "note"
  readonly token: string
}

interface Match {
  readonly mark: Mark
  readonly start: number
  readonly end: number
}

/** The first of the marks in the bytes. */
const firstOf = (bytes: Buffer, marks: ReadonlyArray<Mark>): Match | undefined => {
  let first: Match | undefined
  for (const mark of marks) {
    const start = bytes.length < mark.text.length ? -1 : bytes.indexOf(mark.text)
    if (start >= 0 && (first === undefined || start < first.start)) {
      first = { mark, start, end: start + mark.text.length }
    }
  }
  return first
}

/** Length of the longest end of the bytes that begins one of the marks. */
const unfinished = (bytes: Buffer, marks: ReadonlyArray<Mark>): number => {
  let longest = 0
  for (const { text } of marks) {
    for (let length = Math.min(text.length - 1, bytes.length); length > longest; length--) {
      const from = bytes.length - length
      if (bytes[from] === text[0] && bytes.compare(text, 0, length, from) === 0) longest = length
    }
  }
  return longest
}

export interface Events {
  /** The end with this token has passed. The first end of a command ends its output; later ones are removed. */
  readonly ended: (token: string, record: string) => void
  readonly noted: (token: string, record: string) => void
}

export interface StreamCutter {
  /** The next command: its output lies between its beginning and an end, and goes to the sink. */
  readonly expect: (token: string, sink: Sink) => void
  /** Another mark of the running command. */
  readonly also: (kind: "end" | "note", token: string) => void
  /** The next bytes of the stream. */
  readonly add: (bytes: Buffer) => void
  /** Whether the command's beginning has passed. */
  readonly begun: () => boolean
  /** Passes on what was held back, when nothing follows. */
  readonly flush: () => void
}

/** `late` takes what comes outside of commands. */
export const make = (late: Sink, events: Events): StreamCutter => {
  let held = nothing
  const marks: Array<Mark> = []
  let sink: Sink = late
  let running = false
  let begun = true
  const expectMark = (kind: Mark["kind"], token: string) => {
    if (marks.length >= mostMarks) marks.shift()
    marks.push({ kind, token, text: Buffer.from(markOf[kind](token), "latin1") })
  }
  const pass = (bytes: Buffer) => {
    if (bytes.length > 0) (running ? sink : late)(bytes)
  }
  /** The bytes after the mark; undefined if its record is not complete. */
  const step = ({ end, mark, start }: Match, bytes: Buffer): Buffer | undefined => {
    if (start > 0) pass(bytes.subarray(0, start))
    const { kind, token } = mark
    const nul = kind === "begin" ? end : bytes.indexOf(0, end)
    if (nul < 0 && bytes.length - end < longestRecord) {
      held = Buffer.from(bytes.subarray(start))
      return undefined
    }
    marks.splice(marks.indexOf(mark), 1)
    if (kind === "begin") {
      running = true
      begun = true
      return bytes.subarray(end)
    }
    if (kind === "end") running = false
    const last = nul < 0 ? bytes.length : nul
    events[kind === "end" ? "ended" : "noted"](token, bytes.toString("utf8", end, last))
    return bytes.subarray(last + 1)
  }
  return {
    expect: (token, to) => {
      begun = false
      sink = to
      expectMark("begin", token)
      expectMark("end", token)
    },
    also: expectMark,
    add: (chunk) => {
      let bytes = held.length === 0 ? chunk : Buffer.concat([held, chunk])
      held = nothing
      for (let match = firstOf(bytes, marks); match !== undefined; match = firstOf(bytes, marks)) {
        const rest = step(match, bytes)
        if (rest === undefined || rest.length === 0) return
        bytes = rest
      }
      const hold = unfinished(bytes, marks)
      pass(hold === 0 ? bytes : bytes.subarray(0, bytes.length - hold))
      // Copied, because the chunk is not ours to keep.
      if (hold > 0) held = Buffer.from(bytes.subarray(bytes.length - hold))
    },
    begun: () => begun,
    flush: () => {
      pass(held)
      held = nothing
    }
  }
}
