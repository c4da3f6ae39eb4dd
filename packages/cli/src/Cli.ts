/**
 * The way from the words after `daybook` to an effect, for all verbs (`Verbs.ts`) or the reading ones (`ReadingVerbs.ts`).
 * Spec: CL-1..CL-3 in specs/cli.md.
 */
import type * as CliApp from "@effect/cli/CliApp"
import * as CliConfig from "@effect/cli/CliConfig"
import * as ValidationError from "@effect/cli/ValidationError"
import { Console, Context, Effect } from "effect"
import * as Actions from "./arguments/Actions.ts"
import * as Arguments from "./arguments/Arguments.ts"
import type { Verb } from "./arguments/Verb.ts"
import * as Remote from "./host/Remote.ts"
import { failureOf } from "./render/Failure.ts"
import { oneLine } from "./render/Plain.ts"
import * as TopLevel from "./screen/TopLevel.ts"
import { Words } from "./screen/Words.ts"
import { needsDatabase, UsageError } from "./support/Errors.ts"
import { didYouMean } from "./support/Nearest.ts"
import { Output } from "./terminal/Output.ts"

/** Verbs, as help lists them, and their parser: runs an argument vector. */
export interface Verbs<E> {
  readonly verbs: ReadonlyArray<Verb>
  readonly parser: (version: string) => (argv: ReadonlyArray<string>) => Effect.Effect<void, E, Services>
}

/** What verbs and parser find in the process. */
export type Services = CliApp.CliApp.Environment | Output

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
  new UsageError({ message: `${before}: unexpected argument "${oneLine(word, 40)}"` })

/** Runs the words after `daybook`. bin/daybook.js prints help before. */
export const run = <E>(known: Verbs<E>, version: string, all: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const { server, words } = yield* Remote.named(all, process.env)
    const environment = yield* Effect.context<CliApp.CliApp.Environment>()
    // The caller's services come first: the screen has an output of its own.
    const within = (more: ReadonlyArray<string>) =>
      Effect.mapInputContext(runWords(known, version, more), (callers: Context.Context<Output>) =>
        Context.merge(environment, callers)
      )
    return yield* (TopLevel.isTopLevel(words) ? runOptions(words, within) : runWords(known, version, words)).pipe(
      Effect.provideService(Words, within),
      Effect.provideService(Remote.Remote, server)
    )
  })

/** Runs words without a command: one prompt, or the screen. */
const runOptions = (
  words: ReadonlyArray<string>,
  within: (words: ReadonlyArray<string>) => Effect.Effect<void, unknown, Output>
) =>
  Effect.gen(function* () {
    const given = yield* TopLevel.parse(words)
    if (given.prompt !== undefined) return yield* within(TopLevel.verbOf(given))
    const { open } = yield* Effect.promise(() => import("./screen/Open.ts"))
    return yield* open(given)
  })

const runWords = <E>({ parser, verbs }: Verbs<E>, version: string, words: ReadonlyArray<string>) => {
  const parse = (line: ReadonlyArray<string>) =>
    Effect.flatMap(Output, (output) =>
      Effect.consoleWith((console) =>
        parser(version)(["node", "daybook", ...line]).pipe(
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
  if (isHelp && verb.actions === undefined) return tooMany(`${first} ${name}`, rest[0] ?? "")
  return Effect.gen(function* () {
    const chosen = verb.actions === undefined ? undefined : yield* Actions.choose(verb.name, verb.actions, rest)
    if (isHelp) return yield* tooMany(`${first} ${name} ${chosen?.action.name}`, chosen?.rest[0] ?? "")
    const path = chosen === undefined ? [name] : [name, chosen.action.name]
    const words = path.join(" ")
    if ((yield* Remote.Remote) !== undefined && !Remote.offered.has(words)) return yield* needsDatabase()
    const { flags } = chosen?.action ?? verb
    const line = yield* Arguments.arrange(`daybook ${words}`, chosen?.rest ?? rest, flags)
    yield* Effect.mapError(parse([...path, ...line]), (error) => inWords(words, error))
  })
}
