/** Real processes of `worker.ts`, spoken to through a pipe: a line is taken when it came, nothing is waited for by time. */
import { Deferred, Effect, Queue, type Scope } from "effect"
import { build } from "esbuild"
import { spawn } from "node:child_process"
import { mkdtempSync, rmSync, symlinkSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import type { Order } from "./worker.ts"
import { waitingFor } from "../../support/Waiting.ts"

const here = fileURLToPath(new URL(".", import.meta.url))

/** The worker as one JavaScript file, in a folder that goes with the scope. */
export const program = Effect.map(
  Effect.acquireRelease(
    Effect.promise(async () => {
      const folder = mkdtempSync(join(tmpdir(), "daybook-worker-"))
      symlinkSync(join(here, "..", "..", "..", "node_modules"), join(folder, "node_modules"))
      await build({
        entryPoints: [join(here, "workerMain.ts")],
        outfile: join(folder, "worker.cjs"),
        bundle: true,
        platform: "node",
        format: "cjs",
        conditions: ["@daybook/source"],
        external: ["better-sqlite3", "sharp"],
        logLevel: "error"
      })
      return folder
    }),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
  ),
  (folder) => join(folder, "worker.cjs")
)

export interface Worker {
  /** The next line; `ended` when the process is gone and all its lines were taken. */
  readonly line: Effect.Effect<string>
  /** Ends the process at once, as a power cut would, and waits for its last line. */
  readonly kill: Effect.Effect<void>
  readonly pause: Effect.Effect<void>
  readonly goOn: Effect.Effect<void>
}

/** Starts a worker, by way of another command if one is given; it is killed with the scope. */
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
      // A line that the kill cut in two is none: it has no end.
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
