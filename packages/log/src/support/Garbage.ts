/**
 * Bounds the garbage of a process that runs for long or reads much, and gives its memory back to the system. V8 keeps a young
 * generation that has grown until it is asked to collect everything; only Node's inspector can ask for that.
 */
import { setFlagsFromString } from "node:v8"
import { Effect } from "effect"

/**
 * Lets V8 collect the heap when it has grown by half. By default it grows to four times the live data on a machine with
 * much memory, although most of the garbage are texts that are already sent or stored.
 */
export const bound = (): void => setFlagsFromString("--heap-growing-percent=50")

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

/** For a server that is ready: bounds its garbage from now on, and gives back the memory of its start. */
export const started = Effect.zipRight(Effect.sync(bound), afterStart)
