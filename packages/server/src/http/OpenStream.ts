/**
 * Encodes frames, and writes one stream of them to a response, as fast as its reader reads. Spec: HT-44, HT-47..HT-52
 * in specs/http.md.
 */
import type { ServerResponse } from "node:http"
import { Data, Deferred, Duration, Effect, type Scope } from "effect"
import type { End, Seam } from "@daybook/api/wire/EventFrames"
import { acquireRelease } from "@daybook/log/support/Closing"
import { inOrder, type LiveEvent, type SessionEvent } from "@daybook/log/events/SessionEvents"

// Encodes a frame once for all readers of its event.

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

/**
 * Readers that get an event in the same round of microtasks share its bytes. They are forgotten then: kept as long as the event, they
 * would pin the 64 KB of memory that they are a part of.
 */
const remembered = <Event extends object>(encode: (event: Event, cursor: string) => string) => {
  const known = new Map<Event, Encoded>()
  return (event: Event, cursor: string): Buffer => {
    const found = known.get(event)
    if (found?.cursor === cursor) return found.bytes
    const bytes = Buffer.from(encode(event, cursor))
    if (known.size === 0) queueMicrotask(() => known.clear())
    known.set(event, { cursor, bytes })
    return bytes
  }
}

const rememberedLive = (encode: (event: LiveEvent) => string) => {
  const bytesOf = remembered(encode)
  return (event: LiveEvent): Buffer => bytesOf(event, "")
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

const lineEvent = (event: SessionEvent, cursor: string) => line({ frame: "event", cursor, event: inOrder(event) })

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

// Writes one stream of frames to a response; a reader that does not read is disconnected.

/** The reader took nothing for too long, or has gone. */
export class Lost extends Data.TaggedError("Lost")<{ readonly reason: "slow" | "gone" }> {}

export interface OpenStream {
  /** Writes frames, and waits until the reader can take more. Fails when there is no reader any more. */
  readonly write: (frames: ReadonlyArray<Buffer>) => Effect.Effect<void, Lost>
  /** Writes frames at once; false if the reader cannot take more now. */
  readonly offer: (frames: ReadonlyArray<Buffer>) => boolean
  /** Waits until the reader can take more. */
  readonly ready: Effect.Effect<void, Lost>
  readonly end: (frame: Buffer) => Effect.Effect<void>
  /** Writes the last frame at once; the effect waits until the connection has closed. */
  readonly finish: (frame: Buffer) => Effect.Effect<never, Lost>
  /** Shows the reader that the connection lives. A reader that took no waiting frame since the last two beats has gone. */
  readonly beat: () => void
}

/** How long a reader may take nothing. */
const stalledAfter = Duration.seconds(30)

/** Disconnects a reader that has read nothing for this many beats, even if its buffer is not full. */
const stuckBeats = 2

/** How long the last frame may take. */
const endWithin = Duration.seconds(2)

/** Frames are joined to writes of about this many bytes. */
export const writeBytes = 65_536

const joined = (frames: ReadonlyArray<Buffer>): ReadonlyArray<Buffer> => {
  if (frames.length < 2) return frames
  const groups: Array<Array<Buffer>> = []
  let length = Number.POSITIVE_INFINITY
  for (const each of frames) {
    if (length + each.length > writeBytes) {
      groups.push([])
      length = 0
    }
    groups.at(-1)?.push(each)
    length += each.length
  }
  return groups.map((group) => (group.length === 1 && group[0] !== undefined ? group[0] : Buffer.concat(group)))
}

/** Waits until the response can take more, or has lost its reader. */
const drained = (response: ServerResponse): Effect.Effect<void, Lost> =>
  Effect.async<void, Lost>((resume) => {
    const clear = () => response.off("drain", onDrain).off("close", onClose)
    const onDrain = () => {
      clear()
      resume(Effect.void)
    }
    const onClose = () => {
      clear()
      resume(new Lost({ reason: "gone" }))
    }
    response.on("drain", onDrain).on("close", onClose)
    if (response.destroyed) onClose()
    // It may have drained between the write and this: a timeout runs its effect in a fiber of its own.
    else if (!response.writableNeedDrain) onDrain()
    return Effect.sync(clear)
  })

/** Begins the response. The scope's end cuts it off, if it has not ended. */
export const open = (response: ServerResponse, encoding: Encoding): Effect.Effect<OpenStream, never, Scope.Scope> =>
  Effect.gen(function* () {
    const ended = yield* Deferred.make<void>()
    yield* acquireRelease(
      Effect.sync(() => {
        response.writeHead(200, {
          "content-type": encoding.mediaType,
          "cache-control": "no-store, no-transform",
          "x-accel-buffering": "no"
        })
        response.flushHeaders()
        if (encoding.opening !== "") response.write(encoding.opening)
        response.once("close", () => Deferred.unsafeDone(ended, Effect.void))
      }),
      () => Effect.sync(() => response.destroy())
    )
    const ready = Effect.suspend((): Effect.Effect<void, Lost> => {
      if (response.destroyed) return new Lost({ reason: "gone" })
      if (!response.writableNeedDrain) return Effect.void
      // A write is uninterruptible; the wait for its reader must end all the same.
      return Effect.timeoutFail(Effect.interruptible(drained(response)), {
        duration: stalledAfter,
        onTimeout: () => new Lost({ reason: "slow" })
      })
    })
    const writeOne = (bytes: Buffer) =>
      Effect.suspend(() => {
        if (!response.destroyed) response.write(bytes)
        return ready
      })
    /** Bytes that the system has taken for the reader, at the last beat, and the beats since it took some. */
    let [taken, idle] = [-1, 0]
    const isStuck = (): boolean => {
      const { socket } = response
      const now = socket === null || response.writableLength === 0 ? -1 : socket.bytesWritten - socket.writableLength
      idle = now === -1 || now !== taken ? 0 : idle + 1
      taken = now
      return idle === stuckBeats
    }
    return {
      write: (frames) => Effect.forEach(joined(frames), writeOne, { discard: true }),
      offer: (frames) => {
        if (response.destroyed) return false
        for (const bytes of joined(frames)) response.write(bytes)
        return !response.writableNeedDrain
      },
      ready,
      end: (frame) =>
        Effect.sync(() => response.end(frame)).pipe(
          Effect.zipRight(Deferred.await(ended)),
          Effect.timeoutOption(endWithin),
          Effect.asVoid
        ),
      finish: (frame) => {
        response.end(frame)
        return Effect.zipRight(Deferred.await(ended), new Lost({ reason: "gone" }))
      },
      beat: () => {
        if (response.destroyed) return
        if (isStuck()) response.destroy()
        else if (response.writableLength === 0) response.write(encoding.heartbeat)
      }
    }
  })
