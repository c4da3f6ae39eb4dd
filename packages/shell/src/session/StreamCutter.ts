/**
 * Cuts one stream of a shell at the tokens of its commands: what came before a command, what the command printed, and what
 * comes after. A token may be split over chunks. Bytes are passed on as they come. Pure. Spec: SL-15 in specs/shell.md.
 */

/** Takes a piece of a stream. The bytes must not be kept: they are a view of the chunk. */
export type Sink = (bytes: Uint8Array) => void

interface Match {
  readonly start: number
  readonly end: number
}

/** The first of the tokens in the bytes. */
const firstOf = (bytes: Buffer, tokens: ReadonlyArray<Buffer>): Match | undefined => {
  let first: Match | undefined
  for (const token of tokens) {
    const start = bytes.indexOf(token)
    if (start >= 0 && (first === undefined || start < first.start)) first = { start, end: start + token.length }
  }
  return first
}

/** Length of the longest end of the bytes that begins one of the tokens. */
const unfinished = (bytes: Buffer, tokens: ReadonlyArray<Buffer>): number => {
  let longest = 0
  for (const token of tokens) {
    for (let length = Math.min(token.length - 1, bytes.length); length > longest; length--) {
      if (bytes.subarray(bytes.length - length).equals(token.subarray(0, length))) longest = length
    }
  }
  return longest
}

export interface StreamCutter {
  /** The next command: its output lies between `begin` and an end, and goes to the sink. */
  readonly expect: (begin: string, end: string, sink: Sink) => void
  /** Another token that ends the running command. The first end in the stream counts; the others are removed. */
  readonly alsoEnds: (end: string) => void
  /** The next bytes of the stream. */
  readonly add: (bytes: Buffer) => void
  /** Whether the command's beginning has passed. */
  readonly begun: () => boolean
  /** Whether this end has passed. */
  readonly passed: (end: string) => boolean
  /** Passes on what was held back, when nothing follows. */
  readonly flush: () => void
}

/** `late` takes what comes outside of commands. */
export const make = (late: Sink): StreamCutter => {
  let held = Buffer.alloc(0)
  let begin: Buffer | undefined
  let ends: ReadonlyArray<Buffer> = []
  let sink: Sink = late
  let running = false
  const tokens = () => (begin === undefined ? ends : [begin, ...ends])
  const pass = (bytes: Buffer) => {
    if (bytes.length > 0) (running ? sink : late)(bytes)
  }
  const step = ({ end, start }: Match, bytes: Buffer): Buffer => {
    const token = bytes.subarray(start, end)
    pass(bytes.subarray(0, start))
    running = begin !== undefined && token.equals(begin)
    if (running) begin = undefined
    else ends = ends.filter((each) => !each.equals(token))
    return bytes.subarray(end)
  }
  return {
    expect: (first, last, to) => {
      begin = Buffer.from(first)
      ends = [...ends, Buffer.from(last)]
      sink = to
    },
    alsoEnds: (end) => {
      ends = [...ends, Buffer.from(end)]
    },
    add: (chunk) => {
      let bytes = held.length === 0 ? chunk : Buffer.concat([held, chunk])
      held = Buffer.alloc(0)
      for (let match = firstOf(bytes, tokens()); match !== undefined; match = firstOf(bytes, tokens())) {
        bytes = step(match, bytes)
      }
      const hold = unfinished(bytes, tokens())
      pass(bytes.subarray(0, bytes.length - hold))
      // Copied, because the chunk is not ours to keep.
      if (hold > 0) held = Buffer.from(bytes.subarray(bytes.length - hold))
    },
    begun: () => begin === undefined,
    passed: (end) => !ends.some((each) => each.equals(Buffer.from(end))),
    flush: () => {
      pass(held)
      held = Buffer.alloc(0)
    }
  }
}
