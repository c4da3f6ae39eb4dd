/**
 * The folder in which the host of a data folder's live shells listens and logs, which only the user can enter; and
 * Daybook's own files, which a sandbox hides. Spec: SL-171 in specs/shell.md.
 */
import { mkdirSync, realpathSync } from "node:fs"
import { homedir } from "node:os"
import { basename, dirname, join } from "node:path"
import { Effect } from "effect"
import type { SandboxSettings } from "@daybook/core/child/Sandbox"
import * as Configuration from "../config/Configuration.ts"
import * as DatabasePath from "../config/DatabasePath.ts"
import { dataFolder } from "../support/Paths.ts"

export interface ShellHostPlace {
  /** The data folder, which is the folder of the database. */
  readonly root: string
  /** The socket's path below it. */
  readonly name: string
  readonly socket: string
  readonly folder: string
  readonly log: string
  /** The file in which it records. */
  readonly database: string
}

/** The file by the real path of its folder: links to it are the same folder. */
const real = (database: string): string => {
  if (database === ":memory:") return database
  try {
    return join(realpathSync(dirname(database)), basename(database))
  } catch {
    // The folder does not exist yet.
    return database
  }
}

export const placeOf = (database: string): ShellHostPlace => {
  const root = database === ":memory:" ? dataFolder(process.env, homedir()) : dirname(database)
  const name = join("shell-host", "socket")
  const folder = join(root, "shell-host")
  return { root, name, folder, socket: join(root, name), log: join(folder, "log"), database: real(database) }
}

export const place = Effect.map(DatabasePath.path, placeOf)

/** A sandbox hides only what exists. Through the socket of a host that is started later, a command would leave the sandbox. */
const reserve = (folder: string) =>
  Effect.sync(() => {
    try {
      mkdirSync(folder, { recursive: true, mode: 0o700 })
    } catch {
      // Then no host can listen there either.
    }
  })

/** `root` holds session files and sockets. */
export const ownFiles = Effect.fnUntraced(function* (root: string, { mode }: Pick<SandboxSettings, "mode"> = {}) {
  const { file } = yield* Configuration.places
  const { folder } = yield* place
  if (mode === "on") yield* reserve(folder)
  return [file, root, dataFolder(process.env, homedir()), folder]
})
