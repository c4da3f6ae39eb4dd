/**
 * The way from the words after `daybook` to the end of the process, for all verbs (`Verbs.ts`) or the reading ones
 * (`reader.ts`). A failure is one sentence on stderr, with a stack trace only with `DAYBOOK_DEBUG`.
 * Spec: CL-1..CL-3, CL-40..CL-42 in specs/cli.md.
 */
import { Cause, Effect, Exit, Layer, Logger, LogLevel } from "effect"
import { choose, surplus, type Verb } from "./arguments/Verb.ts"
import * as Remote from "./host/Remote.ts"
import { failureOfCause } from "./render/Failure.ts"
import { oneLine, sentences, visible } from "./render/Plain.ts"
import * as TopLevel from "./screen/TopLevel.ts"
import { Words } from "./screen/Words.ts"
import { needsDatabase, UsageError } from "./support/Errors.ts"
import { didYouMean } from "./support/Nearest.ts"
import { standard } from "./support/Stream.ts"
import * as Output from "./terminal/Output.ts"

/** How to load each verb, by name, in the order of help. */
export type Verbs = Readonly<Record<string, () => Promise<Verb>>>

/** The words after `daybook` as an effect. bin/daybook.js prints help before. */
const effectOf = Effect.fnUntraced(function* (verbs: Verbs, all: ReadonlyArray<string>) {
  const { database, server, words } = yield* Remote.named(all, process.env)
  // Processes that this one starts use the same database.
  if (database !== undefined) process.env["DAYBOOK_DB"] = database
  const within = (more: ReadonlyArray<string>) => runWords(verbs, more)
  return yield* (TopLevel.isTopLevel(words) ? runOptions(words, Object.keys(verbs), within) : within(words)).pipe(
    Effect.provideService(Words, within),
    Effect.provideService(Remote.Remote, server)
  )
})

/** Runs words without a command: one prompt, or the screen. */
const runOptions = (
  words: ReadonlyArray<string>,
  verbs: ReadonlyArray<string>,
  within: (words: ReadonlyArray<string>) => Effect.Effect<void, unknown, Output.Output>
) =>
  Effect.gen(function* () {
    const given = yield* TopLevel.parse(words, verbs)
    if (given.prompt !== undefined) return yield* within(TopLevel.verbOf(given))
    const { open } = yield* Effect.promise(() => import("./screen/Open.ts"))
    return yield* open(given)
  })

/** What verbs are called elsewhere. */
const synonyms: Readonly<Record<string, string>> = {
  ask: "prompt",
  chat: "prompt",
  delete: "remove",
  exec: "prompt",
  list: "sessions",
  log: "events",
  login: "setup",
  ls: "sessions",
  rm: "remove",
  run: "prompt"
}

const runWords = Effect.fnUntraced(function* (verbs: Verbs, words: ReadonlyArray<string>) {
  const [first = "", second = ""] = words
  if (first === "--version") return yield* surplus(first, second)
  if (/^--completions(?:=|$)/.test(first)) {
    return yield* new UsageError({ message: "--completions: expected bash, zsh, fish or sh" })
  }
  // Help gets here only when its command does not exist, or when more than one is named.
  const isHelp = ["help", "--help", "-h"].includes(first)
  const [name = "", ...rest] = isHelp ? words.slice(1) : words
  const load = Object.hasOwn(verbs, name) ? verbs[name] : undefined
  if (load === undefined) {
    const typed = oneLine(name, 40)
    const near = didYouMean(Object.hasOwn(synonyms, name) ? (synonyms[name] ?? name) : name, Object.keys(verbs))
    // Words in quotes are a prompt: other agents take one without an option.
    const advice = /\s/.test(name.trim())
      ? `; a prompt follows -p: daybook -p "${typed}"`
      : `${near === "" ? ";" : near} daybook --help lists them`
    return yield* new UsageError({ message: `there is no command "${typed}"${advice}` })
  }
  const verb = yield* Effect.promise(load)
  if (isHelp && verb.actions === undefined) return yield* surplus(`${first} ${name}`, rest[0] ?? "")
  const chosen = verb.actions === undefined ? undefined : yield* choose(name, verb.actions, rest)
  if (isHelp) return yield* surplus(`${first} ${name} ${chosen?.action.name}`, chosen?.rest[0] ?? "")
  const { overServer, run } = chosen?.action ?? verb
  if ((yield* Remote.Remote) !== undefined && overServer !== true) return yield* needsDatabase()
  yield* run(chosen === undefined ? name : `${name} ${chosen.action.name}`, chosen?.rest ?? rest)
})

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
export const run = (verbs: Verbs, words: ReadonlyArray<string>): void => {
  const program = Effect.zipRight(
    effectOf(verbs, words),
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
