/**
 * The end of a server, as its clients are told of it. First nothing new is taken; then, once the runs that were under way
 * have had a moment to end, every answer that is still open ends with an error, and so does every connection.
 * Spec: SO-78, SO-79 in specs/socket.md.
 */
import { Deferred, Effect, FiberId } from "effect"
import { Refused } from "./Refused.ts"
import * as Wire from "./Wire.ts"

export interface Stopping {
  /** From now on new requests are refused. */
  readonly begin: Effect.Effect<void>
  readonly begun: () => boolean
  /** Ends every answer that is still open. */
  readonly end: Effect.Effect<void>
  readonly ended: () => boolean
  /** Waits until answers end. */
  readonly awaitEnd: Effect.Effect<void>
  /** Runs the effect; at the end of answers it is interrupted, and refused. */
  readonly until: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E | Refused, R>
}

/** Why a request is not answered any more. */
export const refused = new Refused({
  code: "EHOSTDOWN",
  message: "the server is stopping: what was kept goes on when it is back; send the request again, or resume"
})

/** The last words of every connection. */
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
