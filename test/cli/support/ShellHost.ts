/** A host of live shells that the command starts, and what a test looks at beside the command's own verbs. */
import { join } from "node:path"
import { Effect, type Scope } from "effect"
import * as HostClient from "../../../packages/shell/src/host/HostClient.ts"
import { gone } from "./Gone.ts"
import { type Ended, type Options, type Place, place, type Running } from "./Process.ts"

export interface ShellPlace extends Place {
  readonly socket: string
  readonly log: string
  /** Runs `daybook shell` to the end. */
  readonly shell: (words: ReadonlyArray<string>, options?: Options) => Effect.Effect<Ended>
  readonly startShell: (words: ReadonlyArray<string>, options?: Options) => Effect.Effect<Running, never, Scope.Scope>
  /** Opens a shell and returns its id. */
  readonly create: (...words: ReadonlyArray<string>) => Effect.Effect<string>
  /** The process of the host, which must run. */
  readonly pid: Effect.Effect<number>
}

const pidOf = (socket: string) => Effect.scoped(Effect.map(HostClient.connect(socket), ({ hello }) => hello.pid))

/** A place whose host, if one runs at the end, is ended with the scope. */
export const shellPlace = Effect.fnUntraced(function* (env: Readonly<Record<string, string>> = {}) {
  const here = yield* place
  const folder = join(here.root, "data", "shell-host")
  const socket = join(folder, "socket")
  const withEnv = (options: Options = {}) => ({ ...options, env: { ...env, ...options.env } })
  const shell: ShellPlace["shell"] = (words, options) => here.run(["shell", ...words], withEnv(options))
  yield* Effect.addFinalizer(() =>
    pidOf(socket).pipe(
      Effect.tap((pid) => process.kill(pid, "SIGTERM")),
      Effect.flatMap(gone),
      Effect.catchAll(() => Effect.void)
    )
  )
  const made: ShellPlace = {
    ...here,
    socket,
    log: join(folder, "log"),
    shell,
    startShell: (words, options) => here.startAlone(["shell", ...words], withEnv(options)),
    create: (...words) =>
      Effect.map(shell(["create", ...words]), ({ code, stderr, stdout }) => {
        if (code !== 0) throw new Error(`create ended with ${code}: ${stderr}`)
        return stdout.trim()
      }),
    pid: Effect.orDie(pidOf(socket))
  }
  return made
})
