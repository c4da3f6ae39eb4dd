/**
 * Writes one stream of frames to a response, as fast as its reader reads: a reader that does not read is disconnected, and holds
 * little until then. Spec: HT-47, HT-48, HT-50, HT-52 in specs/http.md.
 */
import type { ServerResponse } from "node:http"
import { Data, Deferred, Duration, Effect, type Scope } from "effect"
import type { Encoding } from "./EventEncoding.ts"

/** The reader took nothing for too long, or has gone. */
export class Lost extends Data.TaggedError("Lost")<{ readonly reason: "slow" | "gone" }> {}

export interface OpenStream {
  /** Writes frames, and waits until the reader can take more. Fails when there is no reader any more. */
  readonly write: (frames: ReadonlyArray<Buffer>) => Effect.Effect<void, Lost>
  /** Writes frames at once; false if the reader cannot take more now. */
  readonly offer: (frames: ReadonlyArray<Buffer>) => boolean
  /** Waits until the reader can take more. */
  readonly ready: Effect.Effect<void, Lost>
  /** Writes the last frame, and ends the response. */
  readonly end: (frame: Buffer) => Effect.Effect<void>
  /** Writes the last frame at once; the effect waits until the connection has closed. */
  readonly finish: (frame: Buffer) => Effect.Effect<never, Lost>
  /** Shows the reader that the connection lives. If frames wait, and it took nothing since the last two, it has gone. */
  readonly beat: () => void
}

/** How long a reader may take nothing. */
const stalledAfter = Duration.seconds(30)

/** After how many beats a reader that takes nothing has gone, though less waits for it than a full buffer. */
const stuckBeats = 2

/** How long the last frame may take. */
const endWithin = Duration.seconds(2)

/** Frames are joined to writes of about this many bytes. */
export const writeBytes = 65_536

const joined = (frames: ReadonlyArray<Buffer>): ReadonlyArray<Buffer> => {
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
    yield* Effect.acquireRelease(
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
      return Effect.timeoutFail(drained(response), {
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
