/**
 * Session files on disk. Calls are short and synchronous: handing a call to another thread costs many times the call's
 * work. Only fsync leaves the thread. Spec: FM-70..FM-76, FM-420 in specs/formats.md.
 */
import * as fs from "node:fs"
import { basename, dirname, join, resolve } from "node:path"
import { StringDecoder } from "node:string_decoder"
import { Effect, Either, Layer, Option, type Scope, Stream } from "effect"
import * as FileLock from "@daybook/log/storage/FileLock"
import { makeFolders } from "@daybook/log/storage/PrivateFile"
import { isAlive } from "@daybook/log/support/Alive"
import { codeOf } from "@daybook/log/support/SystemError"
import {
  makeLatch,
  backupName,
  failed,
  failedOrMissing,
  type FileMissing,
  type FileStart,
  type FileStat,
  SessionLocked,
  SessionStorage,
  type SessionWriter,
  StorageFailed
} from "./SessionStorage.ts"

// Names temporary files by the number of their process, and removes those of dead processes.

/** The temporary files that this process writes now. */
const ownName = new Set<string>()
let count = 0

const temporaryName = /^\..+\.(\d+)\.\d+\.tmp$/

/** No file is written for so long, in milliseconds. */
const longest = 24 * 60 * 60 * 1000
const startedAt = Date.now() - process.uptime() * 1000

/** Whether the process that wrote the file has ended; its number may be that of another process now. */
const isLeft = (path: string, pid: number): boolean => {
  const writtenAt = fs.statSync(path, { throwIfNoEntry: false })?.mtimeMs
  if (writtenAt === undefined || ownName.has(path)) return false
  if (pid === process.pid) return writtenAt < startedAt
  return !isAlive(pid) || writtenAt < Date.now() - longest
}

/** The value, or undefined if the system refuses it. */
const possibly = <A>(use: () => A): A | undefined => {
  try {
    return use()
  } catch {
    return undefined
  }
}

const entriesIn = (folder: string): ReadonlyArray<string> => possibly(() => fs.readdirSync(folder)) ?? []

/** A new name beside the file; give it back with `release`. */
export const reserveTemporary = (path: string): string => {
  const name = join(dirname(resolve(path)), `.${basename(path)}.${process.pid}.${++count}.tmp`)
  fs.rmSync(name, { force: true })
  ownName.add(name)
  return name
}

/** Removes the file, if it is still there, and gives its name back. */
export const releaseTemporary = (name: string): void => {
  fs.rmSync(name, { force: true })
  ownName.delete(name)
}

/** Removes what killed processes left in the folder. What this user may not remove stays. */
export const sweepTemporaries = (folder: string): void => {
  for (const name of entriesIn(folder)) {
    const [, pid] = temporaryName.exec(name) ?? []
    const path = join(resolve(folder), name)
    if (pid !== undefined) possibly(() => (isLeft(path, Number(pid)) ? fs.rmSync(path, { force: true }) : undefined))
  }
}

/** The system calls that write; a fault test makes one of them fail. */
export interface Calls {
  readonly write: (file: number, bytes: Uint8Array) => number
  readonly fsync: (file: number) => Promise<void>
  readonly rename: (from: string, to: string) => void
}

const fsync = (file: number) =>
  new Promise<void>((resolve, reject) => fs.fsync(file, (error) => (error === null ? resolve() : reject(error))))

const systemCalls: Calls = { write: fs.writeSync, fsync, rename: fs.renameSync }

const chunkSize = 256 * 1024
const newline = 0x0a

export const attempt = <A>(operation: string, path: string, use: () => A): Effect.Effect<A, StorageFailed> =>
  Effect.try({ try: use, catch: (cause) => failed(operation, path, cause) })

const attemptOnFile = <A>(
  operation: string,
  path: string,
  use: () => A
): Effect.Effect<A, FileMissing | StorageFailed> =>
  Effect.try({ try: use, catch: (cause) => failedOrMissing(operation, path, cause) })

const namesIn = (folder: string, isWanted: (entry: fs.Dirent) => boolean): ReadonlyArray<string> => {
  const entries = fs.existsSync(folder) ? fs.readdirSync(folder, { withFileTypes: true }) : []
  return entries
    .filter((entry) => !entry.name.startsWith(".") && isWanted(entry))
    .map(({ name }) => name)
    .toSorted()
}

const statOf = ({ mtimeMs, size }: fs.Stats): FileStat => ({ sizeBytes: size, modifiedAt: mtimeMs })

/** Lists read the first bytes of thousands of files: one buffer and decoder serve all, since reading is synchronous. */
const shared = Buffer.allocUnsafe(4096)
const decoder = new StringDecoder("utf8")

const start = (path: string, bytes: number): FileStart => {
  const file = fs.openSync(path, "r")
  try {
    const buffer = bytes <= shared.length ? shared : Buffer.allocUnsafe(bytes)
    const text = decoder.write(buffer.subarray(0, fs.readSync(file, buffer, 0, bytes, 0)))
    // Forgets a character that the last byte cuts.
    decoder.end()
    return { text, ...statOf(fs.fstatSync(file)) }
  } finally {
    fs.closeSync(file)
  }
}

const readBytes = (path: string): Stream.Stream<Uint8Array, FileMissing | StorageFailed> =>
  Stream.unwrapScoped(
    Effect.map(
      Effect.acquireRelease(
        attemptOnFile("read", path, () => fs.openSync(path, "r")),
        (file) => Effect.sync(() => fs.closeSync(file))
      ),
      (file) =>
        Stream.repeatEffectOption(
          Effect.mapError(
            attempt("read", path, () => {
              const buffer = Buffer.allocUnsafe(chunkSize)
              return buffer.subarray(0, fs.readSync(file, buffer, 0, chunkSize, null))
            }),
            Option.some
          ).pipe(Effect.filterOrFail((bytes) => bytes.length > 0, Option.none))
        )
    )
  )

/** Collects lines into pieces of some size: a write for each line would cost more than the bytes. */
function* piecesOf(lines: Iterable<string>): Generator<Uint8Array> {
  let piece = ""
  for (const line of lines) {
    piece += `${line}\n`
    if (piece.length < chunkSize) continue
    yield Buffer.from(piece)
    piece = ""
  }
  if (piece !== "") yield Buffer.from(piece)
}

const writeAll = (calls: Calls, file: number, bytes: Uint8Array): void => {
  for (let at = 0; at < bytes.length;) at += calls.write(file, bytes.subarray(at))
}

const modeAt = (path: string): number | undefined => {
  const mode = fs.statSync(path, { throwIfNoEntry: false })?.mode
  return mode === undefined ? undefined : mode & 0o777
}

/** Makes a name durable. */
const syncFolder = async (calls: Calls, folder: string): Promise<void> => {
  const handle = fs.openSync(folder, "r")
  try {
    await calls.fsync(handle)
  } finally {
    fs.closeSync(handle)
  }
}

const using = async <A>(path: string, flags: string, mode: number, use: (file: number) => Promise<A>): Promise<A> => {
  const file = fs.openSync(path, flags, mode)
  try {
    return await use(file)
  } finally {
    fs.closeSync(file)
  }
}

const replaceFile = async (calls: Calls, path: string, pieces: Iterable<Uint8Array>): Promise<void> => {
  const temporary = reserveTemporary(path)
  try {
    sweepTemporaries(dirname(path))
    const mode = modeAt(path) ?? 0o600
    await using(temporary, "wx", mode, async (file) => {
      for (const bytes of pieces) writeAll(calls, file, bytes)
      fs.fchmodSync(file, mode)
      await calls.fsync(file)
    })
    calls.rename(temporary, path)
  } finally {
    releaseTemporary(temporary)
  }
  await syncFolder(calls, dirname(path))
}

function* restOf(file: number, from: number, reached: (at: number) => void): Generator<Uint8Array> {
  for (let at = from; ;) {
    const buffer = Buffer.allocUnsafe(chunkSize)
    const size = fs.readSync(file, buffer, 0, chunkSize, at)
    if (size === 0) return
    at += size
    reached(at)
    yield buffer.subarray(0, size)
  }
}

function* concatenated(pieces: Iterable<Uint8Array>, rest: () => Iterable<Uint8Array>): Generator<Uint8Array> {
  yield* pieces
  yield* rest()
}

const replace = (
  calls: Calls,
  path: string,
  pieces: Iterable<Uint8Array>,
  tail?: number
): Effect.Effect<void, StorageFailed> =>
  Effect.tryPromise({
    try: async () => {
      if (tail === undefined) return replaceFile(calls, path, pieces)
      await using(path, "r", 0, async (old) => {
        let at = tail
        const rest = () => restOf(old, at, (reached) => void (at = reached))
        await replaceFile(calls, path, concatenated(pieces, rest))
        // What another program appended to the replaced file in the last moment.
        const late = [...rest()]
        if (late.length === 0) return
        await using(path, "a", 0o600, async (file) => {
          for (const bytes of late) writeAll(calls, file, bytes)
          await calls.fsync(file)
        })
      })
    },
    catch: (cause) => failed("write", path, cause)
    // Interruption would leave the temporary file.
  }).pipe(Effect.uninterruptible)

const endsWithNewline = (file: number, size: number): boolean => {
  if (size === 0) return true
  const last = Buffer.allocUnsafe(1)
  fs.readSync(file, last, 0, 1, size - 1)
  return last[0] === newline
}

const openWriter = (calls: Calls, path: string): Effect.Effect<SessionWriter, StorageFailed, Scope.Scope> =>
  Effect.gen(function* () {
    const file = yield* Effect.acquireRelease(
      attempt("open", path, () => fs.openSync(path, "a+", 0o600)),
      (file) => Effect.sync(() => fs.closeSync(file))
    )
    const latch = makeLatch()
    let isWhole = yield* attempt("read", path, () => endsWithNewline(file, fs.fstatSync(file).size))
    const append = (line: string) => {
      const before = fs.fstatSync(file).size
      try {
        writeAll(calls, file, Buffer.from(`${isWhole ? "" : "\n"}${line}\n`))
        isWhole = true
      } catch (cause) {
        // Only this writer appends: the bytes after `before` are its own.
        fs.ftruncateSync(file, before)
        throw cause
      }
    }
    return {
      writeLine: (line) => latch.guard(attempt("append to", path, () => append(line))),
      fsync: latch.guard(
        Effect.tryPromise({ try: () => calls.fsync(file), catch: (cause) => failed("make durable", path, cause) })
      ),
      error: latch.error
    } satisfies SessionWriter
  })

const backUp = (calls: Calls, path: string, label: string): Effect.Effect<string, FileMissing | StorageFailed> =>
  Effect.tryPromise({
    try: async () => {
      for (let number = 1; ; number++) {
        const copy = backupName(path, label, number)
        try {
          fs.copyFileSync(path, copy, fs.constants.COPYFILE_EXCL)
        } catch (cause) {
          if (codeOf(cause) === "EEXIST") continue
          throw cause
        }
        try {
          await using(copy, "r+", 0, calls.fsync)
          await syncFolder(calls, dirname(copy))
        } catch (cause) {
          fs.rmSync(copy, { force: true })
          throw cause
        }
        return copy
      }
    },
    catch: (cause) => failedOrMissing("copy", path, cause)
  }).pipe(Effect.uninterruptible)

const lock = (path: string): Effect.Effect<void, SessionLocked | StorageFailed, Scope.Scope> =>
  FileLock.acquire(path).pipe(
    Effect.mapError((cause) => failed("lock", path, cause)),
    Effect.filterOrFail(
      (held) => held,
      () => new SessionLocked({ path })
    ),
    Effect.zipRight(Effect.sync(() => sweepTemporaries(dirname(path))))
  )

export const make = (calls: Partial<Calls> = {}) => {
  const system = { ...systemCalls, ...calls }
  return SessionStorage.of({
    ensureDir: (path) =>
      Effect.tryPromise({ try: () => makeFolders(path, 0o700), catch: (cause) => failed("create", path, cause) }),
    exists: (path) => attempt("look at", path, () => fs.statSync(path, { throwIfNoEntry: false }) !== undefined),
    stat: (path) => attemptOnFile("look at", path, () => statOf(fs.statSync(path))),
    listFiles: (folder) => attempt("list", folder, () => namesIn(folder, (entry) => !entry.isDirectory())),
    listDirs: (folder) =>
      attempt("list", folder, () =>
        namesIn(
          folder,
          (entry) =>
            entry.isDirectory() ||
            (entry.isSymbolicLink() &&
              fs.statSync(join(folder, entry.name), { throwIfNoEntry: false })?.isDirectory() === true)
        )
      ),
    readText: (path) => attemptOnFile("read", path, () => fs.readFileSync(path, "utf8")),
    readStarts: (paths, bytes) =>
      Effect.sync(() =>
        paths.map((path) =>
          Either.try({ try: () => start(path, bytes), catch: (cause) => failedOrMissing("read", path, cause) })
        )
      ),
    readBytes,
    writeText: (path, text) => replace(system, path, [Buffer.from(text)]),
    writeLines: (path, lines, tail) => replace(system, path, piecesOf(lines), tail),
    backUp: (path, label) => backUp(system, path, label),
    rename: (from, to) => attemptOnFile("rename", from, () => system.rename(from, to)),
    unlink: (path) =>
      Effect.catchTag(
        attemptOnFile("remove", path, () => fs.unlinkSync(path)),
        "FileMissing",
        () => Effect.void
      ),
    openWriter: (path) => openWriter(system, path),
    lock
  })
}

export const layer = Layer.sync(SessionStorage, make)
