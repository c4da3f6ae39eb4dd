/** Runs `daybook shell exec`. Spec: SL-182..SL-184 in specs/shell.md. */
import { Effect, Option, Struct } from "effect"
import { Budget } from "@daybook/shell/domain/ExecResult"
import { decode } from "@daybook/shell/mcp/Arguments"
import { defaults } from "@daybook/shell/ShellOptions"
import { jsonLine } from "../render/Plain.ts"
import { resultNotes } from "../render/ShellText.ts"
import { CommandEnded, UsageError } from "../support/Errors.ts"
import * as Signal from "../support/Signal.ts"
import { Output } from "../terminal/Output.ts"
import * as ShellCommand from "./ShellCommand.ts"
import { asFlag } from "./ShellFlags.ts"
import { existing } from "./ShellHostWork.ts"

export interface Given {
  readonly id: string
  readonly words: ReadonlyArray<string>
  readonly timeout: Option.Option<number>
  readonly grep: Option.Option<string>
  readonly context: Option.Option<number>
  readonly head: Option.Option<number>
  readonly tail: Option.Option<number>
  readonly maxChars: Option.Option<number>
  readonly stdin: boolean
  readonly json: boolean
}

const refuse = (message: string) => new UsageError({ message })

const keepOf = (head: number | undefined, tail: number | undefined) => {
  if (head !== undefined && tail !== undefined) return { keep: { mode: "head_tail", head, tail } }
  if (head !== undefined) return { keep: { mode: "head", n: head } }
  return tail === undefined ? {} : { keep: { mode: "tail", n: tail } }
}

/** The budget of the options; undefined without any. */
const budgetOf = Effect.fnUntraced(function* (given: Given) {
  const [pattern, context] = [Option.getOrUndefined(given.grep), Option.getOrUndefined(given.context)]
  const [head, tail] = [Option.getOrUndefined(given.head), Option.getOrUndefined(given.tail)]
  const characters = Option.getOrUndefined(given.maxChars)
  if (context !== undefined && pattern === undefined) return yield* refuse("--context needs --grep")
  const budget = {
    ...(pattern === undefined ? {} : { grep: { pattern, ...(context === undefined ? {} : { context }) } }),
    ...keepOf(head, tail),
    ...(characters === undefined ? {} : { max_chars: characters })
  }
  return Object.keys(budget).length === 0 ? undefined : yield* decode(Budget, budget)
})

/** Flags by the options that they set. */
const flagsOf = ({ head }: Given) => ({
  "grep.pattern": "--grep",
  "grep.context": "--context",
  "keep.head": "--head",
  "keep.tail": "--tail",
  "keep.n": Option.isSome(head) ? "--head" : "--tail",
  max_chars: "--max-chars",
  timeout_secs: "--timeout",
  command: "COMMAND"
})

const line = (text: string): string => (text === "" ? "" : `${text}\n`)

const executed = Effect.fnUntraced(function* (given: Given) {
  const output = yield* Output
  const { id, json, stdin, words } = given
  if (words.length === 0) return yield* refuse("shell exec: COMMAND is missing; daybook help shell exec tells more")
  const budget = yield* budgetOf(given)
  const timeoutSeconds = Option.getOrElse(given.timeout, () => defaults.longestTimeoutSeconds)
  const stop = yield* Signal.first
  const live = !json && budget === undefined
  const result = yield* ShellCommand.run(yield* existing, {
    id,
    command: words.join(" "),
    timeoutSeconds,
    input: stdin,
    live,
    print: yield* ShellCommand.printing,
    stop,
    ...(budget === undefined ? {} : { budget })
  })
  if (json) yield* output.write(`${jsonLine(result, output.terminal)}\n`)
  else if (!live) {
    yield* output.write(line(result.stdout))
    yield* output.error(line(result.stderr))
  }
  // After live output, the handle of the whole output is not needed.
  if (!json) yield* output.note(resultNotes(id, live ? Struct.omit(result, "output") : result))
  if (result.exit_code !== 0) return yield* new CommandEnded({ code: result.exit_code })
}, Effect.scoped)

export const run = Effect.fn("Command.shell.exec")((given: Given) =>
  Effect.catchTag(executed(given), "InvalidOption", asFlag(flagsOf(given)))
)
