/**
 * Writes the command's output. Each write waits for the reader, so a slow reader slows the source and no buffer grows. A
 * closed reader and a failed write are typed errors. All text for a terminal or stderr is sanitized here.
 * Spec: CL-33, CL-34, CL-44, CL-150 in specs/cli.md.
 */
import { Context, type Duration, Effect, Layer } from "effect"
import { jsonLine, sentences, visible } from "../render/Plain.ts"
import { OutputClosed, OutputFailed } from "../support/Errors.ts"
import { describe, type Sink, standard, type Trouble } from "../support/Stream.ts"

export class Output extends Context.Tag("@daybook/cli/Output")<
  Output,
  {
    /** Whether stdout is a terminal. */
    readonly terminal: boolean
    readonly write: (text: string) => Effect.Effect<void, OutputClosed | OutputFailed>
    /** Writes redrawn lines of `render/LiveLines.ts` or `render/RunView.ts`, sanitized there, with cursor movements and styles. */
    readonly draw: (to: "stdout" | "stderr", picture: string) => Effect.Effect<void, OutputClosed | OutputFailed>
    /** Writes a note to stderr. If the write fails, the work continues and `complete` fails at the end. */
    readonly note: (text: string) => Effect.Effect<void>
    /** Writes errors to stderr as they are, or sanitized for a terminal. A lost error counts as a lost note. */
    readonly error: (text: string) => Effect.Effect<void>
    /** The same on stdout, for writers that cannot fail. */
    readonly print: (text: string) => Effect.Effect<void>
    /** Fails if a note or a print was lost for another reason than a closed reader. */
    readonly complete: Effect.Effect<void, OutputFailed>
  }
>() {}

/** Writes each value as a line of JSON. */
export const writeJson = (...values: ReadonlyArray<unknown>) =>
  Effect.flatMap(Output, ({ terminal, write }) =>
    write(values.map((value) => `${jsonLine(value, terminal)}\n`).join(""))
  )

/** Reports on a terminal from time to time what `says` returns, until the scope closes; nothing for "". */
export const reporting = (every: Duration.DurationInput, says: () => string) =>
  Effect.gen(function* () {
    if (process.stderr.isTTY !== true) return
    const { note } = yield* Output
    const report = Effect.flatMap(Effect.sync(says), (text) => (text === "" ? Effect.void : note(`${text}\n`)))
    yield* Effect.forkScoped(Effect.forever(Effect.delay(report, every)))
  })

const write = (sink: Sink, text: string) =>
  Effect.async<void, Trouble>((resume) =>
    sink.write(text, (trouble) => resume(trouble === undefined ? Effect.void : Effect.fail(trouble)))
  )

const failure = (stream: "stdout" | "stderr", trouble: Trouble) =>
  new OutputFailed({ message: `${stream} cannot be written: ${describe(trouble)}` })

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
    const send = (text: string) =>
      Effect.mapError(write(stdout, text), (trouble) =>
        trouble.closed ? new OutputClosed({}) : failure("stdout", trouble)
      )
    const safe = (text: string) => (stdout.terminal ? visible(text) : text)
    return Output.of({
      terminal: stdout.terminal,
      write: (text) => send(safe(text)),
      draw: (to, picture) => (to === "stdout" ? send(picture) : losing("stderr", picture)),
      error: (text) => losing("stderr", stderr.terminal ? visible(text) : text),
      note: (text) => losing("stderr", sentences(visible(text), stderr.columns() ?? Number.MAX_SAFE_INTEGER)),
      print: (text) => losing("stdout", safe(text)),
      complete: Effect.suspend(() => lost ?? Effect.void)
    })
  })
)
