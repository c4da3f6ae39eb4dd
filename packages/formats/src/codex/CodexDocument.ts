/**
 * Reads rollouts from before they were JSON Lines: one JSON object with the header as `session` and the response items as
 * `items`. `session` and each item is a record. The object is never held as a whole. Spec: FM-155 in specs/formats.md.
 */
import { isUtf8 } from "node:buffer"
import { Predicate } from "effect"
import type { RecordPlace, Problem } from "../conversation/Conversation.ts"
import * as JsonLines from "../lines/JsonLines.ts"
import { parsed } from "../lines/JsonLines.ts"

const begins = /^[\s\0\ufeff]*\{\s*"(?:session|items)"\s*:\s*[[{]/

/** So many bytes show whether a rollout is one object. */
const startBytes = 256

/** Whether a rollout that starts with these bytes is one object. */
export const isDocument = (start: Uint8Array): boolean =>
  begins.test(Buffer.from(start.subarray(0, startBytes)).toString("utf8"))

/** Reads a rollout of either form: lines, or one object. */
export const makeEither = (options?: JsonLines.Options): JsonLines.JsonLines => {
  let start = Buffer.alloc(0)
  let chosen: JsonLines.JsonLines | undefined
  const push = (bytes: Uint8Array): ReadonlyArray<JsonLines.LogRecord | Problem> => {
    if (chosen !== undefined) return chosen.push(bytes)
    start = Buffer.concat([start, bytes])
    return start.length < startBytes ? [] : choose().push(start)
  }
  const choose = () => (chosen = isDocument(start) ? make(options) : JsonLines.make(options))
  return {
    push,
    end: () => {
      if (chosen !== undefined) return chosen.end()
      const reader = choose()
      return [...reader.push(start), ...reader.end()]
    }
  }
}

const [quote, backslash, newline] = [0x22, 0x5c, 0x0a]
const isSpace = (byte: number): boolean => byte === 0x20 || byte === 0x09 || byte === 0x0d
const isOpening = (byte: number): boolean => byte === 0x7b || byte === 0x5b
const isClosing = (byte: number): boolean => byte === 0x7d || byte === 0x5d

/** A record whose end is not read yet. */
interface Open {
  readonly place: RecordPlace
  /** How many values are around it: 1 around `session`, 2 around an item. */
  readonly depth: number
  /** Its bytes of earlier chunks, unless there are too many. */
  readonly held: Array<Uint8Array>
  heldBytes: number
}

/** Reads one object. Its options are those of lines; a record may have as many bytes as a line. */
export const make = ({ maxLineBytes = JsonLines.defaultMaxLineBytes }: JsonLines.Options = {}): JsonLines.JsonLines => {
  let out: Array<JsonLines.LogRecord | Problem> = []
  let [line, offset, slot] = [1, 0, 0]
  let [depth, inText, escaped] = [0, false, false]
  /** How far the line is indented; undefined behind its first byte that is not white space. */
  let indent: number | undefined = 0
  /** How far lines are indented on which items start, twice as far as the object's fields; -1 in another layout. */
  let itemIndent: number | undefined
  let open: Open | undefined

  const report = (kind: JsonLines.ProblemKind, place: RecordPlace) =>
    void out.push({ _tag: "Problem", place, kind, details: JsonLines.sentences[kind] })

  const complete = ({ held, heldBytes, place }: Open, rest: Uint8Array) => {
    if (heldBytes + rest.length > maxLineBytes) return report("line-too-long", place)
    const bytes = Buffer.concat([...held, rest])
    const text = bytes.toString("utf8")
    const value = parsed(text)
    if (!Predicate.isReadonlyRecord(value)) return report("bad-line", place)
    if (JsonLines.isTooDeep(value, text.length)) return report("too-deep", place)
    if (text.includes("\ufffd") && !isUtf8(bytes)) report("invalid-utf8", place)
    out.push({ _tag: "LogRecord", place, slot: slot++, value, text })
  }

  /** Codex writes each item on lines of its own: where an item starts, the damage before it ends. */
  const resume = () => {
    if (indent !== itemIndent) return
    if (open !== undefined) report("bad-line", open.place)
    open = undefined
    depth = 2
  }

  return {
    push: (bytes) => {
      let from = 0
      for (let at = 0; at < bytes.length; at++) {
        const byte = bytes[at] ?? 0
        if (byte === newline) {
          line++
          indent = 0
          // JSON has no newline in a text: this text lost its end.
          inText = escaped = false
          continue
        }
        if (inText) {
          if (escaped) escaped = false
          else if (byte === backslash) escaped = true
          else if (byte === quote) inText = false
          continue
        }
        if (isSpace(byte)) {
          if (indent !== undefined) indent++
          continue
        }
        if (line > 1 && itemIndent === undefined) itemIndent = depth === 1 && indent ? 2 * indent : -1
        if (byte === quote) inText = true
        else if (isOpening(byte)) {
          if (byte === 0x7b) {
            if (indent !== undefined) resume()
            if (open === undefined && (depth === 1 || depth === 2)) {
              open = { place: { line, offset: offset + at }, depth, held: [], heldBytes: 0 }
              from = at
            }
          }
          depth++
        } else if (isClosing(byte)) {
          depth = Math.max(0, depth - 1)
          if (open !== undefined && depth <= open.depth) {
            complete(open, bytes.subarray(from, at + 1))
            open = undefined
          }
        }
        indent = undefined
      }
      if (open !== undefined) {
        const rest = bytes.subarray(from)
        open.heldBytes += rest.length
        if (open.heldBytes > maxLineBytes) open.held.length = 0
        else open.held.push(rest)
      }
      offset += bytes.length
      const pieces = out
      out = []
      return pieces
    },
    end: () => {
      if (open !== undefined) report("torn-line", open.place)
      return out
    }
  }
}
