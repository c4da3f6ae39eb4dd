/**
 * A host that leaves by `process.exit` as soon as its command reports progress, or says so and stays: run by
 * `BashExit.test.ts`.
 */
import { Effect, Stream } from "effect"
import { runShell } from "../../packages/core/src/child/ShellProcess.ts"

const [, , folder = "", stays] = process.argv

await Effect.runPromise(
  Effect.scoped(
    Effect.gen(function* () {
      const command = "exec 3>life; echo alive >&3; sleep 1000 & echo started; wait"
      const shell = yield* runShell({ command, cwd: folder, env: process.env })
      yield* Stream.runForEach(shell.output, () =>
        Effect.sync(() => (stays === undefined ? process.exit(7) : console.log("running")))
      )
    })
  )
)
