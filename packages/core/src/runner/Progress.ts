/** Bounds what a tool's progress costs the log: at most one event a second and call, of a few KiB . Spec: EX-T12 (TO-P1). */
import { Clock, Effect } from "effect"
import type { ToolOutput } from "../tool/ToolDefinition.ts"

const intervalMs = 1_000
const limitBytes = 4 * 1024

/** The end of a text is its news: the start is cut, and said to be. */
const tail = (text: string): string => {
  const bytes = Buffer.from(text)
  if (bytes.length <= limitBytes) return text
  let start = bytes.length - limitBytes
  // Not in the middle of a character: its later bytes begin with the bits 10.
  while (((bytes[start] ?? 0) & 0xc0) === 0x80) start++
  return `[${start} bytes before]\n${bytes.toString("utf8", start)}`
}

const bounded = ({ content, structured }: ToolOutput): ToolOutput => {
  const last = content.findLast((part) => part.type === "text")
  return {
    structured: Buffer.byteLength(JSON.stringify(structured)) > limitBytes ? {} : structured,
    content: last === undefined ? [] : [{ type: "text", text: tail(last.text) }]
  }
}

/** A progress reporter for one call. Updates that come too soon are dropped: the next one says more. */
export const boundedProgress = (store: (update: ToolOutput) => Effect.Effect<void>) =>
  Effect.sync(() => {
    let last = Number.NEGATIVE_INFINITY
    return (update: ToolOutput): Effect.Effect<void> =>
      Effect.flatMap(Clock.currentTimeMillis, (now) => {
        if (now - last < intervalMs) return Effect.void
        last = now
        return store(bounded(update))
      })
  })
