/** Limits stored tool progress: at most one event per second and call, at most a few KiB. Spec: EX-T12 (TO-P1). */
import { Clock, Effect } from "effect"
import type { ToolOutput } from "../domain/ToolOutput.ts"

const intervalMs = 1_000
const limitBytes = 4 * 1024

/** Keeps the end of a text, which is its newest part, and notes how many bytes were cut. */
const tail = (text: string): string => {
  const bytes = Buffer.from(text)
  if (bytes.length <= limitBytes) return text
  let start = bytes.length - limitBytes
  // Do not cut inside a character: UTF-8 continuation bytes start with the bits 10.
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

/**
 * Builds a progress reporter for one call; it ends with the scope. Updates within a second of the last stored one are
 * coalesced: the newest is stored when that second ends. So the last update of a tool that then waits is shown too.
 */
export const boundedProgress = Effect.fnUntraced(function* (store: (update: ToolOutput) => Effect.Effect<void>) {
  const scope = yield* Effect.scope
  let storedAt = Number.NEGATIVE_INFINITY
  let waiting: ToolOutput | undefined
  const storeNow = (update: ToolOutput) =>
    Effect.flatMap(Clock.currentTimeMillis, (now) => {
      storedAt = now
      waiting = undefined
      return store(bounded(update))
    })
  const storeWaiting = Effect.suspend(() => (waiting === undefined ? Effect.void : storeNow(waiting)))
  return (update: ToolOutput): Effect.Effect<void> =>
    Effect.flatMap(Clock.currentTimeMillis, (now) => {
      const isScheduled = waiting !== undefined
      const wait = storedAt + intervalMs - now
      if (!isScheduled && wait <= 0) return storeNow(update)
      waiting = update
      return isScheduled ? Effect.void : Effect.asVoid(Effect.forkIn(Effect.delay(storeWaiting, wait), scope))
    })
})
