/** Reads the body of a request, whole and into memory, without an effect. Spec: HT-26, HT-501 in specs/http.md. */
import type { IncomingMessage } from "node:http"
import { BodyUnreadable } from "@daybook/api/wire/Access"
import { excessOf } from "@daybook/core/support/Excess"
import { maxInputDepth } from "@daybook/core/support/Limits"

/** A value of the facade may stand some levels below the body. */
const maxBodyDepth = 2 * maxInputDepth

/** The JSON of a body, or why it is refused. Readers of values that are nested deeper would overflow the stack. */
export const parsed = (text: string): unknown => {
  const value: unknown = JSON.parse(text)
  const details = excessOf(value, maxBodyDepth)
  if (details !== undefined) throw new BodyUnreadable({ details })
  return value
}

/** Work for the end of this turn of the event loop. */
let ending: Array<() => void> = []

/**
 * Does it at the end of this turn of the event loop. Node hands over one socket after another; the requests that arrived
 * together continue together, so that their appends share a commit.
 */
const together = (go: () => void): void => {
  if (ending.push(go) > 1) return
  setImmediate(() => {
    const now = ending
    ending = []
    for (const each of now) each()
  })
}

/** Reads a body. Stops reading after `most` bytes. */
export const collect = (
  source: IncomingMessage,
  most: number,
  then: { readonly whole: (bytes: Buffer) => void; readonly tooLong: () => void }
): void => {
  const chunks: Array<Buffer> = []
  let length = 0
  source.on("data", (chunk: Buffer) => {
    length += chunk.length
    if (length <= most) return void chunks.push(chunk)
    source.removeAllListeners("data").pause()
    then.tooLong()
  })
  source.once("end", () => {
    const bytes = chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks)
    together(() => then.whole(bytes))
  })
}
