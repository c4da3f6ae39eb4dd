/**
 * Where the database and the plain files of sessions lie. Pure, and without Effect: `ctx` starts from it as well.
 * Spec: CL-20, CL-101 in specs/cli.md.
 */
import { delimiter, dirname, isAbsolute, join, normalize, resolve } from "node:path"

/** The process's variables. */
export type Env = Readonly<Record<string, string | undefined>>

/** `daybook` in `XDG_DATA_HOME`, else in `~/.local/share`: what is the person's own, wherever the database is. */
export const dataFolder = (env: Env, home: string): string => {
  // A relative `XDG_DATA_HOME` is no valid one and is passed over, as its specification asks.
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

/** `PATH` without what depends on the folder, and without the programs of a project that `npm run` and `npx` put there. */
export const neutralPath = (env: Env): string =>
  (env["PATH"] ?? "")
    .split(delimiter)
    .filter((entry) => isAbsolute(entry) && !/[\\/]node_modules[\\/]\.bin[\\/]*$/.test(normalize(entry)))
    .join(delimiter)
