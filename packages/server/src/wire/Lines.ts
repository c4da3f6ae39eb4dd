/**
 * Splits bytes into lines, one per frame (FR-1). LF or CRLF ends a line. A line longer than `maxLineBytes` is reported
 * once and skipped to its end without being kept. The chunk boundaries make no difference. `Wire.ts` decodes lines.
 * Spec: SO-1..SO-4 in specs/socket.md (FR-3).
 */

/** The longest frame in either direction in bytes, without its line end (FR-3). */
export const maxLineBytes = 1_048_576

/** A line without its end, or the report of one that is too long. */
export type Line = { readonly _tag: "Line"; readonly bytes: Uint8Array } | { readonly _tag: "TooLong" }

const tooLong: Line = { _tag: "TooLong" }
const newline = 0x0a
const carriageReturn = 0x0d
const firstCapacity = 4096

/** Splits one stream of bytes. Between two chunks it keeps at most the begun line. */
export interface Splitter {
  /** The lines that end in the chunk. A line may be a view of the chunk: use it before the chunk changes. */
  readonly push: (chunk: Uint8Array) => ReadonlyArray<Line>
  /** Ends the stream; a last line without its end is a line too. */
  readonly end: () => ReadonlyArray<Line>
}

const withoutReturn = (bytes: Uint8Array): Uint8Array =>
  bytes.at(-1) === carriageReturn ? bytes.subarray(0, -1) : bytes

/** A new splitter; `limit` is for tests. */
export const make = (limit: number = maxLineBytes): Splitter => {
  // One more byte than a line, because a CR may be part of CRLF.
  const room = limit + 1
  let kept = new Uint8Array(0)
  let length = 0
  let skipping = false

  const keep = (bytes: Uint8Array): void => {
    if (length + bytes.length > kept.length) {
      const grown = new Uint8Array(Math.min(room, Math.max(firstCapacity, kept.length * 2, length + bytes.length)))
      grown.set(kept.subarray(0, length))
      kept = grown
    }
    kept.set(bytes, length)
    length += bytes.length
  }

  /** Takes the kept line together with its memory. */
  const take = (): Uint8Array => {
    const bytes = kept.subarray(0, length)
    kept = new Uint8Array(0)
    length = 0
    return bytes
  }

  /** Whether the begun line is already too long, whatever follows. */
  const exceeds = (more: Uint8Array): boolean => {
    const total = length + more.length
    if (total < room) return false
    return total > room || (more.length > 0 ? more.at(-1) : kept[length - 1]) !== carriageReturn
  }

  const complete = (rest: Uint8Array): Line => {
    if (length > 0) keep(rest)
    return { _tag: "Line", bytes: withoutReturn(length > 0 ? take() : rest) }
  }

  const push = (chunk: Uint8Array): ReadonlyArray<Line> => {
    const lines: Array<Line> = []
    let from = 0
    while (from < chunk.length) {
      const at = chunk.indexOf(newline, from)
      const part = chunk.subarray(from, at === -1 ? chunk.length : at)
      if (skipping) skipping = at === -1
      else if (exceeds(part)) {
        lines.push(tooLong)
        take()
        skipping = at === -1
      } else if (at === -1) keep(part)
      else lines.push(complete(part))
      from = at === -1 ? chunk.length : at + 1
    }
    return lines
  }

  const end = (): ReadonlyArray<Line> => (length === 0 ? [] : [complete(new Uint8Array(0))])

  return { push, end }
}
