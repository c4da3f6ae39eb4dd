/** Joins chunks that arrive together. Spec: EX-110. */
import * as EventLoop from "@daybook/log/support/EventLoop"
import { Chunk, Effect, Exit, Fiber, type Option, type Scope } from "effect"

/** The next chunk; fails with nothing at the end. */
export type Pull<A, E> = Effect.Effect<Chunk.Chunk<A>, Option.Option<E>>

/**
 * Appends to a chunk whose last element `awaits` more the chunks that arrive within one turn of the event loop. Other
 * chunks are passed on immediately. Reads at most one chunk ahead.
 */
export const joined = <A, E>(
  pull: Pull<A, E>,
  awaits: (last: A) => boolean
): Effect.Effect<Pull<A, E>, never, Scope.Scope> =>
  Effect.map(Effect.scope, (scope) => {
    let ahead: Fiber.RuntimeFiber<Chunk.Chunk<A>, Option.Option<E>> | undefined

    const next = Effect.suspend(() => {
      const started = ahead
      ahead = undefined
      return started === undefined ? pull : Fiber.join(started)
    })

    const grow = (chunk: Chunk.Chunk<A>): Effect.Effect<Chunk.Chunk<A>> => {
      if (Chunk.isNonEmpty(chunk) && !awaits(Chunk.lastNonEmpty(chunk))) return Effect.succeed(chunk)
      return Effect.flatMap(Effect.forkIn(pull, scope), (fiber) =>
        Effect.zipRight(
          EventLoop.turn,
          Effect.suspend(() => {
            const exit = fiber.unsafePoll()
            if (exit !== null && Exit.isSuccess(exit)) return grow(Chunk.appendAll(chunk, exit.value))
            // It has not arrived, or the stream ended or failed: the next pull returns that.
            ahead = fiber
            return Effect.succeed(chunk)
          })
        )
      )
    }

    return Effect.flatMap(next, grow)
  })
