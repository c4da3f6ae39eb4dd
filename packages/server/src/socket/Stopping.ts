/**
 * The stop of a server as clients see it. First it refuses new requests; then, once runs had a moment to end, every
 * open answer and every connection ends with an error. Spec: SO-78, SO-79 in specs/socket.md.
 */
import { Deferred, Effect, FiberId } from "effect"
import { Refused } from "../support/Refused.ts"
import * as Wire from "../wire/Wire.ts"

export interface Stopping {
  /** Refuses new requests from now on. */
  readonly begin: Effect.Effect<void>
  readonly begun: () => boolean
  /** Ends every open answer. */
  readonly end: Effect.Effect<void>
  readonly ended: () => boolean
  /** Waits for `end`. */
  readonly awaitEnd: Effect.Effect<void>
  /** Runs the effect; `end` interrupts it and fails it with a refusal. */
  readonly until: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E | Refused, R>
}

/** The refusal of requests while the server stops. */
export const refused = new Refused({
  code: "EHOSTDOWN",
  message: "the server is stopping: waiting prompts run when it is back; send the request again, or resume"
})

/** The last frame of every connection. */
export const farewell = Wire.encodeFrame(
  Wire.errorFrame({ code: "EHOSTDOWN", message: "the server is stopping and closes this connection" })
)

export const make = (): Stopping => {
  let begun = false
  let ended = false
  const over = Deferred.unsafeMake<void>(FiberId.none)
  const awaitEnd = Deferred.await(over)
  return {
    begin: Effect.sync(() => void (begun = true)),
    begun: () => begun,
    end: Effect.suspend(() => {
      ended = true
      return Effect.asVoid(Deferred.succeed(over, undefined))
    }),
    ended: () => ended,
    awaitEnd,
    until: (effect) => Effect.raceFirst(effect, Effect.zipRight(awaitEnd, refused))
  }
}
