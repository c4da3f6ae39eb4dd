/** Finds the database. Creates nothing for a reader. Spec: CL-20..CL-22 in specs/cli.md. */
import { access, constants, stat } from "node:fs/promises"
import { homedir } from "node:os"
import { dirname } from "node:path"
import { Effect } from "effect"
import { makeFolders } from "@daybook/log/storage/PrivateFile"
import { DatabaseProblem, NotFound } from "../support/Errors.ts"
import { databasePath } from "../support/Paths.ts"

const current = Effect.sync(() => databasePath(process.env, homedir(), process.cwd()))

const problem = (path: string, cause: unknown) => {
  const code = cause instanceof Error && "code" in cause ? String(cause.code) : String(cause)
  const message =
    code === "EROFS" || code === "EACCES" || code === "EPERM"
      ? `${path}: the folder cannot be written or entered (${code}); set DAYBOOK_DB to another path`
      : `${path}: the folder of the database cannot be used (${code})`
  return new DatabaseProblem({ message })
}

const hasCode = (cause: unknown, code: string) => cause instanceof Error && "code" in cause && cause.code === code

export const path = current

export const exists = Effect.flatMap(current, (path) =>
  Effect.promise(() =>
    stat(path).then(
      () => true,
      () => false
    )
  )
)

/** The path of an existing database; a reader creates none (CL-22). */
export const existing = Effect.flatMap(current, (path) =>
  path === ":memory:"
    ? Effect.succeed(path)
    : Effect.tryPromise({ try: () => stat(path), catch: (cause) => cause }).pipe(
        Effect.mapBoth({
          onFailure: (cause) =>
            hasCode(cause, "ENOENT")
              ? new NotFound({ message: `there is no database at ${path} yet; daybook prompt creates it` })
              : problem(path, cause),
          onSuccess: () => path
        })
      )
)

/** Whether this process may create or write the database: its folder, or the nearest one that exists, can be written. */
export const canWrite: Effect.Effect<boolean> = Effect.flatMap(current, (path) => {
  if (path === ":memory:") return Effect.succeed(true)
  const check = (folder: string): Promise<boolean> =>
    access(folder, constants.W_OK | constants.X_OK).then(
      () => true,
      (cause: unknown) => hasCode(cause, "ENOENT") && dirname(folder) !== folder && check(dirname(folder))
    )
  return Effect.promise(() => check(dirname(path)))
})

/** The path of a database that may not exist yet; creates its folder for the user alone (CL-21). */
export const writable = Effect.tap(current, (path) =>
  path === ":memory:"
    ? Effect.void
    : Effect.tryPromise({
        try: () => makeFolders(dirname(path), 0o700),
        catch: (cause) => problem(path, cause)
      })
)
