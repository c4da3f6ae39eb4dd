/**
 * Copies a database to a file while other processes use it, and puts a copy back in its place. Spec: ST-42..ST-49.
 * @module @daybook/log/maintenance/Backup, ST-42, ST-43, ST-46.
 */
import { createHash, randomBytes } from "node:crypto"
import { access, link, readdir, realpath, rename, rm, stat } from "node:fs/promises"
import { basename, dirname, join } from "node:path"
import { Clock, Effect, Predicate, Schema, type Scope, Stream } from "effect"
import * as Connection from "../storage/Connection.ts"
import * as Database from "../storage/Database.ts"
import { anotherBuild, applicationID, schemaVersion } from "../storage/Database.ts"
import { fullDisk } from "../storage/FullDisk.ts"
import { makePrivate, sync } from "../storage/PrivateFile.ts"
import { discard, searchPath } from "../storage/SearchFile.ts"
import { reasonOf } from "../storage/Transaction.ts"
import { isAlive } from "../support/Alive.ts"
import * as Doctor from "./Doctor.ts"
import { codeOf, messageOf } from "../support/SystemError.ts"

// Copies a database page by page while other processes use it, and gives the copy its name only when it is complete.

/** A backup or a restore failed. Nothing was replaced. */
export class BackupFailed extends Schema.TaggedError<BackupFailed>("@daybook/log/BackupFailed")("BackupFailed", {
  path: Schema.String,
  reason: Schema.Literal("exists", "not-found", "not-daybook", "newer-version", "in-use", "unsound", "failed"),
  details: Schema.String
}) {
  override get message() {
    return `${this.path}: ${this.details}`
  }
}

export type OnProgress = (copied: number, total: number) => void

/** What a database holds: tests of a copy compare it. */
export interface Heads {
  readonly sessions: number
  readonly position: number
  /** Of every session's head, floor and incarnation, and of the newest removal. */
  readonly digest: string
}

/** Pages per step, about 1 MiB. Each step blocks the thread for a few milliseconds. */
const pagesAtOnce = 256
/** Bounds the load on the disk, so that commits of other processes stay fast. */
const bytesPerSecond = 128 * 1024 * 1024

/** Says which is missing: the file itself, or the folder that holds it. */
const absence = (path: string, cause: object): string =>
  Predicate.hasProperty(cause, "path") && typeof cause.path === "string" && cause.path !== path
    ? `${cause.path} does not exist`
    : "there is no such file"

/** Turns a failure of the driver or the file system into `BackupFailed`. */
export const attempt = <A>(path: string, work: (signal: AbortSignal) => Promise<A> | A) =>
  Effect.tryPromise({
    try: async (signal) => work(signal),
    catch: (cause) => {
      if (cause instanceof BackupFailed) return cause
      if (cause instanceof Error && codeOf(cause) === "ENOENT") {
        return new BackupFailed({ path, reason: "not-found", details: absence(path, cause) })
      }
      const details = fullDisk(path, cause) ?? messageOf(cause)
      return new BackupFailed({ path, reason: "failed", details })
    }
  })

/** Opens a Daybook database for reading, with a snapshot that lasts until the scope closes. */
export const snapshotOf = (path: string): Effect.Effect<Connection.Database, BackupFailed, Scope.Scope> =>
  Effect.acquireRelease(
    attempt(path, async () => {
      await access(path)
      const db = Connection.openDatabase(path, { readonly: true, fileMustExist: true, timeout: 10_000 })
      try {
        db.exec("BEGIN")
        check(db, path)
        return db
      } catch (cause) {
        db.close()
        throw cause
      }
    }),
    (db) => Effect.sync(() => db.close())
  )

const numberOf = (db: Connection.Database, text: string): number => {
  const value = db.prepare(text).pluck().get()
  return typeof value === "number" ? value : 0
}

const check = (db: Connection.Database, path: string): void => {
  const isOurs = (): boolean => {
    try {
      return db.pragma("application_id", { simple: true }) === applicationID
    } catch (cause) {
      if (reasonOf(cause) === "corrupt") return false
      throw cause
    }
  }
  if (!isOurs()) throw new BackupFailed({ path, reason: "not-daybook", details: "this is not a Daybook database" })
  const version = numberOf(db, "SELECT max(migration_id) FROM migration")
  if (version > schemaVersion) {
    throw new BackupFailed({ path, reason: "newer-version", details: anotherBuild(version) })
  }
}

const headsOf = (db: Connection.Database): Heads => {
  const hash = createHash("sha256")
  let sessions = 0
  const rows = db
    .prepare(
      "SELECT session_id, seq, floor, incarnation FROM event_sequence WHERE session_id IS NOT NULL ORDER BY session_id"
    )
    .raw()
  for (const row of rows.iterate()) {
    sessions += 1
    hash.update(`${JSON.stringify(row)}\n`)
  }
  hash.update(`${numberOf(db, "SELECT max(number) FROM session_removal")}`)
  const position = numberOf(db, "SELECT seq FROM sqlite_sequence WHERE name = 'event'")
  return { sessions, position, digest: hash.digest("hex") }
}

const pause = (ms: number): void => {
  if (ms >= 1) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}

/** Copies the snapshot to the file. Without the snapshot a commit of another process would start the copy again. */
const copyPages = (from: Connection.Database, to: string, onProgress: OnProgress, signal: AbortSignal) => {
  const began = performance.now()
  const pageSize = numberOf(from, "PRAGMA page_size")
  return from.backup(to, {
    progress: ({ remainingPages, totalPages }) => {
      signal.throwIfAborted()
      const copied = (totalPages - remainingPages) * pageSize
      onProgress(copied, totalPages * pageSize)
      pause((copied / bytesPerSecond) * 1000 - (performance.now() - began))
      return pagesAtOnce
    }
  })
}

/** The process that made an incomplete file of the target, by the file's name. */
const makerOf = (name: string, target: string): number | undefined => {
  const [, pid] = /^\.(\d+)-[0-9a-f]{8}\.partial(?:-journal|-wal|-shm)?$/.exec(name.slice(target.length)) ?? []
  return name.startsWith(target) && pid !== undefined ? Number(pid) : undefined
}

/** Removes what killed processes left of their copies. */
const removeLeft = async (target: string): Promise<void> => {
  const folder = dirname(target)
  for (const name of await readdir(folder)) {
    const pid = makerOf(name, basename(target))
    if (pid !== undefined && !isAlive(pid)) await rm(join(folder, name), { force: true })
  }
}

/** A private name beside the target for an incomplete file; removed with the scope if it is still there. */
export const incomplete = (target: string): Effect.Effect<string, BackupFailed, Scope.Scope> =>
  Effect.acquireRelease(
    attempt(target, async () => {
      await removeLeft(target)
      const path = `${target}.${process.pid}-${randomBytes(4).toString("hex")}.partial`
      await makePrivate(path)
      return path
    }),
    (path) =>
      Effect.promise(() =>
        Promise.all(["", "-journal", "-wal", "-shm"].map((end) => rm(`${path}${end}`, { force: true })))
      )
  )

/** Copies the snapshot to the file, and compares the heads of both. */
export const copy = (
  from: Connection.Database,
  to: string,
  onProgress: OnProgress
): Effect.Effect<Heads, BackupFailed> =>
  attempt(to, async (signal) => {
    const heads = headsOf(from)
    await copyPages(from, to, onProgress, signal)
    const db = Connection.openDatabase(to, { fileMustExist: true })
    try {
      const copied = headsOf(db)
      // A session's head is its last event, unless all its events are pruned, it was only claimed or is being removed.
      const headless = numberOf(
        db,
        `SELECT count(*) FROM event_sequence s WHERE s.seq > s.floor AND s.session_id IS NOT NULL
          AND NOT EXISTS (SELECT 1 FROM event e WHERE e.session = s.session AND e.seq = s.seq)`
      )
      if (copied.digest !== heads.digest || copied.position !== heads.position || headless > 0) {
        throw new BackupFailed({ path: to, reason: "unsound", details: "the copy differs from the database" })
      }
    } finally {
      db.close()
    }
    return heads
  })

/** Makes the file whole without a write-ahead log beside it, durable, and gives it its name. */
export const publish = (path: string, target: string, replace: boolean): Effect.Effect<void, BackupFailed> =>
  attempt(target, async () => {
    const db = Connection.openDatabase(path, { fileMustExist: true })
    db.pragma("journal_mode = DELETE")
    db.close()
    await sync(path)
    if (replace) await rename(path, target)
    else {
      // Unlike a rename, a link does not replace a file that was created meanwhile.
      await link(path, target).catch((cause: unknown) => {
        throw codeOf(cause) === "EEXIST" ? existsAlready(target) : cause
      })
      await rm(path)
    }
    await sync(dirname(target))
  })

/** The target exists and may not be replaced. */
const existsAlready = (path: string): BackupFailed =>
  new BackupFailed({
    path,
    reason: "exists",
    details: "the file exists; choose another name, or replace it with --force"
  })

export interface BackupOptions {
  readonly database: string
  readonly file: string
  readonly force?: boolean
  /** Also checks every event and row of the copy, as `Doctor.verify` does. */
  readonly verify?: boolean
  readonly onProgress?: OnProgress
}

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

export interface RestoreOptions {
  /** A file that `backup` made, or any Daybook database. It is not changed. */
  readonly file: string
  readonly database: string
  readonly onProgress?: OnProgress
}

export interface RestoreResult extends Heads {
  readonly database: string
  readonly aside?: string
}

/** Holds the database alone until the scope closes, without a write-ahead log; nothing if it is damaged. */
const alone = (database: string): Effect.Effect<void, BackupFailed, Scope.Scope> =>
  Effect.acquireRelease(
    attempt(database, () => {
      const db = Connection.openDatabase(database, { fileMustExist: true, timeout: 0 })
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
    if (codeOf(cause) === "EEXIST") return linkAside(database, name, n + 1)
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
