/** The paths of the database and of the plain files. Pure, and without Effect, for `ctx`. Spec: CL-20, CL-101. */
import { createHash } from "node:crypto"
import { delimiter, dirname, isAbsolute, join, normalize, resolve } from "node:path"
import * as Address from "@daybook/postgres/Address"

type Env = Readonly<Record<string, string | undefined>>

/** The person's data folder: `daybook` in `XDG_DATA_HOME`, else in `~/.local/share`. It does not depend on `DAYBOOK_DB`. */
export const dataFolder = (env: Env, home: string): string => {
  // A relative `XDG_DATA_HOME` is invalid and ignored, as its specification requires.
  const data = env["XDG_DATA_HOME"]
  return join(data !== undefined && isAbsolute(data) ? data : join(home, ".local", "share"), "daybook")
}

/** The person's folder of settings: `daybook` in `XDG_CONFIG_HOME` (if that is absolute), else in `~/.config`. */
export const configFolder = (env: Env, home: string): string => {
  const config = env["XDG_CONFIG_HOME"]
  return join(config !== undefined && isAbsolute(config) ? config : join(home, ".config"), "daybook")
}

/** An address of PostgreSQL, also a malformed one, or one of another database: it is never the name of a file. */
const isAddress = (given: string): boolean => /^(?:postgres(?:ql)?:|[a-z][a-z0-9+.-]+:\/\/)/i.test(given)

/** A database of PostgreSQL that `DAYBOOK_DB` names. */
export interface Server {
  /** With the password. */
  readonly url: string
  readonly schema: string
}

/** The database of PostgreSQL that `DAYBOOK_DB` names, with its schema from `?schema=`; "unusable" for no address. */
export const databaseServer = (env: Env): Server | "unusable" | undefined => {
  const given = env["DAYBOOK_DB"] ?? ""
  if (!isAddress(given)) return undefined
  const url = Address.parse(given)
  if (url === undefined) return "unusable"
  const schema = url.searchParams.get("schema") ?? "daybook"
  url.searchParams.delete("schema")
  return url.hostname === "" && !url.searchParams.has("host") ? "unusable" : { url: url.toString(), schema }
}

/** The name of a database's folder. Users and passwords of one database share it. */
const folderName = (server: Server | "unusable"): string => {
  if (server === "unusable") return "unusable"
  const { hostname, pathname, port, searchParams, username } = new URL(server.url)
  const host = searchParams.get("host") ?? hostname
  const database = pathname.length > 1 ? pathname.slice(1) : (searchParams.get("user") ?? username)
  const parts = [host, searchParams.get("port") ?? (port === "" ? "5432" : port), database, server.schema]
  return createHash("sha256").update(parts.join("\n")).digest("hex").slice(0, 16)
}

/**
 * `DAYBOOK_DB`, else `daybook/daybook.sqlite` in `XDG_DATA_HOME`, else in `~/.local/share`. For a database of PostgreSQL, a
 * path without a file: what stays on this machine is beside it.
 */
export const databasePath = (env: Env, home: string, cwd: string): string => {
  const given = env["DAYBOOK_DB"]
  if (given === ":memory:") return given
  const server = databaseServer(env)
  if (server !== undefined) return join(dataFolder(env, home), "postgres", folderName(server), "database")
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
