/**
 * Follows a session for one client: its events and deltas become frames (`RunFrames.ts`) until the last frame. A slow
 * client delays only its own follower: deltas wait in the follower's bounded buffer, and when that is full, the durable
 * texts replace them. Spec: SO-26..SO-28 in specs/socket.md (FR-6, FR-7).
 *
 *   live deltas ─┐
 *   tail ────────┼─> small queue ─> RunFrames ─> write
 *   stuck ───────┘
 */
import { Effect, Queue, Stream } from "effect"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import type { LiveEvent, SessionEvent } from "@daybook/log/events/SessionEvents"
import * as RunStream from "@daybook/transcript/RunStream"
import * as AskFrames from "../ask/AskFrames.ts"
import * as RunFrames from "../run/RunFrames.ts"
import type { Backend } from "../session/Backend.ts"
import type { ConnectionClosed } from "../socket/Connection.ts"
import { Refused, refusedBy } from "../support/Refused.ts"
import { deltaTexts, encodeFrame, type Frame } from "../wire/Wire.ts"

/** The live events that a follower may lag behind; a client that stops reading costs no more. */
const liveCapacity = 512

/** Items queued between the log and the client. */
const ahead = 16

/** Code units per write. */
const writeLength = 256 * 1024

export type Write = (text: string) => Effect.Effect<void, ConnectionClosed>

export interface FollowOptions {
  readonly backend: Backend
  readonly sessionID: SessionID
  /** The cursor from which the session is followed. */
  readonly after: number
  readonly state: RunStream.State
  readonly write: Write
  /** Which frames are written; all by default. */
  readonly shows?: (frame: Frame) => boolean
  /** Whether the frame is the last one. */
  readonly isLast: (frame: Frame) => boolean
  /** How asks of the session are shown; by default none are. */
  readonly asking?: AskFrames.AskOptions
  /** Runs when the first run begins that the client is shown. */
  readonly onStart?: () => void
  /** Completes with the reason if the run cannot begin. */
  readonly stuck: Effect.Effect<Refused>
}

type Item =
  | SessionEvent
  | LiveEvent
  | { readonly type: "asks" }
  | { readonly type: "failed" | "stuck"; readonly refused: Refused }

/** Writes the frames; ends after the last one, or fails with the reason if the session can no longer be followed. */
export const follow = Effect.fn("Follow.follow")(function* (options: FollowOptions) {
  const { after, backend, sessionID } = options
  const queue = yield* Queue.bounded<Item>(ahead)
  const { live, soFar } = yield* backend.log.subscribe({ sessionID, capacity: liveCapacity })
  const [heard, already] = RunStream.hearing(options.state, soFar)
  let state = heard
  yield* Effect.forkScoped(Effect.ignore(Stream.runForEach(live, (event) => Queue.offer(queue, event))))
  yield* Stream.runForEach(backend.log.tail({ sessionID, after }), (event) => Queue.offer(queue, event)).pipe(
    Effect.catchAll((error) => Queue.offer(queue, { type: "failed" as const, refused: refusedBy(error) })),
    Effect.forkScoped
  )
  yield* options.stuck.pipe(
    Effect.flatMap((refused) => Queue.offer(queue, { type: "stuck" as const, refused })),
    Effect.forkScoped
  )

  const asks =
    options.asking === undefined
      ? undefined
      : // If the queue is full, its items wake this follower as well.
        yield* AskFrames.make(backend, sessionID, options.asking, () => void Queue.unsafeOffer(queue, { type: "asks" }))
  const out = writer(options)
  /** Writes new asks while a run is shown. */
  const tellAsks = Effect.suspend(() =>
    asks === undefined || state.current === undefined
      ? Effect.void
      : Effect.flatMap(asks.take(state.current), (frames) =>
          Effect.forEach(frames, (frame) => out.tell({ type: "frame", frame, position: 0 }), { discard: true })
        )
  )
  let telling = false
  yield* Effect.forEach(already, out.tell, { discard: true })
  yield* Effect.zipRight(tellAsks, out.flush)
  for (;;) {
    for (const item of yield* Queue.takeBetween(queue, 1, ahead)) {
      if ("refused" in item) {
        // A stuck prompt behind the current run does not concern it.
        if (item.type === "stuck" && state.current !== undefined) continue
        yield* out.flush
        return yield* item.refused
      }
      if (item.type === "asks") continue
      const [next, told] = RunFrames.step(state, item)
      asks?.see(item)
      // Asks close before the end of their run.
      if (next.current === undefined) yield* tellAsks
      state = next
      if (!telling && state.current !== undefined) {
        telling = true
        options.onStart?.()
      }
      for (const what of told) {
        yield* out.tell(what)
        if (what.type === "frame" && options.isLast(what.frame)) return yield* out.flush
      }
    }
    yield* tellAsks
    yield* out.flush
  }
}, Effect.scoped)

/** Writes frames in few, bounded writes. The end of a run is written once the files reflect it. */
export const writer = ({
  backend,
  shows = () => true,
  write
}: Pick<FollowOptions, "backend" | "shows" | "write">): {
  readonly tell: (told: RunFrames.Told) => Effect.Effect<void, ConnectionClosed>
  readonly flush: Effect.Effect<void, ConnectionClosed>
} => {
  let lines = ""
  /** Pending text or reasoning of one run, joined into few deltas. */
  let text = ""
  let kind: "text" | "reasoning" = "text"
  let of: RunStream.Followed | undefined

  const write1 = Effect.suspend(() => {
    const ready = lines
    lines = ""
    return ready === "" ? Effect.void : write(ready)
  })
  const add = (frame: Frame) =>
    Effect.suspend(() => {
      if (!shows(frame)) return Effect.void
      lines += encodeFrame(frame)
      return lines.length < writeLength ? Effect.void : write1
    })
  const flushText = Effect.suspend(() => {
    const said = text
    const told = of
    text = ""
    if (said === "" || told === undefined) return Effect.void
    const id = told.id === undefined ? {} : { id: told.id }
    return Effect.forEach(
      deltaTexts(said),
      (piece) => add({ type: kind === "text" ? "delta" : "reasoning_delta", ...id, run: told.run, text: piece }),
      {
        discard: true
      }
    )
  })
  const flush = Effect.zipRight(flushText, write1)

  const tell = (told: RunFrames.Told): Effect.Effect<void, ConnectionClosed> => {
    if (told.type === "frame") {
      // The client reads the earlier frames while the files catch up.
      const current = told.frame.type === "done" ? Effect.zipRight(flush, backend.reached(told.position)) : flushText
      return Effect.zipRight(current, add(told.frame))
    }
    return Effect.suspend(() => {
      const before = of?.run === told.of.run && kind === told.type ? Effect.void : flushText
      return Effect.flatMap(before, () =>
        Effect.suspend(() => {
          of = told.of
          kind = told.type
          text += told.text
          return text.length < writeLength ? Effect.void : flushText
        })
      )
    })
  }

  return { tell, flush }
}
