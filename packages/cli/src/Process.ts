/**
 * The edge of the process: connects streams and logs, and sets the exit code. A failure is one sentence on stderr, with a
 * stack trace only with `DAYBOOK_DEBUG`. Spec: CL-40..CL-42 in specs/cli.md.
 */
import { Cause, Effect, Exit, Layer, Logger, LogLevel } from "effect"
import * as Cli from "./Cli.ts"
import { failureOfCause } from "./render/Failure.ts"
import { visible } from "./render/Visible.ts"
import { sentences } from "./render/Width.ts"
import { standard } from "./support/Stream.ts"
import * as Output from "./terminal/Output.ts"

const debug = (process.env["DAYBOOK_DEBUG"] ?? "") !== ""

/** stdout is for the answer: logs go to stderr, and only with `DAYBOOK_DEBUG`. */
const logs = debug
  ? Layer.merge(
      Logger.replace(
        Logger.defaultLogger,
        Logger.map(Logger.logfmtLogger, (line) => standard().stderr.write(`${visible(line)}\n`, () => undefined))
      ),
      Logger.minimumLogLevel(LogLevel.Debug)
    )
  : Logger.remove(Logger.defaultLogger)

/** Runs the words after `daybook` and ends the process. */
export const run = (verbs: Cli.Verbs, words: ReadonlyArray<string>): void => {
  const program = Effect.zipRight(
    Cli.run(verbs, words),
    Effect.flatMap(Output.Output, ({ complete }) => complete)
  ).pipe(Effect.provide(Output.layer), Effect.provide(logs))
  Effect.runFork(program).addObserver((exit) => {
    if (Exit.isSuccess(exit)) return process.exit(0)
    const { code, sentence } = failureOfCause(exit.cause)
    const words = sentence === undefined || sentence === "" ? "" : `daybook: ${sentence}\n`
    const where = debug ? `${Cause.pretty(exit.cause, { renderErrorCause: true })}\n` : ""
    const { stderr } = standard()
    const shown = sentences(visible(`${words}${where}`), stderr.columns() ?? Number.MAX_SAFE_INTEGER)
    stderr.write(shown, () => process.exit(code))
  })
}
