/**
 * Lets one holder at a time write a file, over all processes: SQLite's exclusive lock on a file beside it, which the
 * system releases when the process ends, however it ends. Spec: FM-74 in specs/formats.md.
 */
import { rmSync, statSync } from "node:fs"
import { Effect, type Scope } from "effect"
import * as Connection from "./Connection.ts"
import { codeOf } from "../support/SystemError.ts"

/** The name of the lock file of a file. It is empty, and exists while the lock is held or after a kill. */
const lockName = (path: string): string => `${path}.lock`

const identity = (path: string): string | undefined => {
  const stats = statSync(path, { bigint: true, throwIfNoEntry: false })
  return stats === undefined ? undefined : `${stats.dev}:${stats.ino}:${stats.birthtimeNs}`
}

const isBusy = (cause: unknown): boolean => codeOf(cause).startsWith("SQLITE_BUSY")

/** The open lock file; undefined if another holder has it. */
const take = (name: string): Connection.Database | undefined => {
  for (;;) {
    const db = Connection.openDatabase(name, { timeout: 0 })
    const opened = identity(name)
    try {
      db.exec("BEGIN EXCLUSIVE")
    } catch (cause) {
      db.close()
      if (isBusy(cause)) return undefined
      throw cause
    }
    // A holder that ended in between has removed the file: this lock would exclude nothing.
    if (opened !== undefined && identity(name) === opened) return db
    db.close()
  }
}

/** Locks the file until the scope closes; false if it is held. Does not wait. The folder must exist. */
export const acquire = (path: string): Effect.Effect<boolean, unknown, Scope.Scope> =>
  Effect.acquireRelease(Effect.try({ try: () => take(lockName(path)), catch: (cause) => cause }), (db) =>
    Effect.sync(() => {
      if (db === undefined) return
      // While the lock is held: nobody else can hold the file that is removed.
      rmSync(lockName(path), { force: true })
      db.close()
    })
  ).pipe(Effect.map((db) => db !== undefined))
