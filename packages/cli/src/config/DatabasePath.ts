/**
 * Finds the database: a file, or a database of PostgreSQL. Creates no file for a reader. Spec: CL-20..CL-22, CL-800..CL-803
 * in specs/cli.md.
 */
import { access, constants, stat } from "node:fs/promises"
import { homedir } from "node:os"
import { dirname } from "node:path"
import { Effect, Redacted } from "effect"
import { makeFolders } from "@daybook/log/storage/PrivateFile"
import { codeOf } from "@daybook/log/support/SystemError"
import * as Address from "@daybook/postgres/Address"
import { DatabaseProblem, NotFound, UsageError } from "../support/Errors.ts"
import { databasePath, databaseServer } from "../support/Paths.ts"

/** Where the log is kept. What stays on this machine is beside `path`, which is the file, if it is one. */
export type Place = { readonly _tag: "File"; readonly path: string; readonly name: string } | ServerPlace

export interface ServerPlace {
  readonly _tag: "Postgres"
  readonly path: string
  /** The address without user and password, with the schema. */
  readonly name: string
  readonly url: Redacted.Redacted
  readonly schema: string
  /** Whether opening it makes a schema that does not exist. */
  readonly make: boolean
}

export const fileAt = (path: string): Place => ({ _tag: "File", path, name: path })

const current = Effect.sync(() => databasePath(process.env, homedir(), process.cwd()))

const placeIn = (env: NodeJS.ProcessEnv): Effect.Effect<Place, UsageError> => {
  const path = databasePath(env, homedir(), process.cwd())
  const server = databaseServer(env)
  if (server === undefined) return Effect.succeed(fileAt(path))
  if (server === "unusable") {
    return new UsageError({
      message: "the database's address cannot be used: write postgres://USER:PASSWORD@HOST:PORT/DATABASE"
    })
  }
  const { schema } = server
  const name = Address.nameOf(new URL(server.url), schema)
  return Effect.succeed({ _tag: "Postgres", path, name, url: Redacted.make(server.url), schema, make: false })
}

/** The place that the environment names; it may not exist. */
export const place: Effect.Effect<Place, UsageError> = Effect.suspend(() => placeIn(process.env))

/** The place of a word, as `DAYBOOK_DB` would name it. */
export const placeOf = (word: string): Effect.Effect<Place, UsageError> =>
  Effect.suspend(() => placeIn({ ...process.env, DAYBOOK_DB: word }))

/** The file of a verb that works on files only; the refusal says what to use instead (CL-802). */
const onlyFile =
  (instead: (place: ServerPlace) => string) =>
  (place: Place): Effect.Effect<string, UsageError> =>
    place._tag === "File"
      ? Effect.succeed(place.path)
      : new UsageError({ message: `the database is ${place.name}, and this needs a file: ${instead(place)}` })

const problem = ({ _tag, path }: Place, cause: unknown) => {
  const code = codeOf(cause, String(cause))
  if (_tag === "Postgres") {
    const message = `${dirname(path)}: the folder of this machine's files cannot be used (${code}); set XDG_DATA_HOME to another one`
    return new DatabaseProblem({ message })
  }
  const message =
    code === "EROFS" || code === "EACCES" || code === "EPERM"
      ? `${path}: the folder cannot be written or entered (${code}); set DAYBOOK_DB to another path`
      : `${path}: the folder of the database cannot be used (${code})`
  return new DatabaseProblem({ message })
}

/** The file, or a path without a file in the folder of a database of PostgreSQL. */
export const path = current

/** Whether there is a database. One of PostgreSQL counts always: to open it without its schema fails as `not-found`. */
export const exists = Effect.flatMap(current, (path) =>
  databaseServer(process.env) === undefined
    ? Effect.promise(() =>
        stat(path).then(
          () => true,
          () => false
        )
      )
    : Effect.succeed(true)
)

/** An existing database; a reader creates no file (CL-22). */
export const existing: Effect.Effect<Place, DatabaseProblem | NotFound | UsageError> = Effect.suspend(() =>
  existingAt(place, " yet; daybook prompt creates it")
)

export const existingAt = (given: Effect.Effect<Place, UsageError>, advice = "") =>
  Effect.tap(given, (place) =>
    place._tag === "Postgres" || place.path === ":memory:"
      ? Effect.void
      : Effect.tryPromise({ try: () => stat(place.path), catch: (cause) => cause }).pipe(
          Effect.mapError((cause) =>
            codeOf(cause) === "ENOENT"
              ? new NotFound({ message: `there is no database at ${place.path}${advice}` })
              : problem(place, cause)
          )
        )
  )

/** An existing file, for a verb that works on files only. */
export const existingFile = (instead: (place: ServerPlace) => string) => Effect.flatMap(existing, onlyFile(instead))

/** Whether this process may create or write the database: its folder, or the nearest one that exists, can be written. */
export const canWrite: Effect.Effect<boolean> = Effect.flatMap(current, (path) => {
  if (path === ":memory:") return Effect.succeed(true)
  const check = (folder: string): Promise<boolean> =>
    access(folder, constants.W_OK | constants.X_OK).then(
      () => true,
      (cause: unknown) => codeOf(cause) === "ENOENT" && dirname(folder) !== folder && check(dirname(folder))
    )
  return Effect.promise(() => check(dirname(path)))
})

/** A database that may not exist yet; creates its folder for the user alone (CL-21). */
export const writable: Effect.Effect<Place, DatabaseProblem | UsageError> = Effect.suspend(() => writableAt(place))

export const writableAt = (given: Effect.Effect<Place, UsageError>) =>
  Effect.flatMap(given, (place) => {
    const made: Place = place._tag === "File" ? place : { ...place, make: true }
    if (place.path === ":memory:") return Effect.succeed(made)
    return Effect.tryPromise({
      try: () => makeFolders(dirname(place.path), 0o700),
      catch: (cause) => problem(place, cause)
    }).pipe(Effect.as(made))
  })

/** A file that may not exist yet, for a verb that works on files only. */
export const writableFile = (instead: (place: ServerPlace) => string) =>
  Effect.zipRight(Effect.flatMap(place, onlyFile(instead)), Effect.flatMap(writable, onlyFile(instead)))
