/**
 * Copies a database to a file while other processes use it, and puts a copy back in its place. Spec: ST-42..ST-49.
 *
 * @module @daybook/log/maintenance/Backup
 */
import { link, realpath, rm, stat } from "node:fs/promises"
import { Clock, Effect, Predicate, type Scope, Stream } from "effect"
import * as Database from "../storage/Database.ts"
import * as Driver from "../storage/Driver.ts"
import { discard, searchPath } from "../storage/SearchFile.ts"
import { reasonOf } from "../storage/Transaction.ts"
import {
  attempt,
  BackupFailed,
  copy,
  existsAlready,
  type Heads,
  incomplete,
  type OnProgress,
  publish,
  snapshotOf
} from "./Copy.ts"
import * as Doctor from "./Doctor.ts"

export { BackupFailed, type Heads, type OnProgress } from "./Copy.ts"

/** What to copy and where to. */
export interface BackupOptions {
  readonly database: string
  readonly file: string
  /** Replaces an existing file. */
  readonly force?: boolean
  /** Also checks every event and row of the copy, as `Doctor.verify` does. */
  readonly verify?: boolean
  readonly onProgress?: OnProgress
}

/** A complete copy. */
export interface BackupResult extends Heads {
  readonly file: string
  readonly bytes: number
}

const sizeOf = (path: string) => attempt(path, async () => (await stat(path)).size)

const exists = (path: string) =>
  stat(path).then(
    () => true,
    () => false
  )

/** Fails with the first error that `Doctor.verify` finds. */
const sound = (path: string): Effect.Effect<void, BackupFailed> =>
  Doctor.verify.pipe(
    Stream.filter(({ severity }) => severity === "error"),
    Stream.runHead,
    Effect.provide(Database.layer({ filename: path })),
    Effect.mapError(({ message }) => new BackupFailed({ path, reason: "unsound", details: message })),
    Effect.flatMap((found) =>
      found._tag === "None"
        ? Effect.void
        : new BackupFailed({
            path,
            reason: "unsound",
            details: `${found.value.sessionID ?? "the database"}: ${found.value.what}`
          })
    )
  )

const nothing: OnProgress = () => undefined

/**
 * Copies the database to a new file, as it is at one instant. Appends continue meanwhile. The file has mode 0600, appears
 * only when it is complete and on disk, and its heads equal those of the database.
 */
export const backup = Effect.fn("Backup.backup")(function* (options: BackupOptions) {
  const { database, file, force = false, onProgress = nothing, verify = false } = options
  const same = yield* attempt(
    file,
    async () => (await exists(file)) && (await realpath(file)) === (await realpath(database))
  )
  if (same) return yield* new BackupFailed({ path: file, reason: "exists", details: "this is the database itself" })
  if (!force && (yield* attempt(file, () => exists(file)))) return yield* existsAlready(file)
  const from = yield* snapshotOf(database)
  const path = yield* incomplete(file)
  const heads = yield* copy(from, path, onProgress)
  if (verify) yield* sound(path)
  yield* publish(path, file, force)
  return { ...heads, file, bytes: yield* sizeOf(file) } satisfies BackupResult
}, Effect.scoped)

/** What to put back. */
export interface RestoreOptions {
  /** A file that `backup` made, or any Daybook database. It is not changed. */
  readonly file: string
  readonly database: string
  readonly onProgress?: OnProgress
}

/** A restored database. */
export interface RestoreResult extends Heads {
  readonly database: string
  /** Where the replaced database is; absent if there was none. */
  readonly aside?: string
}

/**
 * Holds the database alone until the scope closes, without a write-ahead log beside it. It holds nothing
 * if the file is damaged.
 */
const alone = (database: string): Effect.Effect<void, BackupFailed, Scope.Scope> =>
  Effect.acquireRelease(
    attempt(database, () => {
      const db = Driver.open(database, { fileMustExist: true, timeout: 0 })
      try {
        // SQLite leaves this mode only for the single connection of the file.
        db.pragma("journal_mode = DELETE")
        db.exec("BEGIN EXCLUSIVE")
        return db
      } catch (cause) {
        db.close()
        if (reasonOf(cause) === "corrupt") return undefined
        if (reasonOf(cause) !== "busy") throw cause
        const details = "a process uses the database; stop it (daybook serve, prompts) and try again"
        throw new BackupFailed({ path: database, reason: "in-use", details })
      }
    }),
    (db) => Effect.sync(() => db?.close())
  )

/** Links the file to the first name with a number that is free; returns the name. */
const linkAside = async (database: string, name: string, n = 1): Promise<string> => {
  const aside = n === 1 ? name : `${name}-${n}`
  try {
    await link(database, aside)
    return aside
  } catch (cause) {
    // Another restore of the same second.
    if (Predicate.hasProperty(cause, "code") && cause.code === "EEXIST") return linkAside(database, name, n + 1)
    throw cause
  }
}

/** Gives the current database a second name, so that its own name always holds a whole database. Returns that name. */
const keepAside = (database: string, name: string) =>
  attempt(name, async () => {
    const aside = await linkAside(database, name)
    // Only a damaged database still has these. SQLite would apply them to the new one.
    for (const end of ["-wal", "-journal"]) {
      if (await exists(`${database}${end}`)) await link(`${database}${end}`, `${aside}${end}`)
    }
    for (const end of ["-wal", "-journal", "-shm"]) await rm(`${database}${end}`, { force: true })
    return aside
  })

/**
 * Puts a copy in the place of the database. The copy is verified first; the replaced database stays beside it. Fails if a
 * process uses the database. A kill leaves either the old or the new database, whole.
 */
export const restore = Effect.fn("Backup.restore")(function* (options: RestoreOptions) {
  const { file, onProgress = nothing } = options
  // A link stays a link, also to a file that does not exist.
  const database = yield* Effect.promise(() => realpath(options.database).catch(() => options.database))
  const from = yield* snapshotOf(file)
  const path = yield* incomplete(database)
  const heads = yield* copy(from, path, onProgress)
  yield* sound(path)
  if (!(yield* attempt(database, () => exists(database)))) {
    yield* publish(path, database, false)
    const created: RestoreResult = { ...heads, database }
    return created
  }
  const now = new Date(yield* Clock.currentTimeMillis).toISOString().replaceAll(/[-:]|\.\d+/g, "")
  const aside = yield* Effect.uninterruptible(
    Effect.scoped(
      Effect.gen(function* () {
        yield* alone(database)
        const aside = yield* keepAside(database, `${database}.replaced-${now}`)
        // It holds words of the replaced database; the next search builds it again.
        yield* discard(searchPath(database))
        yield* publish(path, database, true)
        return aside
      })
    )
  )
  const replaced: RestoreResult = { ...heads, database, aside }
  return replaced
}, Effect.scoped)
