/** Reads one page of a text file in pieces: memory does not depend on the file's size. Spec: TO-13, TO-34. */
import type { FileHandle } from "node:fs/promises"
import { Effect } from "effect"
import { utf8Prefix } from "../support/TextBounds.ts"
import { tryFile } from "./FileFailure.ts"
import { decodeOther, markedEncoding } from "./TextEncoding.ts"

/** Below the limits of an output, so that a page with its notices is never truncated. */
export const pageLimits = { lines: 1_900, bytes: 48 * 1024, lineBytes: 4 * 1024 } as const

/** How many of these lines fit into the bytes of a page. */
export const linesInPage = (lines: ReadonlyArray<string>): number => {
  let bytes = 0
  const over = lines.findIndex((line) => (bytes += Buffer.byteLength(line) + 1) > pageLimits.bytes)
  return over < 0 ? lines.length : over
}

const chunkBytes = 256 * 1024
const newline = 0x0a

export interface TextPage {
  readonly text: string
  readonly lines: number
  readonly clipped: number
  /** The first line after this page; undefined at the end of the file. */
  readonly next: number | undefined
  /** Whether bytes that are not UTF-8 are shown as U+FFFD. */
  readonly replaced: boolean
  /** Lines seen so far: those of the whole file if `next` is undefined. */
  readonly seen: number
}

/** Whether the first bytes of a file are text: no NUL, and valid UTF-8 except a truncated last character. */
export const looksLikeText = (sample: Uint8Array): boolean => {
  if (sample.includes(0)) return false
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(sample, { stream: true })
    return true
  } catch {
    return false
  }
}

/** Collects lines from pieces. Holds at most a page and one clipped line. */
const makeCollector = (offset: number, limit: number) => {
  const page: Array<Uint8Array> = []
  let [bytes, lines, clipped, number] = [0, 0, 0, 1]
  let line: Array<Uint8Array> = []
  let [held, length] = [0, 0]
  let full = false

  const extend = (piece: Uint8Array) => {
    length += piece.length
    if (number < offset || held > pageLimits.lineBytes) return
    // One byte more than shown, to truncate between characters.
    const part = piece.subarray(0, pageLimits.lineBytes + 1 - held)
    line.push(Uint8Array.from(part))
    held += part.length
  }

  /** Ends the line; false if it no longer fits on the page. */
  const end = (terminated: boolean) => {
    if (number >= offset) {
      const whole = Buffer.concat(line)
      const tooLong = length > pageLimits.lineBytes
      const shown = tooLong
        ? Buffer.concat([
            utf8Prefix(whole, pageLimits.lineBytes),
            Buffer.from(`[... ${length - utf8Prefix(whole, pageLimits.lineBytes).length} more bytes of this line]`)
          ])
        : whole
      const size = shown.length + (terminated ? 1 : 0)
      if (lines === limit || bytes + size > pageLimits.bytes) {
        full = true
        return false
      }
      page.push(shown)
      if (terminated) page.push(Uint8Array.of(newline))
      bytes += size
      lines++
      if (tooLong) clipped++
    }
    number++
    ;[line, held, length] = [[], 0, 0]
    return true
  }

  return {
    /** Adds a piece; false if the page is full. */
    take: (piece: Uint8Array): boolean => {
      let from = 0
      for (let at = piece.indexOf(newline); at >= 0; at = piece.indexOf(newline, from)) {
        extend(piece.subarray(from, at))
        if (!end(true)) return false
        from = at + 1
      }
      if (from < piece.length) extend(piece.subarray(from))
      return true
    },
    finish: (): TextPage => {
      if (!full && length > 0) end(false)
      const content = Buffer.concat(page)
      const text = content.toString()
      return {
        text,
        lines,
        clipped,
        next: full ? number : undefined,
        replaced: Buffer.byteLength(text) !== content.length || !Buffer.from(text).equals(content),
        seen: number - 1
      }
    }
  }
}

/** Reads `limit` lines from the 1-based line `offset`. */
export const readPage = Effect.fnUntraced(function* (handle: FileHandle, name: string, offset: number, limit: number) {
  const collector = makeCollector(offset, limit)
  const buffer = Buffer.allocUnsafe(chunkBytes)
  for (let position = 0; ;) {
    const { bytesRead } = yield* tryFile("read", name, () => handle.read(buffer, 0, chunkBytes, position))
    if (bytesRead === 0 || !collector.take(buffer.subarray(0, bytesRead))) break
    position += bytesRead
  }
  return collector.finish()
})

export const pageOf = (text: string, offset: number, limit: number): TextPage => {
  const collector = makeCollector(offset, limit)
  collector.take(Buffer.from(text))
  return collector.finish()
}

export const readBounded = Effect.fnUntraced(function* (handle: FileHandle, name: string, limit: number) {
  const { size } = yield* tryFile("read", name, () => handle.stat())
  if (size > limit) return undefined
  // One byte more than the size shows whether the file grew.
  const buffer = Buffer.allocUnsafe(size + 1)
  let length = 0
  while (length < buffer.length) {
    const { bytesRead } = yield* tryFile("read", name, () =>
      handle.read(buffer, length, buffer.length - length, length)
    )
    if (bytesRead === 0) break
    length += bytesRead
  }
  return length > size ? undefined : buffer.subarray(0, length)
})

/** Larger files are not decoded as a whole. */
export const maximumTextBytes = 10 * 1024 * 1024

/** The text of a file in another encoding than UTF-8; undefined if it is none, or too large. `sample`: its first bytes. */
export const readEncoded = Effect.fnUntraced(function* (handle: FileHandle, name: string, sample: Uint8Array) {
  if (markedEncoding(sample) === undefined && sample.includes(0)) return undefined
  const bytes = yield* readBounded(handle, name, maximumTextBytes)
  return bytes === undefined ? undefined : decodeOther(bytes)
})
