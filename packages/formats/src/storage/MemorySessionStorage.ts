/** Session files in memory: for tests, and for sessions that are not kept. Spec: FM-70..FM-76. */
import { basename, dirname, resolve } from "node:path"
import { Clock, Effect, Layer, type Scope, Stream } from "effect"
import {
  makeLatch,
  backupName,
  FileMissing,
  type FileStat,
  SessionLocked,
  SessionStorage,
  type SessionWriter,
  StorageFailed
} from "./SessionStorage.ts"

/** A file keeps its identity when it is renamed, and loses its name when it is replaced, as on disk. */
type File = { readonly is: "file"; text: string; modifiedAt: number }

const folder = { is: "folder" } as const

const sentences = {
  EEXIST: "a file has this name",
  EINVAL: "a folder cannot move into itself",
  EISDIR: "it is a folder",
  ENOENT: "it does not exist",
  ENOTDIR: "a part of the path is not a folder",
  ENOTEMPTY: "the folder is not empty"
} as const
type Code = keyof typeof sentences

const failed = (operation: string, path: string, code: Code) =>
  new StorageFailed({ operation, path, code, details: sentences[code] })

const failedOrMissing = (operation: string, path: string, code: Code) =>
  code === "ENOENT" ? new FileMissing({ path }) : failed(operation, path, code)

/** The bytes of a text from an offset on. */
const from = (text: string, at: number): string => Buffer.from(text).subarray(at).toString()

/** An empty storage. */
export const make = () => {
  const nodes = new Map<string, File | typeof folder>([["/", folder]])
  const locks = new Set<string>()

  const isInside = (path: string, other: string) => path === other || path.startsWith(other === "/" ? "/" : `${other}/`)
  const inside = (path: string) => [...nodes].filter(([name]) => isInside(name, path))

  /** Why nothing can have this path; undefined if its folder exists. */
  const blocked = (path: string): Code | undefined => {
    const parent = nodes.get(dirname(path))
    if (parent !== undefined) return parent.is === "folder" ? undefined : "ENOTDIR"
    return blocked(dirname(path)) ?? "ENOENT"
  }
  const nodeAt = (path: string): File | typeof folder | Code => {
    const at = resolve(path)
    return nodes.get(at) ?? blocked(at) ?? "ENOENT"
  }
  const fileAt = (operation: string, path: string): Effect.Effect<File, FileMissing | StorageFailed> =>
    Effect.suspend(() => {
      const node = nodeAt(path)
      if (typeof node === "string") return Effect.fail(failedOrMissing(operation, path, node))
      return node.is === "file" ? Effect.succeed(node) : Effect.fail(failed(operation, path, "EISDIR"))
    })

  const ensureDir = (path: string): Code | undefined => {
    const node = nodes.get(path)
    if (node !== undefined) return node.is === "folder" ? undefined : "EEXIST"
    const error = ensureDir(dirname(path))
    if (error !== undefined) return "ENOTDIR"
    nodes.set(path, folder)
    return undefined
  }
  const childrenOf = (path: string, is: "file" | "folder"): Effect.Effect<ReadonlyArray<string>, StorageFailed> =>
    Effect.suspend(() => {
      const [at, node] = [resolve(path), nodes.get(resolve(path))]
      if (node?.is === "file") return Effect.fail(failed("list", path, "ENOTDIR"))
      const names = [...nodes]
        .filter(([name, node]) => node.is === is && dirname(name) === at && name !== at)
        .map(([name]) => basename(name))
      return Effect.succeed(names.filter((name) => !name.startsWith(".")).toSorted())
    })
  /** Replaces the file by another one, or creates it. */
  const write = (path: string, change: (before: string) => string) =>
    Effect.flatMap(Clock.currentTimeMillis, (modifiedAt) =>
      Effect.suspend(() => {
        const [at, node] = [resolve(path), nodes.get(resolve(path))]
        const error = blocked(at) ?? (node?.is === "folder" ? "EISDIR" : undefined)
        if (error !== undefined) return Effect.fail(failed("write", path, error))
        nodes.set(at, { is: "file", text: change(node?.is === "file" ? node.text : ""), modifiedAt })
        return Effect.void
      })
    )
  /** What keeps a node from being renamed, as POSIX has it. */
  const refused = (source: string, target: string): Code | undefined => {
    const [node, there] = [nodes.get(source), nodes.get(target)]
    const error = blocked(source) ?? blocked(target)
    if (error !== undefined) return error
    if (node === undefined) return "ENOENT"
    if (source === target) return undefined
    if (isInside(target, source)) return "EINVAL"
    if (isInside(source, target)) return "ENOTEMPTY"
    if (there === undefined) return undefined
    if (node.is === "file") return there.is === "file" ? undefined : "EISDIR"
    if (there.is === "file") return "ENOTDIR"
    return inside(target).length > 1 ? "ENOTEMPTY" : undefined
  }
  const rename = (from: string, to: string) =>
    Effect.suspend(() => {
      const [source, target] = [resolve(from), resolve(to)]
      const error = refused(source, target)
      if (error !== undefined) return Effect.fail(failedOrMissing("rename", from, error))
      const moved = inside(source)
      for (const [path] of moved) nodes.delete(path)
      for (const [path, node] of moved) nodes.set(`${target}${path.slice(source.length)}`, node)
      return Effect.void
    })
  const unlink = (path: string) =>
    Effect.suspend(() => {
      const node = nodeAt(path)
      if (node === "ENOTDIR") return Effect.fail(failed("remove", path, node))
      if (node === folder) return Effect.fail(failed("remove", path, "EISDIR"))
      nodes.delete(resolve(path))
      return Effect.void
    })
  const openWriter = (path: string): Effect.Effect<SessionWriter, StorageFailed> =>
    Effect.gen(function* () {
      if (nodes.get(resolve(path))?.is !== "file") yield* write(path, () => "")
      const file = yield* Effect.catchTag(fileAt("open", path), "FileMissing", () =>
        Effect.fail(failed("open", path, "ENOENT"))
      )
      const latch = makeLatch()
      const append = (line: string) =>
        Effect.map(Clock.currentTimeMillis, (modifiedAt) => {
          file.text = `${file.text}${file.text === "" || file.text.endsWith("\n") ? "" : "\n"}${line}\n`
          file.modifiedAt = modifiedAt
        })
      return { writeLine: (line) => latch.guard(append(line)), fsync: latch.guard(Effect.void), error: latch.error }
    })
  const backUp = (path: string, label: string) =>
    Effect.flatMap(fileAt("copy", path), ({ text }) => {
      let number = 1
      while (nodes.has(resolve(backupName(path, label, number)))) number += 1
      const copy = backupName(path, label, number)
      return Effect.as(
        write(copy, () => text),
        copy
      )
    })
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

  const folderOrFile = (path: string): Effect.Effect<FileStat, FileMissing | StorageFailed> =>
    Effect.suspend(() => {
      const node = nodeAt(path)
      if (typeof node === "string") return Effect.fail(failedOrMissing("look at", path, node))
      if (node.is === "folder") return Effect.succeed({ sizeBytes: 0, modifiedAt: 0 })
      return Effect.succeed({ sizeBytes: Buffer.byteLength(node.text), modifiedAt: node.modifiedAt })
    })

  return SessionStorage.of({
    ensureDir: (path) =>
      Effect.suspend(() => {
        const error = ensureDir(resolve(path))
        return error === undefined ? Effect.void : Effect.fail(failed("create", path, error))
      }),
    exists: (path) => Effect.sync(() => nodes.has(resolve(path))),
    stat: folderOrFile,
    listFiles: (path) => childrenOf(path, "file"),
    listDirs: (path) => childrenOf(path, "folder"),
    readText: (path) => Effect.map(fileAt("read", path), ({ text }) => text),
    readStarts: (paths, bytes) =>
      Effect.forEach(paths, (path) =>
        Effect.map(fileAt("read", path), ({ modifiedAt, text }) => ({
          text: new TextDecoder().decode(Buffer.from(text.slice(0, bytes)).subarray(0, bytes), { stream: true }),
          sizeBytes: Buffer.byteLength(text),
          modifiedAt
        })).pipe(Effect.either)
      ),
    readBytes: (path) =>
      Stream.flatMap(Stream.fromEffect(fileAt("read", path)), ({ text }) =>
        text === "" ? Stream.empty : Stream.make(Buffer.from(text))
      ),
    writeText: (path, text) => write(path, () => text),
    writeLines: (path, lines, tail) =>
      Effect.suspend(() => {
        const [at, text] = [resolve(path), [...lines].map((line) => `${line}\n`).join("")]
        return tail !== undefined && !nodes.has(at)
          ? Effect.fail(failed("write", path, blocked(at) ?? "ENOENT"))
          : write(path, (before) => text + (tail === undefined ? "" : from(before, tail)))
      }),
    backUp,
    rename,
    unlink,
    openWriter,
    lock
  })
}

/** An empty storage in memory. */
export const layer = Layer.sync(SessionStorage, make)
