/**
 * Where the command writes. stdout is waited for, so that a slow reader slows the source and nothing piles up; a reader
 * that went away is a typed failure, not a crash. Spec: CL-33, CL-34 in specs/cli.md.
 */
import { Context, Effect, Layer } from "effect"
import { OutputClosed } from "./Errors.ts"

export class Output extends Context.Tag("@daybook/cli/Output")<
  Output,
  {
    /** Whether stdout is a terminal. */
    readonly terminal: boolean
    readonly write: (text: string) => Effect.Effect<void, OutputClosed>
    /** A note beside the output; whether it arrives is nobody's concern. */
    readonly note: (text: string) => Effect.Effect<void>
  }
>() {}

const write = (text: string): Effect.Effect<void, OutputClosed> =>
  text === ""
    ? Effect.void
    : Effect.async<void, OutputClosed>((resume) => {
        process.stdout.write(text, (error) =>
          resume(error === undefined || error === null ? Effect.void : Effect.fail(new OutputClosed({})))
        )
      })

/** The process's own streams. */
export const layer = Layer.effect(
  Output,
  Effect.sync(() => {
    // A write's callback tells its failure; without a listener the stream would throw it as well.
    process.stdout.on("error", () => undefined)
    process.stderr.on("error", () => undefined)
    return Output.of({
      terminal: process.stdout.isTTY === true,
      write,
      note: (text) => Effect.sync(() => void process.stderr.write(text))
    })
  })
)
