/**
 * `ctx`: prints agents' sessions from their plain files, without database, runtime or Effect, so that it starts as fast as
 * Node. The edge of its process. Spec: CL-100..CL-110 in specs/cli.md.
 */
import { homedir } from "node:os"
import { resolve } from "node:path"
import { inspect } from "node:util"
import { oneLine, visible } from "../render/Plain.ts"
import { rootPath } from "../support/Paths.ts"
import { describe, standard, type Trouble } from "../support/Stream.ts"
import { exitCode, help, parse, Refused, short, usage, type Verb } from "./Options.ts"
import { history, latest, type Out, resume, sessions } from "./CtxCommands.ts"

/** The package's version, which the bundler inserts. */
declare const CTX_VERSION: string

const verbs = { history, latest, resume, sessions } satisfies Record<Verb, unknown>

/** stdout cannot be written. Not a `Refused`, which is about the files that are read. */
class OutputFailed extends Error {
  readonly trouble: Trouble

  constructor(trouble: Trouble) {
    super(`stdout cannot be written: ${describe(trouble)}`)
    this.trouble = trouble
  }
}

/** Sanitizes text; bytes of a file are written unchanged, and only to a file or pipe. */
const safe = (text: string | Uint8Array) =>
  typeof text === "string" && standard().stdout.terminal ? visible(text) : text

const write = (text: string | Uint8Array): Promise<void> =>
  new Promise((done, fail) =>
    standard().stdout.write(safe(text), (trouble) => (trouble === undefined ? done() : fail(new OutputFailed(trouble))))
  )

const note = (text: string): void =>
  standard().stderr.write(visible(text), (trouble) => {
    if (trouble !== undefined && !trouble.closed) process.exitCode ??= exitCode.unavailable
  })

/** Whether one of these options precedes a `--`. */
const asksFor = (words: ReadonlyArray<string>, ...options: ReadonlyArray<string>): boolean => {
  const end = words.indexOf("--")
  return (end < 0 ? words : words.slice(0, end)).some((word) => options.includes(word))
}

const isVerb = (word: string): boolean => Object.hasOwn(verbs, word)

const run = async (words: ReadonlyArray<string>): Promise<void> => {
  const [first, about] = words
  if (first === "help" && about !== undefined && !about.startsWith("-") && !isVerb(about)) parse([about], 0)
  const extra = first === "help" ? words[2] : first === "--version" ? about : undefined
  if (extra !== undefined)
    throw usage(`${words.slice(0, first === "help" ? 2 : 1).join(" ")}: unexpected argument ${short(extra)}`)
  if (words.length === 0 || first === "help" || asksFor(words, "--help", "-h")) return write(help(CTX_VERSION))
  if (asksFor(words, "--version")) return write(`${CTX_VERSION}\n`)
  const options = parse(words, process.getuid?.() ?? 0)
  const root = options.root ?? rootPath(process.env, homedir(), ".")
  const out: Out = { terminal: standard().stdout.terminal, write, note }
  await verbs[options.verb](out, resolve(root), options)
}

/** Runs the words after `ctx` and sets the exit code. */
export const main = (words: ReadonlyArray<string>): void => {
  run(words).catch((cause: unknown) => {
    if (cause instanceof OutputFailed && cause.trouble.closed) return
    const known = cause instanceof Refused || cause instanceof OutputFailed
    process.exitCode = cause instanceof Refused ? cause.exit : known ? exitCode.unavailable : exitCode.internal
    note(`ctx: ${oneLine(known ? cause.message : `internal error: ${String(cause)}`, 2_000)}\n`)
    if (!known && (process.env["DAYBOOK_DEBUG"] ?? "") !== "") note(`${inspect(cause)}\n`)
  })
}
