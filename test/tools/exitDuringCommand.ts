/** A host that leaves by `process.exit` as soon as its command reports progress: run by `BashExit.test.ts`. */
import { Effect, Stream } from "effect"
import { runShell } from "../../packages/core/src/child/ShellProcess.ts"

const [, , folder = ""] = process.argv

await Effect.runPromise(
  Effect.scoped(
    Effect.gen(function* () {
      const command = "exec 3>life; echo alive >&3; sleep 1000 & echo started; wait"
      const shell = yield* runShell({ command, cwd: folder, env: process.env })
      yield* Stream.runForEach(shell.output, () => Effect.sync(() => process.exit(7)))
    })
  )
)
