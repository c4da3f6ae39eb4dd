/**
 * The edge of the process: connects streams and logs, and sets the exit code. A failure is one sentence on stderr, with a
 * stack trace only with `DAYBOOK_DEBUG`. Spec: CL-40..CL-42 in specs/cli.md.
 */
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import * as Terminal from "@effect/platform/Terminal"
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

/** The parser asks for a terminal and files, for prompts and path arguments, which no verb has. */
const unused = Effect.dieMessage("the parser reads no terminal")
const services = Layer.mergeAll(
  Output.layer,
  FileSystem.layerNoop({}),
  Path.layer,
  Layer.succeed(Terminal.Terminal, {
    columns: Effect.succeed(80),
    rows: Effect.succeed(24),
    isTTY: Effect.succeed(false),
    readInput: unused,
    readLine: unused,
    display: () => unused
  })
)

/** Runs the words after `daybook` and ends the process. */
export const run = <E>(verbs: Cli.Verbs<E>, version: string, words: ReadonlyArray<string>): void => {
  const program = Effect.zipRight(
    Cli.run(verbs, version, words),
    Effect.flatMap(Output.Output, ({ complete }) => complete)
  ).pipe(Effect.provide(services), Effect.provide(logs))
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
