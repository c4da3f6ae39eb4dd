/**
 * Follows events over connections that break: connects again with the cursor of the last frame, after a growing, random
 * delay. Without gap or repetition, since a cursor moves only with what the caller has got. Spec: HT-60..HT-62 in
 * specs/http.md.
 */
import type * as HttpClient from "@effect/platform/HttpClient"
import { Chunk, Duration, Schedule, Stream } from "effect"
import type * as EventFrames from "@daybook/api/wire/EventFrames"
import { connect, type Failure } from "./Connecting.ts"
import type { Frame } from "./Frames.ts"

/** What to follow, and where to begin. */
export interface Following {
  readonly path: string
  /** Where the first request begins. */
  readonly from: Readonly<Record<string, string>>
  /** What every request has. */
  readonly query: Readonly<Record<string, string>>
}

/** An event with its cursor, the seam, or a delta. */
export type Item = Exclude<EventFrames.Frame, { readonly frame: "end" }>

/** Whether a new connection can succeed with the same cursor. */
export const isTransient = (error: Failure): boolean => {
  switch (error._tag) {
    case "ServerUnreachable":
    case "LogUnavailable":
    case "Stopping":
    case "TooManyRequests":
      return true
    case "UnexpectedAnswer":
      return error.status !== undefined && error.status >= 500
    default:
      return false
  }
}

/** A server says how long a client that asks too often has to wait. */
const atLeast = (error: Failure, delay: Duration.Duration): Duration.Duration =>
  error._tag === "TooManyRequests" ? Duration.max(delay, Duration.seconds(error.retryAfterSeconds)) : delay

/** The delays between connections, up to ten seconds, until none succeeded for so long. */
const reconnecting = (giveUpAfter: Duration.DurationInput) =>
  Schedule.identity<Failure>().pipe(
    Schedule.zipLeft(Schedule.exponential("100 millis").pipe(Schedule.union(Schedule.spaced("10 seconds")))),
    Schedule.jitteredWith({ min: 0.5, max: 1.5 }),
    Schedule.modifyDelay(atLeast),
    Schedule.whileInput(isTransient),
    Schedule.upTo(giveUpAfter)
  )

const cursorOf = (frame: Frame): string | undefined => ("cursor" in frame ? frame.cursor : undefined)

const isItem = (frame: Frame): frame is Item =>
  frame.frame === "event" || frame.frame === "replay.complete" || frame.frame === "live"

/** The items from the cursor on, over as many connections as needed, with one seam. */
export const follow = (
  http: HttpClient.HttpClient,
  { from, path, query }: Following,
  giveUpAfter: Duration.DurationInput
): Stream.Stream<Item, Failure> =>
  Stream.suspend(() => {
    let place = from
    let isPastSeam = false
    const moved = (frames: Chunk.Chunk<Frame>) => {
      for (const frame of frames) {
        const cursor = cursorOf(frame)
        if (cursor !== undefined) place = { after: cursor }
      }
      return frames
    }
    const isNew = ({ frame }: Item): boolean => {
      if (frame !== "replay.complete") return true
      const isFirst = !isPastSeam
      isPastSeam = true
      return isFirst
    }
    return Stream.suspend(() => connect(http, { path, query: { ...query, ...place } })).pipe(
      Stream.mapChunks(moved),
      Stream.retry(reconnecting(giveUpAfter)),
      Stream.filter(isItem),
      Stream.filter(isNew)
    )
  })
