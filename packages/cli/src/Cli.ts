/**
 * The way from the words after `daybook` to an effect, for all verbs (`Verbs.ts`) or the reading ones (`reader.ts`).
 * Spec: CL-1..CL-3 in specs/cli.md.
 */
import { Effect } from "effect"
import { choose, surplus, type Verb } from "./arguments/Verb.ts"
import * as Remote from "./host/Remote.ts"
import { oneLine } from "./render/Plain.ts"
import { needsDatabase, UsageError } from "./support/Errors.ts"
import { didYouMean } from "./support/Nearest.ts"

/** How to load each verb, by name, in the order of help. */
export type Verbs = Readonly<Record<string, () => Promise<Verb>>>

/** Runs the words after `daybook`. bin/daybook.js prints help before. */
export const run = (verbs: Verbs, all: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const { server, words } = yield* Remote.named(all, process.env)
    return yield* Effect.provideService(runWords(verbs, words), Remote.Remote, server)
  })

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
    const near = didYouMean(name, Object.keys(verbs))
    return yield* new UsageError({
      message: `there is no command "${oneLine(name, 40)}"${near}${near === "" ? ";" : ""} daybook --help lists them`
    })
  }
  const verb = yield* Effect.promise(load)
  if (isHelp && verb.actions === undefined) return yield* surplus(`${first} ${name}`, rest[0] ?? "")
  const chosen = verb.actions === undefined ? undefined : yield* choose(name, verb.actions, rest)
  if (isHelp) return yield* surplus(`${first} ${name} ${chosen?.action.name}`, chosen?.rest[0] ?? "")
  const { overServer, run } = chosen?.action ?? verb
  if ((yield* Remote.Remote) !== undefined && overServer !== true) return yield* needsDatabase()
  yield* run(chosen === undefined ? name : `${name} ${chosen.action.name}`, chosen?.rest ?? rest)
})
