/**
 * The user's configuration: where it lies, and what it says as options of the runtime. Loaded only by what needs it,
 * since reading YAML costs more than reading a session. Spec: CL-70..CL-72 in specs/cli.md, specs/config.md.
 */
import { Config } from "@daybook/core"
import { Effect } from "effect"
import { stat } from "node:fs/promises"
import { homedir } from "node:os"
import { isAbsolute, join, resolve } from "node:path"
import { UsageError } from "./Errors.ts"
import { oneLine } from "./render/Plain.ts"

type Env = Readonly<Record<string, string | undefined>>

/** The user's own folder, and the configuration file, which was named or lies there. */
export interface Places {
  readonly userFolder: string
  readonly file: string
  readonly named: boolean
}

/** `DAYBOOK_CONFIG`, else `config.yaml` in `daybook` in `XDG_CONFIG_HOME` (when that is absolute) or `~/.config`. Pure. */
export const placesOf = (env: Env, home: string, cwd: string): Places => {
  const config = env["XDG_CONFIG_HOME"]
  const base = config !== undefined && isAbsolute(config) ? config : join(home, ".config")
  const userFolder = join(base, "daybook")
  const given = env["DAYBOOK_CONFIG"] ?? ""
  return given === ""
    ? { userFolder, file: join(userFolder, "config.yaml"), named: false }
    : { userFolder, file: resolve(cwd, given), named: true }
}

/** The places of this environment. */
export const places = Effect.sync(() => placesOf(process.env, homedir(), process.cwd()))

/** What is configured, and the user's folder. */
export type Configured = Config.Settings & Pick<Places, "userFolder">

/** The settings, with the user's folder. A file that was named has to be there. */
export const read: Effect.Effect<Configured, UsageError | Config.ConfigInvalid> = Effect.gen(function* () {
  const { file, named, userFolder } = yield* places
  if (named) {
    yield* Effect.tryPromise({
      try: () => stat(file),
      catch: (cause) => {
        const code = cause instanceof Error && "code" in cause ? String(cause.code) : String(cause)
        return new UsageError({ message: `DAYBOOK_CONFIG: ${oneLine(file, 400)} cannot be read (${code})` })
      }
    })
  }
  return { ...(yield* Config.load(file)), userFolder }
})

/** The same; what is wrong is one sentence, in which each fault was a line. */
export const load: Effect.Effect<Configured, UsageError> = Effect.catchTag(
  read,
  "ConfigInvalid",
  ({ message }) => new UsageError({ message: message.replace(":\n", ": ").replaceAll("\n", "; ") })
)
