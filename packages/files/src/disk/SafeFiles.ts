/**
 * File and folder operations under one root: replaces a value atomically, appends to a log, moves a foreign file aside.
 * The calls (`FileCalls.ts`) are short and synchronous, like those of the database: handing a call to another thread
 * costs a hundred times the call's work. Reading a whole file yields between pieces. It knows nothing of sessions.
 * Spec: FI-60..FI-64, FI-88, FI-97 in specs/files.md (SC-3, FL-3).
 */
import { createHash } from "node:crypto"
import * as fs from "node:fs"
import { crc32 } from "node:zlib"
import { Effect, type Scope } from "effect"
import { codeOf } from "@daybook/log/support/SystemError"
import type { SafeError } from "../layout/Errors.ts"
import type { Modes } from "../layout/Layout.ts"
import * as FileCalls from "./FileCalls.ts"
import {
  absolute,
  attempt,
  type GuardedRoot,
  discard,
  isFile,
  isFolder,
  isForeign,
  isPermitted,
  look,
  open,
  openTemporary,
  permissions,
  permit,
  permitFolder,
  placeTemporary,
  remove,
  type Stamp,
  stampAt,
  stampOf,
  type Sum,
  temporaryOf,
  unlessMissing,
  using,
  way,
  writeAll
} from "./FileCalls.ts"

// Writes, moves and removes files below a root.

/** New content of a file, written beside it and put in place atomically. */
export interface Replacement {
  readonly write: (content: string | Uint8Array) => Effect.Effect<void, SafeError>
  /** Size and checksum of the content so far. */
  readonly sum: () => Sum
  /** Puts the content in place. Otherwise it is removed when the scope closes. */
  readonly place: Effect.Effect<Stamp, SafeError>
}

const bytesOf = (content: string | Uint8Array): Uint8Array =>
  typeof content === "string" ? Buffer.from(content, "utf8") : content

const begin = (at: GuardedRoot, path: string, mode: number): Effect.Effect<Replacement, SafeError, Scope.Scope> =>
  Effect.gen(function* () {
    let [crc, size, placed] = [0, 0, false]
    const file = yield* Effect.acquireRelease(
      attempt(at, "write", path, () => openTemporary(at, path, mode)),
      (file) =>
        Effect.sync(() => {
          fs.closeSync(file)
          if (!placed) discard(at, path)
        })
    )
    return {
      sum: () => ({ size, crc }),
      write: (content) =>
        attempt(at, "write", path, () => {
          const bytes = bytesOf(content)
          writeAll(at, file, temporaryOf(path), bytes)
          crc = crc32(bytes, crc)
          size += bytes.length
        }),
      place: attempt(at, "replace", path, () => {
        const stamp = placeTemporary(at, file, path, mode)
        placed = true
        return stamp
      })
    } satisfies Replacement
  })

const writeOperations = (at: GuardedRoot) => ({
  /** Replaces the file's content atomically: a reader sees the old or the new content. */
  replace: (path: string, content: string | Uint8Array, mode: number): Effect.Effect<Stamp, SafeError> =>
    attempt(at, "write", path, () => {
      const file = openTemporary(at, path, mode)
      try {
        writeAll(at, file, temporaryOf(path), bytesOf(content))
        return placeTemporary(at, file, path, mode)
      } catch (error) {
        discard(at, path)
        throw error
      } finally {
        fs.closeSync(file)
      }
    }),

  /** Starts a replacement whose content comes in pieces. */
  begin: (path: string, mode: number) => begin(at, path, mode),

  /** Appends to the file; creates it if absent. */
  append: (path: string, content: string | Uint8Array, mode: number): Effect.Effect<Stamp, SafeError> =>
    attempt(at, "append to", path, () =>
      using(
        at,
        path,
        fs.constants.O_WRONLY | fs.constants.O_APPEND | fs.constants.O_CREAT,
        (file) => {
          writeAll(at, file, path, bytesOf(content))
          const stamp = stampAt(file)
          if (stamp.mode === mode) return stamp
          permit(at, file, path, mode)
          return stampAt(file)
        },
        mode
      )
    ),

  /** Overwrites the beginning of the file in place; creates it if absent. */
  overwrite: (path: string, content: Uint8Array, mode: number): Effect.Effect<void, SafeError> =>
    attempt(at, "write", path, () =>
      using(at, path, fs.constants.O_WRONLY | fs.constants.O_CREAT, (file) => writeAll(at, file, path, content), mode)
    ),

  permit: (path: string, mode: number, gid?: number): Effect.Effect<Stamp, SafeError> =>
    attempt(at, "change the permissions of", path, () => {
      // The owner may have removed its own read permission, so that open would fail.
      if (((isFile(at, path)?.mode ?? 0n) & 0o400n) === 0n) fs.chmodSync(absolute(at, path), mode)
      return using(at, path, fs.constants.O_RDONLY, (file) => {
        permit(at, file, path, mode, gid)
        return stampAt(file)
      })
    }),

  /** Moves the file to `<name>.aside.<n>`, with the first free number, and returns that path. */
  keepAside: (path: string): Effect.Effect<string, SafeError> =>
    attempt(at, "keep aside", path, () => {
      for (let n = 1; ; n++) {
        const aside = `${path}.aside.${n}`
        if (look(at, aside) !== undefined) continue
        at.before("rename", path)
        fs.renameSync(absolute(at, path), absolute(at, aside))
        return aside
      }
    }),

  /** Renames the file if it exists. */
  rename: (path: string, name: string): Effect.Effect<void, SafeError> =>
    attempt(at, "rename", path, () => {
      at.before("rename", path)
      unlessMissing(() => fs.renameSync(absolute(at, path), absolute(at, name)))
    }),

  /** Removes the file if it exists. */
  remove: (path: string): Effect.Effect<void, SafeError> => attempt(at, "remove", path, () => remove(at, path))
})

// Creates, checks, lists and removes folders below a root.

const folderOperations = (at: GuardedRoot) => ({
  reach: (folder: string): Effect.Effect<boolean, SafeError> =>
    attempt(at, "reach", folder, () => way(folder).every((path) => isFolder(at, path) !== undefined)),

  /** Creates the folders with permissions and group; returns the corrected ones. Other users' folders stay. */
  ensureFolders: (
    folders: Iterable<string>,
    wanted: Pick<Modes, "folder" | "group">
  ): Effect.Effect<ReadonlyArray<string>, SafeError> =>
    Effect.suspend(() => {
      const all = new Set([...folders].flatMap(way))
      return Effect.map(
        Effect.forEach(all, (path) =>
          attempt(at, "make", path, () => {
            const [mode, gid] = [wanted.folder(path), wanted.group(path)]
            const found = isFolder(at, path)
            if (found !== undefined && isPermitted(found, mode, gid)) return []
            if (found === undefined) {
              at.before("make folder", path)
              fs.mkdirSync(absolute(at, path), mode)
            }
            permitFolder(at, path, mode, gid)
            return found === undefined ? [] : [path]
          })
        ),
        (changed) => changed.flat()
      )
    }),

  /** The folder's permissions and group; undefined if it is absent, or if another user created it in the root. */
  folderMode: (folder: string): Effect.Effect<{ readonly mode: number; readonly gid: number } | undefined, SafeError> =>
    attempt(at, "look at", folder, () => {
      const stats = isFolder(at, folder)
      return stats === undefined || isForeign(stats)
        ? undefined
        : { mode: Number(stats.mode & permissions), gid: Number(stats.gid) }
    }),

  /** Removes the folder if it is empty, and then its empty parents. */
  removeEmpty: (folder: string): Effect.Effect<void, SafeError> =>
    attempt(at, "remove", folder, () => {
      for (const path of way(folder).toReversed()) {
        at.before("remove", path)
        try {
          fs.rmdirSync(absolute(at, path))
        } catch (error) {
          if (["ENOTEMPTY", "EEXIST"].includes(codeOf(error))) return
          if (codeOf(error) !== "ENOENT") throw error
        }
      }
    }),

  /** Removes the folder if it exists and is empty. */
  removeFolder: (folder: string): Effect.Effect<void, SafeError> =>
    attempt(at, "remove", folder, () => {
      at.before("remove", folder)
      try {
        fs.rmdirSync(absolute(at, folder))
      } catch (error) {
        if (!["ENOENT", "ENOTDIR", "ENOTEMPTY", "EEXIST"].includes(codeOf(error))) throw error
      }
    }),

  /** The folder's entries, by name; empty if it is absent. */
  list: (
    folder: string
  ): Effect.Effect<ReadonlyArray<{ readonly name: string; readonly folder: boolean }>, SafeError> =>
    attempt(at, "list", folder, () => {
      at.before("list", folder)
      const entries = unlessMissing(() => fs.readdirSync(absolute(at, folder), { withFileTypes: true })) ?? []
      return entries.map((entry) => ({ name: entry.name, folder: entry.isDirectory() }))
    })
})

// Reads files below a root; yields between pieces of a whole file.

const chunkSize = 256 * 1024

/** Reads a range of the file in pieces that share one buffer: use each before the next. */
const eachPiece = (
  at: GuardedRoot,
  path: string,
  from: number,
  through: number,
  use: (bytes: Uint8Array) => void
): Effect.Effect<void, SafeError> =>
  Effect.acquireUseRelease(
    attempt(at, "read", path, () => open(at, path, fs.constants.O_RDONLY)),
    (file) =>
      Effect.gen(function* () {
        const buffer = Buffer.allocUnsafe(Math.max(0, Math.min(chunkSize, through - from)))
        for (let offset = from; offset < through;) {
          const length = yield* attempt(at, "read", path, () => {
            at.before("read", path)
            return fs.readSync(file, buffer, 0, Math.min(buffer.length, through - offset), offset)
          })
          if (length === 0) break
          use(buffer.subarray(0, length))
          offset += length
          if (offset < through) yield* Effect.yieldNow()
        }
      }),
    (file) => Effect.sync(() => fs.closeSync(file))
  )

const readOperations = (at: GuardedRoot) => ({
  stamp: (file: string): Effect.Effect<Stamp | undefined, SafeError> =>
    attempt(at, "look at", file, () => {
      const stats = isFile(at, file)
      return stats === undefined ? undefined : stampOf(stats)
    }),

  /** Size and checksum of the file's content, or of its first `through` bytes. */
  sum: (path: string, through: number = Number.MAX_SAFE_INTEGER): Effect.Effect<Sum, SafeError> =>
    Effect.suspend(() => {
      let [crc, size] = [0, 0]
      return Effect.map(
        eachPiece(at, path, 0, through, (bytes) => {
          crc = crc32(bytes, crc)
          size += bytes.length
        }),
        () => ({ size, crc })
      )
    }),

  /** The SHA-256, in hex, of `length` bytes at the offset. */
  digest: (path: string, offset: number, length: number): Effect.Effect<string, SafeError> =>
    Effect.suspend(() => {
      const hash = createHash("sha256")
      return Effect.map(
        eachPiece(at, path, offset, offset + length, (bytes) => void hash.update(bytes)),
        () => hash.digest("hex")
      )
    }),

  /** Reads at most `length` bytes at the offset. */
  readRange: (path: string, offset: number, length: number): Effect.Effect<Uint8Array, SafeError> =>
    attempt(at, "read", path, () =>
      using(at, path, fs.constants.O_RDONLY, (file) => {
        const buffer = Buffer.alloc(length)
        let filled = 0
        while (filled < length) {
          at.before("read", path)
          const read = fs.readSync(file, buffer, filled, length - filled, offset + filled)
          if (read === 0) break
          filled += read
        }
        return buffer.subarray(0, filled)
      })
    )
})

export { temporaryName, type FileOperation, type SafeFilesOptions } from "./FileCalls.ts"
export type { Stamp, Sum } from "./FileCalls.ts"

export type SafeFiles = ReturnType<typeof make>

/** Whether `keepAside` makes such a name. */
export const isAside = (name: string): boolean => /\.aside\.[1-9]\d*$/.test(name)

/** The file operations under a root. Paths are relative to it. The caller has checked the folder of a file. */
export const make = ({ before = () => undefined, root }: FileCalls.SafeFilesOptions) => {
  const at: FileCalls.GuardedRoot = { root, before }
  return {
    root,
    absolute: (path: string): string => FileCalls.absolute(at, path),
    ...folderOperations(at),
    ...readOperations(at),
    ...writeOperations(at)
  }
}

// Lists the houses under a root, including those that the store does not know.

/** Folder names on the path to a house, level by level; undefined matches any name. */
export const levels = [["home", "shared"], undefined, ["agent", "model"], undefined, ["session"]] as const

/** The folder's entries; empty if this user may not read it or the path is refused. */
export const lookForHouse = (
  files: SafeFiles,
  folder: string
): Effect.Effect<ReadonlyArray<{ readonly name: string; readonly folder: boolean }>, SafeError> =>
  Effect.flatMap(files.reach(folder), (there) => (there ? files.list(folder) : Effect.succeed([]))).pipe(
    Effect.catchIf(
      (error) => error._tag === "PathRefused" || error.code === "EACCES" || error.code === "EPERM",
      () => Effect.succeed([])
    )
  )

/** The folders of all houses, relative to the root. Links are not followed. */
export const houses = Effect.fnUntraced(function* (files: SafeFiles) {
  let found: ReadonlyArray<string> = [""]
  for (const level of levels) {
    const names: ReadonlyArray<string> | undefined = level
    const next: Array<string> = []
    for (const above of found) {
      for (const { folder, name } of yield* lookForHouse(files, above)) {
        if (folder && names?.includes(name) !== false) next.push(above === "" ? name : `${above}/${name}`)
      }
    }
    found = next
  }
  return found
})
