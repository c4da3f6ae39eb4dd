/**
 * `ctx`: what agents said, read from the plain files of their sessions and from nothing else: no database, no runtime, no
 * Effect, so that it starts as fast as Node does. The edge of its process. Spec: CL-100..CL-110 in specs/cli.md.
 */
import { homedir } from "node:os"
import { resolve } from "node:path"
import { rootPath } from "../Paths.ts"
import { oneLine } from "../render/Plain.ts"
import { help } from "./Help.ts"
import { parse, type Verb } from "./Options.ts"
import { exitCode, Refused } from "./Refused.ts"
import { history, latest, resume, sessions, type Out } from "./Verbs.ts"

/** The package's version: the bundle has it in this place. */
declare const CTX_VERSION: string

const verbs = { history, latest, resume, sessions } satisfies Record<Verb, unknown>

/** Whoever read stdout has gone away: there is nobody to tell. */
class OutputClosed extends Error {}

const write = (text: string | Uint8Array): Promise<void> =>
  new Promise((done, fail) => {
    if (text.length === 0) return done()
    process.stdout.write(text, (error) => (error === undefined || error === null ? done() : fail(new OutputClosed())))
  })

const out: Out = {
  terminal: process.stdout.isTTY === true,
  write,
  note: (text) => void process.stderr.write(text)
}

/** Before a `--`, nothing but these is looked for. */
const asksFor = (words: ReadonlyArray<string>, ...options: ReadonlyArray<string>): boolean => {
  const end = words.indexOf("--")
  return (end < 0 ? words : words.slice(0, end)).some((word) => options.includes(word))
}

const run = async (words: ReadonlyArray<string>): Promise<void> => {
  if (words.length === 0 || words[0] === "help" || asksFor(words, "--help", "-h")) return write(help(CTX_VERSION))
  if (asksFor(words, "--version")) return write(`${CTX_VERSION}\n`)
  const options = parse(words, process.getuid?.() ?? 0)
  const root = options.root ?? rootPath(process.env, homedir(), ".")
  await verbs[options.verb](out, resolve(root), options)
}

/** Runs the words after `ctx` and sets the exit code. */
export const main = (words: ReadonlyArray<string>): void => {
  // A write's callback tells its failure; without a listener the stream would throw it as well.
  process.stdout.on("error", () => undefined)
  process.stderr.on("error", () => undefined)
  run(words).catch((cause: unknown) => {
    if (cause instanceof OutputClosed) return
    const refused = cause instanceof Refused ? cause : undefined
    process.exitCode = refused?.exit ?? exitCode.internal
    process.stderr.write(`ctx: ${oneLine(refused?.message ?? `something broke inside: ${String(cause)}`, 2_000)}\n`)
    if (refused === undefined && (process.env["DAYBOOK_DEBUG"] ?? "") !== "") console.error(cause)
  })
}
