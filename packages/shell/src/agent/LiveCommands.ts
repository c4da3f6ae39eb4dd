/**
 * Gives the tool `bash` a live shell per session, for agents with `bash: live`. Light: the shells are loaded with the first
 * command. Spec: TO-130 in specs/tools.md, SL-230 in specs/shell.md.
 */
import { Effect, Layer, Scope } from "effect"
import { CommandRunner } from "@daybook/tools/CommandRunner"
import { ToolFailure } from "@daybook/core/domain/ToolError"
import type { EventLog } from "@daybook/log/log/EventLog"
import type { LiveCommandsSettings } from "../ShellOptions.ts"

const load = Effect.promise(() => import("./SessionShells.ts"))

/**
 * Live shells for `bash`, as the option `commands` of the runtime. The end of its scope closes them.
 *
 * @example
 * ```ts
 * import { Daybook } from "@daybook/embedded"
 * import * as LiveCommands from "@daybook/shell/agent/LiveCommands"
 *
 * export const runtime = Daybook.layer({
 *   filename: "daybook.sqlite",
 *   agents: [{ name: "build", permissions: [], bash: "live" }],
 *   commands: LiveCommands.layer()
 * })
 * ```
 */
export const layer = (settings: LiveCommandsSettings = {}): Layer.Layer<never, never, EventLog> =>
  Layer.scoped(
    CommandRunner,
    Effect.gen(function* () {
      const scope = yield* Effect.scope
      const context = yield* Effect.context<EventLog>()
      const first = yield* Effect.makeSemaphore(1)
      const made = Effect.mapError(
        Effect.flatMap(load, ({ make }) => make(settings)),
        ({ message }) => new ToolFailure({ type: "tool.execution", message: `there are no live shells: ${message}` })
      )
      let kept: Effect.Effect.Success<typeof made> | undefined
      const make = Effect.uninterruptibleMask((restore) =>
        Effect.tap(restore(Effect.provide(Scope.extend(made, scope), context)), (all) =>
          Effect.sync(() => (kept = all))
        )
      )
      const shells = first.withPermits(1)(Effect.suspend(() => (kept === undefined ? make : Effect.succeed(kept))))
      return { live: { enter: (call) => Effect.flatMap(shells, ({ enter }) => enter(call)) } }
    })
  )
