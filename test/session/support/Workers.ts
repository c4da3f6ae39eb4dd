/** Runs real processes of `worker.ts` and reads their lines from a pipe; no wait depends on time. */
import { Deferred, Effect, Queue, type Scope } from "effect"
import { spawn } from "node:child_process"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import type { Order } from "./worker.ts"
import * as Program from "../../support/Program.ts"
import { waitingFor } from "../../support/Waiting.ts"

const here = fileURLToPath(new URL(".", import.meta.url))

/** The worker as one JavaScript file. */
export const program = Program.program(join(here, "workerMain.ts"))

export interface Worker {
  /** The next line; `ended` once the process has ended and all its lines were taken. */
  readonly line: Effect.Effect<string>
  /** Kills the process immediately, like a power cut, and waits for its last line. */
  readonly kill: Effect.Effect<void>
  readonly pause: Effect.Effect<void>
  readonly goOn: Effect.Effect<void>
}

/** Starts a worker, through another command if one is given; it is killed when the scope closes. */
export const startWorker = (
  script: string,
  order: Order,
  by: ReadonlyArray<string> = []
): Effect.Effect<Worker, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.gen(function* () {
      const lines = yield* Queue.unbounded<string>()
      const [command = "", ...words] = [...by, process.execPath, script, JSON.stringify(order)]
      const child = spawn(command, words, { stdio: ["ignore", "pipe", "inherit"] })
      // A line that the kill cut off is dropped: it has no newline.
      let rest = ""
      child.stdout.setEncoding("utf8").on("data", (part: string) => {
        const whole = (rest + part).split("\n")
        rest = whole.pop() ?? ""
        for (const line of whole) Queue.unsafeOffer(lines, line)
      })
      const ended = yield* Deferred.make<void>()
      child.once("close", () => {
        Queue.unsafeOffer(lines, "ended")
        Deferred.unsafeDone(ended, Effect.void)
      })
      const signal = (name: NodeJS.Signals) => Effect.sync(() => void child.kill(name))
      return {
        line: waitingFor(`a line of the worker ${JSON.stringify(order)}`)(Queue.take(lines)),
        kill: Effect.zipRight(signal("SIGKILL"), Deferred.await(ended)),
        pause: signal("SIGSTOP"),
        goOn: signal("SIGCONT")
      }
    }),
    ({ kill }) => kill
  )
