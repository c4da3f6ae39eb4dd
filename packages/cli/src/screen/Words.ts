/** Runs words of the command line within the screen. `Cli.ts` provides it. Spec: SC-531 in specs/screen.md. */
import { Context, Effect } from "effect"
import { visible } from "../render/Plain.ts"
import { Output } from "../terminal/Output.ts"

type Run = (words: ReadonlyArray<string>) => Effect.Effect<void, unknown, Output>

export class Words extends Context.Reference<Words>()("@daybook/cli/Words", {
  defaultValue: (): Run => () => Effect.void
}) {}

/** Runs a verb, and then gives all that it wrote. */
export const gathered = (verb: ReturnType<Run>, show: (text: string) => void): Effect.Effect<void, unknown> =>
  Effect.suspend(() => {
    let text = ""
    const add = (part: string) =>
      Effect.sync(() => {
        text += part
      })
    const line = (part: string) => add(visible(part))
    const written = Output.of({
      terminal: true,
      write: line,
      draw: (_, picture) => add(picture),
      note: line,
      error: line,
      print: line,
      complete: Effect.void
    })
    return Effect.ensuring(
      Effect.provideService(verb, Output, written),
      Effect.sync(() => show(text))
    )
  })
