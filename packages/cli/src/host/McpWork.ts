/**
 * Runs `daybook mcp` until the client closes standard input, or a signal. Spec: SL-126, SL-129 in specs/shell.md.
 *
 *   end of input | signal -> calls are interrupted -> shells close (shutdown) -> the database closes
 */
import { Effect } from "effect"
import * as ShellMcp from "@daybook/shell/mcp/ShellMcp"
import * as Signal from "../support/Signal.ts"
import * as Watchdog from "../support/Watchdog.ts"
import * as ShellsHost from "./ShellsHost.ts"

// The build defines it.
declare const DAYBOOK_VERSION: string

export const run = Effect.fn("Command.mcp")(function* (options: { readonly record: boolean }) {
  const signal = yield* Signal.first
  yield* Watchdog.begin()
  yield* Effect.raceFirst(ShellMcp.serve({ version: DAYBOOK_VERSION }), signal).pipe(
    Effect.provide(ShellsHost.layer(options.record ? "daybook mcp" : undefined))
  )
}, Effect.scoped)
