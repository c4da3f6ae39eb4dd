/**
 * The variables that `daybook setup` keeps in a file of the person's data folder: keys of model servers, the address of a
 * server, and the default model. The environment takes precedence. Spec: CL-781, CL-782 in specs/cli.md.
 */
import { readFileSync } from "node:fs"
import { homedir } from "node:os"
import { dirname, join } from "node:path"
import { parseEnv } from "node:util"
import { Effect, Stream } from "effect"
import { makeFolders } from "@daybook/log/storage/PrivateFile"
import * as WholeFile from "./WholeFile.ts"
import { FileProblem, UsageError } from "../support/Errors.ts"
import { dataFolder } from "../support/Paths.ts"

const modelVariable = "DAYBOOK_MODEL"

/** The names that the file may set. Anything else in it has no effect. */
const isKept = (name: string): boolean =>
  /^(?:[A-Z][A-Z0-9_]{0,63}_(?:KEY|TOKEN)|DAYBOOK_MODEL|DAYBOOK_BASE_URL)$/.test(name)

/** The file. */
export const path = (): string => join(dataFolder(process.env, homedir()), "keys.env")

/** What the file sets; nothing if there is none. */
const read = (): Readonly<Record<string, string>> => {
  let text: string
  try {
    text = readFileSync(path(), "utf8")
  } catch {
    return {}
  }
  const kept = Object.entries(parseEnv(text)).flatMap(([name, value]) =>
    isKept(name) && value !== undefined ? [[name, value] as const] : []
  )
  return Object.fromEntries(kept)
}

/** Sets what the environment does not, without the model: the configuration's comes before it. */
export const load = (): void => {
  for (const [name, value] of Object.entries(read())) {
    if (name !== modelVariable && (process.env[name] ?? "") === "") process.env[name] = value
  }
}

/** The default model that setup keeps, as written. */
export const model = (): string | undefined => read()[modelVariable]

const quotes = ['"', "'", "`"]

/** A line of the file; undefined for a value that no line can hold. */
const lineOf = (name: string, value: string): string | undefined => {
  const quote = quotes.find((each) => !value.includes(each))
  return quote === undefined || /[^\x21-\x7e]|\\/.test(value) ? undefined : `${name}=${quote}${value}${quote}\n`
}

/** Keeps variables, beside those that are there, and sets them in this process. An empty value removes one. */
export const save = Effect.fn("Keys.save")(function* (
  changes: Readonly<Record<string, string>>
): Effect.fn.Return<void, FileProblem | UsageError> {
  const next = Object.entries({ ...read(), ...changes }).filter(([, value]) => value !== "")
  const lines = next.map(([name, value]) => lineOf(name, value))
  const bad = next.find((_, at) => lines[at] === undefined)
  if (bad !== undefined) {
    return yield* new UsageError({
      message: `${bad[0]}: a key has no space, backslash or character beyond ASCII, and not all kinds of quotes`
    })
  }
  const file = path()
  yield* Effect.tryPromise({
    try: () => makeFolders(dirname(file), 0o700),
    catch: (cause) => new FileProblem({ message: `${file} cannot be written: ${String(cause)}` })
  })
  const head = "# Written by daybook setup. The environment takes precedence.\n"
  yield* WholeFile.write(file, Stream.make(head, ...lines.map(String)), { force: true })
  Object.assign(process.env, Object.fromEntries(next))
})
