/** Runs each command in a process of its own, in the host's sandbox if there is one. Spec: TO-61, TO-62, SB-1. */
import { Duration, Effect, Fiber } from "effect"
import { bounded } from "@daybook/core/child/ControlGroup"
import { watch } from "@daybook/core/child/SandboxWatch"
import { runShell } from "@daybook/core/child/ShellProcess"
import type { CommandPlace, CommandRequest, Ended } from "./CommandRunner.ts"

const stopped = (why: NonNullable<Ended["stopped"]>): Ended => ({ code: null, signal: null, stopped: why })

const start = Effect.fnUntraced(function* ({ confined, cwd, env, seconds, text }: CommandRequest) {
  const bounds = confined === undefined ? [] : yield* bounded(confined.limits)
  const shell = yield* runShell(
    confined === undefined
      ? { command: text, cwd, env }
      : { command: text, cwd: "/", env: confined.env, prefix: [...bounds, ...confined.prefix] }
  )
  const passed =
    confined === undefined
      ? Effect.never
      : Effect.map(
          watch(() => shell.pid, confined.limits),
          stopped
        )
  const exit: Effect.Effect<Ended> = Effect.timeoutTo(Effect.raceFirst(shell.exit, passed), {
    duration: Duration.seconds(seconds),
    onSuccess: (ended) => ended,
    onTimeout: () => stopped("timeout")
  })
  const fiber = yield* Effect.forkScoped(exit)
  return { output: shell.output, exit: Fiber.join(fiber), end: shell.end }
})

/** A process for each command. Nothing of one is left for the next. */
export const processPlace: CommandPlace = { cwd: undefined, before: "", start }
