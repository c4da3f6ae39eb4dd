/** Encodes frames once for all readers of an event. Pure, with a memory that ends with the event. Spec: HT-44, HT-49. */
import { inOrder, type LiveEvent, type SessionEvent } from "@daybook/log/events/SessionEvents"
import type { End, Seam } from "@daybook/api/wire/EventFrames"

/** How frames are written. */
export interface Encoding {
  readonly mediaType: string
  /** Sent first: the headers leave with it. */
  readonly opening: string
  readonly heartbeat: string
  /** The same event and cursor give the same bytes, without encoding them again. */
  readonly event: (event: SessionEvent, cursor: string) => Buffer
  /** The same as text, for an event that is read for one reader: its bytes are not kept, and are made with those around. */
  readonly stored: (event: SessionEvent, cursor: string) => string
  readonly live: (event: LiveEvent) => Buffer
  readonly seam: (seam: Seam) => Buffer
  readonly end: (end: End) => Buffer
}

interface Encoded {
  readonly cursor: string
  readonly bytes: Buffer
}

/** Tails of a process share the objects of events. */
const remembered = (encode: (event: SessionEvent, cursor: string) => string) => {
  const known = new WeakMap<SessionEvent, Encoded>()
  return (event: SessionEvent, cursor: string): Buffer => {
    const found = known.get(event)
    if (found?.cursor === cursor) return found.bytes
    const bytes = Buffer.from(encode(event, cursor))
    known.set(event, { cursor, bytes })
    return bytes
  }
}

/** Readers of a session share the objects of deltas. */
const rememberedLive = (encode: (event: LiveEvent) => string) => {
  const known = new WeakMap<LiveEvent, Buffer>()
  return (event: LiveEvent): Buffer => {
    const found = known.get(event)
    if (found !== undefined) return found
    const bytes = Buffer.from(encode(event))
    known.set(event, bytes)
    return bytes
  }
}

const frame = (type: string, data: unknown, id?: string): string =>
  `event: ${type}\n${id === undefined ? "" : `id: ${id}\n`}data: ${JSON.stringify(data)}\n\n`

const sseEvent = (event: SessionEvent, cursor: string): string => frame("event", inOrder(event), cursor)

/** Server-sent events. */
export const sse = (): Encoding => ({
  mediaType: "text/event-stream; charset=utf-8",
  opening: ": open\n\n",
  heartbeat: ": alive\n\n",
  event: remembered(sseEvent),
  stored: sseEvent,
  live: rememberedLive((event) => frame("live", event)),
  seam: (seam) => Buffer.from(frame("replay.complete", seam, seam.cursor)),
  end: (end) => Buffer.from(frame("end", end))
})

const line = (value: unknown): string => `${JSON.stringify(value)}\n`

const lineEvent = (event: SessionEvent, cursor: string): string =>
  line({ frame: "event", cursor, event: inOrder(event) })

/** Lines of JSON. */
export const ndjson = (): Encoding => ({
  mediaType: "application/x-ndjson",
  opening: "",
  heartbeat: "\n",
  event: remembered(lineEvent),
  stored: lineEvent,
  live: rememberedLive((live) => line({ frame: "live", live })),
  seam: (seam) => Buffer.from(line({ frame: "replay.complete", ...seam })),
  end: (end) => Buffer.from(line({ frame: "end", ...end }))
})
