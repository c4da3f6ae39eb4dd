/**
 * Where the command writes. stdout is waited for, so that a slow reader slows the source and nothing piles up. A reader
 * that went away and output that cannot be written are typed failures. Spec: CL-33, CL-34, CL-44 in specs/cli.md.
 */
import { Context, Effect, Layer } from "effect"
import { OutputClosed, OutputFailed } from "./Errors.ts"
import { describe, standard, type Sink, type Trouble } from "./Stream.ts"

export class Output extends Context.Tag("@daybook/cli/Output")<
  Output,
  {
    /** Whether stdout is a terminal. */
    readonly terminal: boolean
    readonly write: (text: string) => Effect.Effect<void, OutputClosed | OutputFailed>
    /** A note on stderr. The work goes on when it cannot be written; `complete` fails at the end. */
    readonly note: (text: string) => Effect.Effect<void>
    /** The same on stdout, for writers that cannot fail. */
    readonly print: (text: string) => Effect.Effect<void>
    /** Fails when a note or a print was lost for another reason than that its reader went away. */
    readonly complete: Effect.Effect<void, OutputFailed>
  }
>() {}

const write = (sink: Sink, text: string) =>
  Effect.async<void, Trouble>((resume) =>
    sink.write(text, (trouble) => resume(trouble === undefined ? Effect.void : Effect.fail(trouble)))
  )

const failure = (stream: "stdout" | "stderr", trouble: Trouble) =>
  new OutputFailed({ message: `${stream} cannot be written: ${describe(trouble)}` })

/** The process's own streams. */
export const layer = Layer.effect(
  Output,
  Effect.sync(() => {
    const { stderr, stdout } = standard()
    let lost: OutputFailed | undefined
    const losing = (stream: "stdout" | "stderr", text: string) =>
      Effect.catchAll(write(stream === "stdout" ? stdout : stderr, text), (trouble) =>
        Effect.sync(() => {
          if (!trouble.closed) lost ??= failure(stream, trouble)
        })
      )
    return Output.of({
      terminal: stdout.terminal,
      write: (text) =>
        Effect.mapError(write(stdout, text), (trouble) =>
          trouble.closed ? new OutputClosed({}) : failure("stdout", trouble)
        ),
      note: (text) => losing("stderr", text),
      print: (text) => losing("stdout", text),
      complete: Effect.suspend(() => lost ?? Effect.void)
    })
  })
)
