/**
 * One at a time for each key, in the order of asking, and only so many in the queue. The place in the queue is taken when
 * `enter` returns: who calls it in turn is served in turn. No key that nobody uses is remembered. Spec: SO-31 (DC-20).
 */
import { Deferred, Effect, FiberId } from "effect"

/**
 * A place in the queue: runs one effect when its turn has come, and is given back with it. To be run once, in a fiber that
 * cannot be interrupted before it begins: the effect itself can be.
 */
export type Place = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>

export interface Lane {
  /** Takes a place; undefined when the queue is full, unless it is for what has to be done. What was taken must be used. */
  readonly enter: (key: string, options?: { readonly always: boolean }) => Effect.Effect<Place | undefined>
}

interface Turn {
  readonly come: Deferred.Deferred<void>
  gone: boolean
}

/** `limit`: how many may wait for the one whose turn it is. */
export const make = (limit: number): Lane => {
  /** The first of each has the turn. */
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
