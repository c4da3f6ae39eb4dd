/**
 * Serializes work per key, in the order of `enter`, with a bounded queue. The place is taken when `enter` returns.
 * Unused keys are not kept. Spec: SO-31, SO-106 (DC-20).
 */
import { Deferred, Effect, FiberId } from "effect"

/**
 * A place in the queue: runs one effect when its turn comes, and gives up the place afterwards. Run it once, in a fiber
 * that cannot be interrupted before it begins; the effect itself may be interrupted.
 */
export type Place = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>

export interface Lane {
  /** Takes a place, which must then be used. Undefined if the queue is full, unless `always` is set. */
  readonly enter: (key: string, options?: { readonly always: boolean }) => Effect.Effect<Place | undefined>
}

interface Turn {
  readonly come: Deferred.Deferred<void>
  gone: boolean
}

/** `limit` bounds the places that wait behind the current one. */
export const make = (limit: number): Lane => {
  /** The first place of each key has the turn. */
  const lanes = new Map<string, Array<Turn>>()

  const leave = (key: string, lane: Array<Turn>, turn: Turn): void => {
    turn.gone = true
    while (lane[0]?.gone === true) lane.shift()
    const [next] = lane
    if (next === undefined) lanes.delete(key)
    else Deferred.unsafeDone(next.come, Effect.void)
  }

  const enter = (key: string, { always } = { always: false }) =>
    Effect.sync((): Place | undefined => {
      const lane = lanes.get(key) ?? []
      if (lane.filter(({ gone }) => !gone).length > limit && !always) return undefined
      const turn: Turn = { come: Deferred.unsafeMake(FiberId.none), gone: false }
      lane.push(turn)
      lanes.set(key, lane)
      if (lane[0] === turn) Deferred.unsafeDone(turn.come, Effect.void)
      return (effect) =>
        Effect.ensuring(
          Effect.interruptible(Effect.zipRight(Deferred.await(turn.come), effect)),
          Effect.sync(() => leave(key, lane, turn))
        )
    })

  return { enter }
}
