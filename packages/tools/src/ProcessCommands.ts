/** Runs each command in a process of its own, in the host's sandbox if there is one. Spec: TO-61, TO-62, SB-1. */
import { Duration, Effect, Fiber } from "effect"
import { start as startConfined } from "@daybook/core/child/Sandbox"
import { bounded, watch } from "@daybook/core/child/SandboxWatch"
import { runShell } from "@daybook/core/child/ShellProcess"
import { ToolFailure } from "@daybook/core/domain/ToolError"
import type { CommandPlace, CommandRequest, Ended } from "./CommandRunner.ts"

const stopped = (why: NonNullable<Ended["stopped"]>): Ended => ({ code: null, signal: null, stopped: why })

const start = Effect.fnUntraced(function* ({ confined, cwd, env, seconds, text }: CommandRequest) {
  const bounds = confined === undefined ? [] : yield* bounded(confined.limits)
  const shell =
    confined === undefined
      ? yield* runShell({ command: text, cwd, env })
      : yield* Effect.catchTag(
          startConfined(confined.launch, (prefix) =>
            runShell({ command: text, cwd: "/", env: confined.env, prefix: [...bounds, ...prefix] })
          ),
          "SandboxRefused",
          ({ message }) => new ToolFailure({ type: "sandbox.denied", message })
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
