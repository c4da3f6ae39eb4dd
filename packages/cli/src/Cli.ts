/** Defines the command `daybook`: its verbs, and the way from words to an effect. Spec: CL-1..CL-3 in specs/cli.md. */
import * as CliConfig from "@effect/cli/CliConfig"
import * as Command from "@effect/cli/Command"
import * as ValidationError from "@effect/cli/ValidationError"
import { Console, type Context, Effect } from "effect"
import * as Arguments from "./arguments/Arguments.ts"
import type { Verb } from "./arguments/Verb.ts"
import { agents } from "./commands/agents.ts"
import { answer } from "./commands/answer.ts"
import { backup, restore } from "./commands/backup.ts"
import { budget } from "./commands/budget.ts"
import { compact } from "./commands/compact.ts"
import { context } from "./commands/context.ts"
import { interrupt, remove, rename, switchTo } from "./commands/control.ts"
import { doctor } from "./commands/doctor.ts"
import { events } from "./commands/events.ts"
import { files } from "./commands/files.ts"
import { messages, show } from "./commands/messages.ts"
import { models } from "./commands/models.ts"
import { permissions } from "./commands/permissions.ts"
import { prompt } from "./commands/prompt.ts"
import { resume } from "./commands/resume.ts"
import { serve } from "./commands/serve.ts"
import { sessions } from "./commands/sessions.ts"
import { stats } from "./commands/stats.ts"
import { trust } from "./commands/trust.ts"
import { failureOf } from "./render/Failure.ts"
import { oneLine } from "./render/Plain.ts"
import { UsageError } from "./support/Errors.ts"
import { didYouMean } from "./support/Nearest.ts"
import { Output } from "./terminal/Output.ts"

/** The verbs, as help lists them. */
export const verbs: ReadonlyArray<Verb> = [
  prompt,
  events,
  sessions,
  messages,
  show,
  context,
  resume,
  answer,
  interrupt,
  compact,
  budget,
  switchTo,
  rename,
  remove,
  permissions,
  agents,
  models,
  trust,
  serve,
  files,
  stats,
  backup,
  restore,
  doctor
]

const root = Command.make("daybook").pipe(
  Command.withSubcommands([
    prompt.command,
    events.command,
    sessions.command,
    messages.command,
    show.command,
    context.command,
    resume.command,
    answer.command,
    interrupt.command,
    compact.command,
    budget.command,
    switchTo.command,
    rename.command,
    remove.command,
    permissions.command,
    agents.command,
    models.command,
    trust.command,
    serve.command,
    files.command,
    stats.command,
    backup.command,
    restore.command,
    doctor.command
  ])
)

/** Drops the parser's own error output, because `render/Failure.ts` reports errors; its other output goes through Output. */
const throughOutput = (console: Console.Console, { print }: Context.Tag.Service<Output>): Console.Console => ({
  ...console,
  error: () => Effect.void,
  log: (...parts) => print(`${parts.map(String).join(" ")}\n`)
})

/** The parser's error for a verb's words, with the verb and advice. */
const inWords = <E>(name: string, error: E): E | UsageError => {
  if (!ValidationError.isValidationError(error)) return error
  const { sentence = "" } = failureOf(error)
  const [, missing] = /^Missing argument <(.+)>$/.exec(sentence) ?? []
  const [, extra] = /^Received unknown argument: '(.*)'$/.exec(sentence) ?? []
  if (missing !== undefined) {
    return new UsageError({ message: `${name}: ${missing} is missing; daybook help ${name} tells more` })
  }
  return extra === undefined ? error : tooMany(name, extra)
}

const tooMany = (before: string, word: string) =>
  new UsageError({ message: `${before}: "${oneLine(word, 40)}" is one word too many` })

/** Runs the words after `daybook`. bin/daybook.js prints help before. */
export const run = (version: string, words: ReadonlyArray<string>) => {
  const parse = (line: ReadonlyArray<string>) =>
    Effect.flatMap(Output, (output) =>
      Effect.consoleWith((console) =>
        Command.run(root, { name: "daybook", version, executable: "daybook" })(["node", "daybook", ...line]).pipe(
          Effect.withConsole(throughOutput(console, output)),
          Effect.provide(CliConfig.layer({ isCaseSensitive: true, autoCorrectLimit: 0 }))
        )
      )
    )
  const [first = "", second = ""] = words
  if (first === "--completions") return parse(words)
  if (first === "--version") return tooMany(first, second)
  // Help gets here only when its command does not exist, or when more than one is named.
  const isHelp = ["help", "--help", "-h"].includes(first)
  const [name = "", ...rest] = isHelp ? words.slice(1) : words
  const verb = verbs.find((candidate) => candidate.name === name)
  if (verb === undefined) {
    const near = didYouMean(
      name,
      verbs.map((known) => known.name)
    )
    return new UsageError({
      message: `there is no command "${oneLine(name, 40)}"${near}${near === "" ? ";" : ""} daybook --help lists them`
    })
  }
  if (isHelp) return tooMany(`${first} ${name}`, rest[0] ?? "")
  return Effect.flatMap(Arguments.arrange(`daybook ${name}`, rest, verb.flags), (line) =>
    Effect.mapError(parse([name, ...line]), (error) => inWords(name, error))
  )
}
