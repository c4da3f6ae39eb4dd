/**
 * Copies a database page by page while other processes use it, and gives the copy its name only when it is complete. Used
 * by `Backup.ts` and `Restore.ts`. Spec: ST-42, ST-43, ST-46.
 */
import { createHash, randomBytes } from "node:crypto"
import { access, link, open, readdir, rename, rm } from "node:fs/promises"
import { basename, dirname, join } from "node:path"
import { Effect, Predicate, Schema, type Scope } from "effect"
import { anotherBuild, applicationID, schemaVersion } from "../storage/Database.ts"
import { fullDisk } from "../storage/FullDisk.ts"
import * as Driver from "../storage/Driver.ts"
import { makePrivate } from "../storage/PrivateFile.ts"
import { reasonOf } from "../storage/Transaction.ts"
import { isAlive } from "../support/Alive.ts"

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

/** Bytes copied so far, of the total. */
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

/** Turns a failure of the driver or the file system into `BackupFailed`. */
export const attempt = <A>(path: string, work: (signal: AbortSignal) => Promise<A> | A) =>
  Effect.tryPromise({
    try: async (signal) => work(signal),
    catch: (cause) => {
      if (cause instanceof BackupFailed) return cause
      const missing = Predicate.hasProperty(cause, "code") && cause.code === "ENOENT"
      const details = fullDisk(path, cause) ?? (cause instanceof Error ? cause.message : String(cause))
      return new BackupFailed({ path, reason: missing ? "not-found" : "failed", details })
    }
  })

/** Opens a Daybook database for reading, with a snapshot that lasts until the scope closes. */
export const snapshotOf = (path: string): Effect.Effect<Driver.Database, BackupFailed, Scope.Scope> =>
  Effect.acquireRelease(
    attempt(path, async () => {
      await access(path)
      const db = Driver.open(path, { readonly: true, fileMustExist: true, timeout: 10_000 })
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

/** Reads a single number. */
const numberOf = (db: Driver.Database, text: string): number => {
  const value = db.prepare(text).pluck().get()
  return typeof value === "number" ? value : 0
}

const check = (db: Driver.Database, path: string): void => {
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

/** The heads of a database. */
export const headsOf = (db: Driver.Database): Heads => {
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

/** Blocks this thread: the driver's steps leave no other way to pause. */
const pause = (ms: number): void => {
  if (ms >= 1) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}

/** Copies the snapshot to the file. Without the snapshot a commit of another process would start the copy again. */
const copyPages = (from: Driver.Database, to: string, onProgress: OnProgress, signal: AbortSignal) => {
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
export const copy = (from: Driver.Database, to: string, onProgress: OnProgress): Effect.Effect<Heads, BackupFailed> =>
  attempt(to, async (signal) => {
    const heads = headsOf(from)
    await copyPages(from, to, onProgress, signal)
    const db = Driver.open(to, { fileMustExist: true })
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

const sync = async (path: string): Promise<void> => {
  const handle = await open(path, "r")
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/** Makes the file whole without a write-ahead log beside it, durable, and gives it its name. */
export const publish = (path: string, target: string, replace: boolean): Effect.Effect<void, BackupFailed> =>
  attempt(target, async () => {
    const db = Driver.open(path, { fileMustExist: true })
    db.pragma("journal_mode = DELETE")
    db.close()
    await sync(path)
    if (replace) await rename(path, target)
    else {
      // Unlike a rename, a link does not replace a file that was created meanwhile.
      await link(path, target).catch((cause: unknown) => {
        throw Predicate.hasProperty(cause, "code") && cause.code === "EEXIST" ? existsAlready(target) : cause
      })
      await rm(path)
    }
    await sync(dirname(target))
  })

/** The target exists and may not be replaced. */
export const existsAlready = (path: string): BackupFailed =>
  new BackupFailed({
    path,
    reason: "exists",
    details: "the file exists; choose another name, or replace it with --force"
  })
