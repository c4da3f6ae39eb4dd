/** A process with a handler for SIGINT and an event loop that is blocked, until a time in milliseconds or for ever. */
import { Effect } from "effect"
import * as Watchdog from "../../../packages/cli/src/Watchdog.ts"

const until = Number(process.argv[2])

process.on("SIGINT", () => {
  process.stdout.write("handled\n", () => process.exit(3))
})
Effect.runFork(
  Effect.scoped(
    Effect.gen(function* () {
      yield* Watchdog.begin({ after: 0, limit: 400 })
      // The thread has started once the loop has turned for a while.
      yield* Effect.sleep(500)
      const end = performance.now() + until
      while (performance.now() < end);
      yield* Effect.sleep(300)
      process.stdout.write("free\n")
      yield* Effect.never
    })
  )
)
