/** Runs commands in a live shell and collects their output. */
import { Deferred, Effect, type Scope } from "effect"
import type { TransportFailed } from "../../../packages/shell/src/domain/ShellError.ts"
import * as LiveShell from "../../../packages/shell/src/session/LiveShell.ts"
import type { Transport } from "../../../packages/shell/src/transport/Program.ts"

export interface Answer {
  readonly stdout: string
  readonly stderr: string
  readonly code: number | undefined
  readonly cwd: string | undefined
  readonly stopped: boolean
  readonly closed: LiveShell.Ending | undefined
}

export interface TestShell {
  readonly live: LiveShell.LiveShell
  readonly run: (text: string) => Effect.Effect<Answer>
  /** Runs a command and stops it when it has printed something. */
  readonly stop: (text: string) => Effect.Effect<Answer>
  /** The late output since the last call. */
  readonly late: () => string
}

const collect = () => {
  const chunks: Array<Buffer> = []
  return {
    sink: (bytes: Uint8Array) => void chunks.push(Buffer.from(bytes)),
    text: () => Buffer.concat(chunks).toString()
  }
}

interface RunOptions extends Omit<LiveShell.Command, "text"> {
  readonly onStdout?: () => void
}

export const openShell = (
  transport: Transport,
  cwd: string | undefined
): Effect.Effect<TestShell, TransportFailed, Scope.Scope> =>
  Effect.gen(function* () {
    let late = collect()
    const live = yield* LiveShell.open(transport, { cwd, late: (bytes) => late.sink(bytes) })
    const run = (text: string, { onStdout = () => undefined, ...options }: RunOptions = {}) =>
      Effect.suspend(() => {
        const stdout = collect()
        const stderr = collect()
        const sink = (bytes: Uint8Array) => {
          stdout.sink(bytes)
          onStdout()
        }
        return Effect.map(live.run({ text, ...options }, { stdout: sink, stderr: stderr.sink }), (ended): Answer => ({
          stdout: stdout.text(),
          stderr: stderr.text(),
          code: ended?.code,
          cwd: ended?.cwd,
          stopped: ended?.stopped ?? false,
          closed: ended?.closed
        }))
      })
    return {
      live,
      run: (text) => run(text),
      stop: (text) =>
        Effect.flatMap(Deferred.make<void>(), (printed) =>
          run(text, {
            stop: Deferred.await(printed),
            onStdout: () => Deferred.unsafeDone(printed, Effect.void)
          })
        ),
      late: () => {
        const text = late.text()
        late = collect()
        return text
      }
    }
  })
