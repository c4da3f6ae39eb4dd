/**
 * A program with a handler for SIGINT that blocks its event loop for a number of milliseconds. Its waits are real time:
 * the watching thread has a real timer, and says nothing to the program.
 */
import { readdirSync, readFileSync } from "node:fs"
import { Effect } from "effect"
import * as Watchdog from "../../../packages/cli/src/support/Watchdog.ts"

const hasChild = () =>
  readdirSync("/proc/self/task").some((task) => readFileSync(`/proc/self/task/${task}/children`, "utf8") !== "")

const blockedFor = Number(process.argv[2])

process.on("SIGINT", () => {
  process.stdout.write("handled\n", () => process.exit(3))
})
Effect.runFork(
  Effect.scoped(
    Effect.gen(function* () {
      yield* Watchdog.begin({ after: 0, limit: 400 })
      // The thread starts meanwhile.
      yield* Effect.sleep(500)
      const end = performance.now() + blockedFor
      while (performance.now() < end);
      // The thread's next tick ends its shell.
      while (hasChild()) yield* Effect.sleep(50)
      process.stdout.write("free\n")
      yield* Effect.never
    })
  )
)
