/**
 * The edge of the process: connects streams and logs, and sets the exit code. A failure is one sentence on stderr, with a
 * stack trace only with `DAYBOOK_DEBUG`. Spec: CL-40..CL-42 in specs/cli.md.
 */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodePath from "@effect/platform-node/NodePath"
import * as NodeTerminal from "@effect/platform-node/NodeTerminal"
import { Cause, Effect, Exit, Layer, Logger, LogLevel } from "effect"
import { rootHelp, verbHelp } from "./arguments/Help.ts"
import * as Cli from "./Cli.ts"
import { failureOfCause } from "./render/Failure.ts"
import { visible } from "./render/Visible.ts"
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
export const main = (version: string, words: ReadonlyArray<string>): void => {
  const program = Effect.zipRight(
    Cli.run(version, words),
    Effect.flatMap(Output.Output, ({ complete }) => complete)
  ).pipe(
    Effect.provide(Layer.mergeAll(Output.layer, NodeFileSystem.layer, NodePath.layer, NodeTerminal.layer)),
    Effect.provide(logs)
  )
  Effect.runFork(program).addObserver((exit) => {
    if (Exit.isSuccess(exit)) process.exit(0)
    const { code, sentence } = failureOfCause(exit.cause)
    const words = sentence === undefined || sentence === "" ? "" : `daybook: ${sentence}\n`
    const where = debug ? `${Cause.pretty(exit.cause, { renderErrorCause: true })}\n` : ""
    standard().stderr.write(visible(`${words}${where}`), () => process.exit(code))
  })
}

/** Every help text, for the file that the build writes. */
export const help = (version: string) => ({
  version,
  root: rootHelp(version, Cli.verbs),
  verbs: Object.fromEntries(Cli.verbs.map((verb) => [verb.name, verbHelp(verb)]))
})
