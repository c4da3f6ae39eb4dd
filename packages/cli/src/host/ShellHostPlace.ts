/**
 * Where the host of live shells of a data folder listens and logs: in a folder of its own, which only the user can enter. Pure.
 * Spec: SL-171 in specs/shell.md.
 */
import { homedir } from "node:os"
import { dirname, join } from "node:path"
import { Effect } from "effect"
import * as DatabasePath from "../config/DatabasePath.ts"
import { dataFolder } from "../support/Paths.ts"

export interface ShellHostPlace {
  /** The data folder: that of the database. */
  readonly root: string
  /** The socket's path below it. */
  readonly name: string
  readonly socket: string
  readonly folder: string
  readonly log: string
  readonly database: string
}

export const placeOf = (database: string): ShellHostPlace => {
  const root = database === ":memory:" ? dataFolder(process.env, homedir()) : dirname(database)
  const name = join("shell-host", "socket")
  const folder = join(root, "shell-host")
  return { root, name, folder, socket: join(root, name), log: join(folder, "log"), database }
}

/** The place of this environment. */
export const place = Effect.map(DatabasePath.path, placeOf)
