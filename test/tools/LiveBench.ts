/** A workbench whose agent runs its commands in the session's live shell, with a log in memory. */
import { Context, Effect, Layer } from "effect"
import type { ToolOutput } from "../../packages/core/src/domain/ToolOutput.ts"
import { draft } from "../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import * as LiveCommands from "../../packages/shell/src/agent/LiveCommands.ts"
import type { LiveCommandsSettings } from "../../packages/shell/src/ShellOptions.ts"
import { memoryLog } from "../support/Database.ts"
import { makeWorkbench, type Options, sessionID, textOf as wholeTextOf } from "./Workbench.ts"

/** What the model reads, without what a new live shell says of itself. */
export const textOf = (output: ToolOutput): string =>
  wholeTextOf(output)
    .replace(/\n?\[This is a new shell; it has nothing of an earlier one\.\]$/, "")
    .replace(" This is a new shell; it has nothing of an earlier one.", "")

export const makeLiveBench = Effect.fnUntraced(function* (
  options: Options = {},
  settings: LiveCommandsSettings = {},
  store: typeof memoryLog = memoryLog
) {
  const live = yield* Effect.orDie(Layer.build(LiveCommands.layer(settings).pipe(Layer.provideMerge(store))))
  const bench = yield* Effect.provide(makeWorkbench({ ...options, bash: "live" }), live)
  const log = Context.get(live, EventLog)
  yield* Effect.orDie(log.append(sessionID, [draft("session.created", { location: { directory: bench.folder } })]))
  return { ...bench, context: Context.merge(live, bench.context), log }
})
