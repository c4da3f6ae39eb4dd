/**
 * Finds the user's configuration and reads it as options of the runtime. Only verbs that need the configuration load
 * this module, because reading YAML costs more than reading a session. Spec: CL-70..CL-72 in specs/cli.md,
 * specs/config.md.
 */
import { stat } from "node:fs/promises"
import { homedir } from "node:os"
import { join, resolve } from "node:path"
import { Effect, Schema } from "effect"
import { NamingMode } from "@daybook/core/session/SessionOptions"
import { codeOf } from "@daybook/log/support/SystemError"
import { oneLine } from "../render/Plain.ts"
import { UsageError } from "../support/Errors.ts"
import { configFolder } from "../support/Paths.ts"
import * as Config from "./Config.ts"
import * as Keychain from "./Keychain.ts"

type Env = Readonly<Record<string, string | undefined>>

/** The user's folder, and the configuration file: a named file, or the file in that folder. */
type Places = { readonly userFolder: string; readonly file: string; readonly named: boolean }

/** `DAYBOOK_CONFIG`, else `config.yaml` in the person's folder of settings. Pure. */
export const placesOf = (env: Env, home: string, cwd: string): Places => {
  const userFolder = configFolder(env, home)
  const given = env["DAYBOOK_CONFIG"] ?? ""
  return given === ""
    ? { userFolder, file: join(userFolder, "config.yaml"), named: false }
    : { userFolder, file: resolve(cwd, given), named: true }
}

export const places = Effect.sync(() => placesOf(process.env, homedir(), process.cwd()))

export type Configured = Config.Settings & Pick<Places, "userFolder">

/** The value of DAYBOOK_NAMING, which takes precedence over the file. */
const naming = Effect.suspend(() => {
  const given = process.env["DAYBOOK_NAMING"] ?? ""
  if (given === "") return Effect.succeed({})
  return Schema.is(NamingMode)(given)
    ? Effect.succeed({ naming: given })
    : new UsageError({ message: `DAYBOOK_NAMING: expected model, prompt or off, not ${oneLine(given, 40)}` })
})

/** Reads the settings. A file that `DAYBOOK_CONFIG` names must exist. */
export const read: Effect.Effect<Configured, UsageError | Config.ConfigInvalid> = Effect.gen(function* () {
  const { file, named, userFolder } = yield* places
  // Before the variables of the file are replaced.
  yield* Keychain.fill
  if (named) {
    yield* Effect.tryPromise({
      try: () => stat(file),
      catch: (cause) => {
        const code = codeOf(cause, String(cause))
        return new UsageError({ message: `DAYBOOK_CONFIG: ${oneLine(file, 400)} cannot be read (${code})` })
      }
    })
  }
  return { ...(yield* Config.load(file)), ...(yield* naming), userFolder }
})

/** Reads the settings; joins the lines of several faults to one sentence. */
export const load: Effect.Effect<Configured, UsageError> = Effect.catchTag(
  read,
  "ConfigInvalid",
  ({ message }) => new UsageError({ message: message.replace(":\n", ": ").replaceAll("\n", "; ") })
)

/** A sentence about keys in a file that other users may read; undefined if there is nothing to say. */
export const exposedKeys: Effect.Effect<string | undefined, UsageError> = Effect.gen(function* () {
  const { literalKeys = [] } = yield* load
  if (literalKeys.length === 0) return undefined
  const { file } = yield* places
  const mode = yield* Effect.promise(() =>
    stat(file).then(
      (found) => found.mode,
      () => 0
    )
  )
  return (mode & 0o044) === 0
    ? undefined
    : `other users may read ${literalKeys.join(" and ")} in ${oneLine(file, 400)}: write \${VARIABLE} there, or run chmod 600`
})
