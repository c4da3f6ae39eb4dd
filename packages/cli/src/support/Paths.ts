/** The paths of the database and of the plain files. Pure, and without Effect, for `ctx`. Spec: CL-20, CL-101. */
import { delimiter, dirname, isAbsolute, join, normalize, resolve } from "node:path"

type Env = Readonly<Record<string, string | undefined>>

/** The person's data folder: `daybook` in `XDG_DATA_HOME`, else in `~/.local/share`. It does not depend on `DAYBOOK_DB`. */
export const dataFolder = (env: Env, home: string): string => {
  // A relative `XDG_DATA_HOME` is invalid and ignored, as its specification requires.
  const data = env["XDG_DATA_HOME"]
  return join(data !== undefined && isAbsolute(data) ? data : join(home, ".local", "share"), "daybook")
}

/** `DAYBOOK_DB`, else `daybook/daybook.sqlite` in `XDG_DATA_HOME`, else in `~/.local/share`. */
export const databasePath = (env: Env, home: string, cwd: string): string => {
  const given = env["DAYBOOK_DB"]
  if (given === ":memory:") return given
  if (given !== undefined && given !== "") return resolve(cwd, given)
  return join(dataFolder(env, home), "daybook.sqlite")
}

/** `DAYBOOK_ROOT`, else `ctx` beside the database. */
export const rootPath = (env: Env, home: string, cwd: string): string => {
  const given = env["DAYBOOK_ROOT"]
  if (given !== undefined && given !== "") return resolve(cwd, given)
  const database = databasePath(env, home, cwd)
  return join(database === ":memory:" ? dataFolder(env, home) : dirname(database), "ctx")
}

/** `PATH` without relative entries and without the project's `node_modules/.bin` that `npm run` and `npx` add. */
export const neutralPath = (env: Env): string =>
  (env["PATH"] ?? "")
    .split(delimiter)
    .filter((entry) => isAbsolute(entry) && !/[\\/]node_modules[\\/]\.bin[\\/]*$/.test(normalize(entry)))
    .join(delimiter)
