/** Runs words of the command line within the screen. `Cli.ts` provides it. Spec: SC-531 in specs/screen.md. */
import { Context, Effect } from "effect"
import type { Output } from "../terminal/Output.ts"

type Run = (words: ReadonlyArray<string>) => Effect.Effect<void, unknown, Output>

export class Words extends Context.Reference<Words>()("@daybook/cli/Words", {
  defaultValue: (): Run => () => Effect.void
}) {}
