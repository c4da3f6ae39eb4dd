/** Writes the file that `config/KeyFile.ts` reads. Spec: CL-781 in specs/cli.md. */
import { dirname } from "node:path"
import { Effect, Stream } from "effect"
import { makeFolders } from "@daybook/log/storage/PrivateFile"
import { codeOf } from "@daybook/log/support/SystemError"
import { isSetting, keychainVariable, namedInKeychain, path, read } from "../config/KeyFile.ts"
import { FileProblem, UsageError } from "../support/Errors.ts"
import * as WholeFile from "./WholeFile.ts"

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
    catch: (cause) => new FileProblem({ message: `${file} cannot be written (${codeOf(cause, String(cause))})` })
  })
  const head = "# Written by daybook setup. The environment takes precedence.\n"
  yield* WholeFile.write(file, Stream.make(head, ...lines.map(String)), { force: true })
  Object.assign(process.env, Object.fromEntries(next.filter(([name]) => !isSetting(name))))
})

/** Notes that the key of a variable is in the keychain, and no more in the file. */
export const inKeychain = (variable: string) =>
  Effect.suspend(() => {
    const names = [...new Set([...namedInKeychain(), variable])]
    return save({ [variable]: "", [keychainVariable]: names.join(",") })
  })

/** Keeps a key in the file, and no more in the keychain. */
export const inFile = (variable: string, key: string) =>
  Effect.suspend(() => {
    const names = namedInKeychain().filter((name) => name !== variable)
    return save({ [variable]: key, [keychainVariable]: names.join(",") })
  })
