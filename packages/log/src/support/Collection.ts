/**
 * Gives memory back to the system. V8 keeps a young generation that has grown until it is asked to collect everything, and of
 * Node's interfaces only the inspector's asks for that.
 */
import { Effect } from "effect"

/**
 * Collects everything in this thread, and makes its young generation small again. It blocks the thread, as each full collection
 * does. Where Node has no inspector, it does nothing.
 */
export const collect: Effect.Effect<void> = Effect.uninterruptible(
  Effect.tryPromise(async () => {
    const { Session } = await import("node:inspector")
    const session = new Session()
    session.connect()
    try {
      await new Promise<void>((resolve) => {
        // To disconnect within the callback would block the thread forever.
        session.post("HeapProfiler.collectGarbage", () => void setImmediate(resolve))
      })
    } finally {
      session.disconnect()
    }
  })
).pipe(Effect.ignore)

/** Collects in the background when the first requests after a start are answered. */
export const afterStart = Effect.asVoid(Effect.forkScoped(Effect.delay(collect, "1 second")))
