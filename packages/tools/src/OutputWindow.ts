/**
 * Keeps the shown part of a long output, its beginning and its end, in bounded memory. Decodes the two streams of a
 * process separately, so that one never splits a character of the other. Spec: TO-64.
 */
import { StringDecoder } from "node:string_decoder"
import { countLines } from "@daybook/core/support/TextBounds"

/** Together below the limits of an output, with room for the notices. */
export const windowLimits = { headLines: 500, headBytes: 12 * 1024, tailLines: 1_400, tailBytes: 34 * 1024 } as const

export interface OutputWindow {
  readonly add: (stream: "stdout" | "stderr", bytes: Uint8Array) => void
  /** Bytes so far. */
  readonly bytes: () => number
  /** Whether the output is truncated. */
  readonly cut: () => boolean
  /** The end of the output, at most `limit` characters. */
  readonly latest: (limit: number) => string
  /** The shown text; `where` is appended to the truncation note. */
  readonly render: (where: string) => string
}

/** The end of a text within both limits, from the beginning of a line if possible. */
const cutTail = (text: string) => {
  let start = text.length
  let [lines, bytes] = [0, 0]
  while (start > 0 && lines < windowLimits.tailLines) {
    const newline = start < 2 ? -1 : text.lastIndexOf("\n", start - 2)
    const size = Buffer.byteLength(text.slice(newline + 1, start))
    if (bytes + size > windowLimits.tailBytes) break
    ;[start, lines, bytes] = [newline + 1, lines + 1, bytes + size]
  }
  // The last line exceeds the limit. A UTF-16 unit takes at most three bytes, so this slice fits.
  return lines === 0 ? text.slice(-Math.floor(windowLimits.tailBytes / 3)) : text.slice(start)
}

/** The beginning of a text within both limits, in whole lines. */
const cutStart = (text: string) => {
  let end = 0
  for (let lines = 0; lines < windowLimits.headLines; lines++) {
    const newline = text.indexOf("\n", end)
    if (newline < 0 || Buffer.byteLength(text.slice(0, newline + 1)) > windowLimits.headBytes) break
    end = newline + 1
  }
  return text.slice(0, end)
}

export const makeOutputWindow = (): OutputWindow => {
  const decoders = { stdout: new StringDecoder("utf8"), stderr: new StringDecoder("utf8") }
  const whole = windowLimits.headBytes + windowLimits.tailBytes
  // `tail` holds the whole output until it exceeds the window; then `head` keeps its beginning.
  let [head, tail] = ["", ""]
  let [bytes, lines, cut] = [0, 0, false]

  const append = (text: string) => {
    tail += text
    for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) lines++
    if (!cut && (Buffer.byteLength(tail) > whole || lines > windowLimits.headLines + windowLimits.tailLines)) {
      cut = true
      head = cutStart(tail)
      tail = tail.slice(head.length)
    }
    if (cut && tail.length > 4 * windowLimits.tailBytes) tail = cutTail(tail)
  }

  return {
    add: (stream, chunk) => {
      bytes += chunk.length
      append(decoders[stream].write(Buffer.from(chunk)))
    },
    bytes: () => bytes,
    cut: () => cut,
    latest: (limit) => (tail.length < limit ? `${head}${tail}` : tail).slice(-limit),
    render: (where) => {
      append(decoders.stdout.end() + decoders.stderr.end())
      if (!cut) return tail
      const end = cutTail(tail)
      const shown = countLines(head) + countLines(end)
      const marker =
        `[Cut: ${shown} of ${Math.max(lines, shown)} lines, ${Buffer.byteLength(head) + Buffer.byteLength(end)} of ` +
        `${bytes} bytes are shown, the rest is left out here.${where}]\n`
      return `${head}${marker}${end}`
    }
  }
}
