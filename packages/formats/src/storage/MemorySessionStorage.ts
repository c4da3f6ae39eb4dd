/** Session files in memory: for tests, and for sessions that are not kept. Spec: FM-70..FM-76. */
import { dirname, resolve } from "node:path"
import { Clock, Effect, Layer, type Scope, Stream } from "effect"
import * as Latch from "./Latch.ts"
import { SessionStorage, type SessionWriter } from "./SessionStorage.ts"
import { FileMissing, SessionLocked, StorageFailed } from "./StorageError.ts"

interface MemoryFile {
  text: string
  modifiedAt: number
}

const missing = (operation: string, path: string) =>
  new StorageFailed({ operation, path, code: "ENOENT", details: "it does not exist" })

/** An empty storage. */
export const make = () => {
  const files = new Map<string, MemoryFile>()
  const dirs = new Set<string>(["/"])
  const locks = new Set<string>()

  const ensureDir = (path: string): void => {
    dirs.add(path)
    if (dirname(path) !== path) ensureDir(dirname(path))
  }
  const fileAt = (path: string): Effect.Effect<MemoryFile, FileMissing> =>
    Effect.suspend(() => {
      const file = files.get(resolve(path))
      return file === undefined ? Effect.fail(new FileMissing({ path })) : Effect.succeed(file)
    })
  const childrenOf = (folder: string, paths: Iterable<string>): ReadonlyArray<string> =>
    [...paths]
      .filter((path) => dirname(path) === resolve(folder) && path !== resolve(folder))
      .map((path) => path.slice(path.lastIndexOf("/") + 1))
      .filter((name) => !name.startsWith("."))
      .toSorted()
  const write = (operation: string, path: string, change: (before: string) => string) =>
    Effect.flatMap(Clock.currentTimeMillis, (modifiedAt) =>
      Effect.suspend(() => {
        const at = resolve(path)
        if (!dirs.has(dirname(at))) return Effect.fail(missing(operation, path))
        files.set(at, { text: change(files.get(at)?.text ?? ""), modifiedAt })
        return Effect.void
      })
    )
  const rename = (from: string, to: string): boolean => {
    const [source, target] = [resolve(from), resolve(to)]
    const moved = (path: string) => (path === source ? target : `${target}${path.slice(source.length)}`)
    const isInside = (path: string) => path === source || path.startsWith(`${source}/`)
    const [movedFiles, movedDirs] = [[...files].filter(([path]) => isInside(path)), [...dirs].filter(isInside)]
    for (const [path, file] of movedFiles) {
      files.delete(path)
      files.set(moved(path), file)
    }
    for (const path of movedDirs) {
      dirs.delete(path)
      dirs.add(moved(path))
    }
    return movedFiles.length + movedDirs.length > 0
  }
  const openWriter = (path: string): Effect.Effect<SessionWriter, StorageFailed> =>
    Effect.map(
      write("open", path, (text) => text),
      () => {
        const latch = Latch.make()
        return {
          writeLine: (line) =>
            latch.guard(
              write("append to", path, (text) => `${text}${text === "" || text.endsWith("\n") ? "" : "\n"}${line}\n`)
            ),
          fsync: latch.guard(Effect.void),
          error: latch.error
        }
      }
    )
  const lock = (path: string): Effect.Effect<void, SessionLocked, Scope.Scope> =>
    Effect.asVoid(
      Effect.acquireRelease(
        Effect.suspend(() => {
          if (locks.has(resolve(path))) return Effect.fail(new SessionLocked({ path }))
          return Effect.sync(() => locks.add(resolve(path)))
        }),
        () => Effect.sync(() => locks.delete(resolve(path)))
      )
    )

  return SessionStorage.of({
    ensureDir: (path) => Effect.sync(() => ensureDir(resolve(path))),
    exists: (path) => Effect.sync(() => files.has(resolve(path)) || dirs.has(resolve(path))),
    stat: (path) =>
      Effect.map(fileAt(path), ({ modifiedAt, text }) => ({ sizeBytes: Buffer.byteLength(text), modifiedAt })),
    listFiles: (folder) => Effect.sync(() => childrenOf(folder, files.keys())),
    listDirs: (folder) => Effect.sync(() => childrenOf(folder, dirs)),
    readText: (path) => Effect.map(fileAt(path), ({ text }) => text),
    readStarts: (paths, bytes) =>
      Effect.forEach(paths, (path) =>
        Effect.map(fileAt(path), ({ modifiedAt, text }) => ({
          text: new TextDecoder().decode(Buffer.from(text.slice(0, bytes)).subarray(0, bytes), { stream: true }),
          sizeBytes: Buffer.byteLength(text),
          modifiedAt
        })).pipe(Effect.either)
      ),
    readBytes: (path) =>
      Stream.flatMap(Stream.fromEffect(fileAt(path)), ({ text }) =>
        text === "" ? Stream.empty : Stream.make(Buffer.from(text))
      ),
    writeText: (path, text) => write("write", path, () => text),
    writeLines: (path, lines) =>
      Effect.suspend(() => write("write", path, () => [...lines].map((line) => `${line}\n`).join(""))),
    rename: (from, to) =>
      Effect.suspend(() => (rename(from, to) ? Effect.void : Effect.fail(new FileMissing({ path: from })))),
    unlink: (path) => Effect.sync(() => void files.delete(resolve(path))),
    openWriter,
    lock
  })
}

/** An empty storage in memory. */
export const layer = Layer.sync(SessionStorage, make)
