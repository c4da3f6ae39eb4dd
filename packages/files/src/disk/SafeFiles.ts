/**
 * File and folder operations under one root: replaces a value atomically, appends to a log, moves a foreign file aside.
 * The calls (`FileCalls.ts`) are short and synchronous, like those of the database: handing one to another thread costs
 * a hundred times its work. Reading a whole file yields between pieces. It knows nothing of sessions. Spec:
 * FI-60..FI-64 in specs/files.md (SC-3, FL-3).
 */
import { createHash } from "node:crypto"
import * as fs from "node:fs"
import { crc32 } from "node:zlib"
import { Effect, type Scope } from "effect"
import type { SafeError } from "../layout/Errors.ts"
import type { Modes } from "../layout/Modes.ts"
import * as FileCalls from "./FileCalls.ts"
import {
  codeOf,
  isForeign,
  permissions,
  type SafeFilesOptions,
  type Stamp,
  stampOf,
  unlessMissing
} from "./FileCalls.ts"

export { temporaryName, type FileOperation, type SafeFilesOptions, type Stamp } from "./FileCalls.ts"

/** Size and checksum of a content. */
export interface Sum {
  readonly size: number
  readonly crc: number
}

/** New content of a file, written beside it and put in place atomically. */
export interface Replacement {
  readonly write: (content: string | Uint8Array) => Effect.Effect<void, SafeError>
  /** Size and checksum of the content so far. */
  readonly sum: () => Sum
  /** Puts the content in place. Otherwise it is removed when the scope closes. */
  readonly place: Effect.Effect<Stamp, SafeError>
}

const chunkSize = 256 * 1024

export type SafeFiles = ReturnType<typeof make>

/** Whether `keepAside` makes such a name. */
export const isAside = (name: string): boolean => /\.aside\.[1-9]\d*$/.test(name)

const bytesOf = (content: string | Uint8Array): Uint8Array =>
  typeof content === "string" ? Buffer.from(content, "utf8") : content

/**
 * The file operations under a root. Paths are relative to it, with slashes. The caller has checked the folder of a
 * file.
 */
export const make = (options: SafeFilesOptions) => {
  const calls = FileCalls.make(options)
  const { absolute, attempt, before, discard, isFile, isFolder, look, open, openTemporary, permit, permitFolder } =
    calls
  const { isPermitted, placeTemporary, remove, stampAt, temporaryOf, using, way, writeAll } = calls

  const begin = (path: string, mode: number): Effect.Effect<Replacement, SafeError, Scope.Scope> =>
    Effect.gen(function* () {
      let [crc, size, placed] = [0, 0, false]
      const file = yield* Effect.acquireRelease(
        attempt("write", path, () => openTemporary(path, mode)),
        (file) =>
          Effect.sync(() => {
            fs.closeSync(file)
            if (!placed) discard(path)
          })
      )
      return {
        sum: () => ({ size, crc }),
        write: (content) =>
          attempt("write", path, () => {
            const bytes = bytesOf(content)
            writeAll(file, temporaryOf(path), bytes)
            crc = crc32(bytes, crc)
            size += bytes.length
          }),
        place: attempt("replace", path, () => {
          const stamp = placeTemporary(file, path, mode)
          placed = true
          return stamp
        })
      } satisfies Replacement
    })

  /** Reads a range of the file in pieces that share one buffer: use each before the next. */
  const eachPiece = (
    path: string,
    from: number,
    through: number,
    use: (bytes: Uint8Array) => void
  ): Effect.Effect<void, SafeError> =>
    Effect.acquireUseRelease(
      attempt("read", path, () => open(path, fs.constants.O_RDONLY)),
      (file) =>
        Effect.gen(function* () {
          const buffer = Buffer.allocUnsafe(Math.max(0, Math.min(chunkSize, through - from)))
          for (let at = from; at < through;) {
            const length = yield* attempt("read", path, () => {
              before("read", path)
              return fs.readSync(file, buffer, 0, Math.min(buffer.length, through - at), at)
            })
            if (length === 0) break
            use(buffer.subarray(0, length))
            at += length
            if (at < through) yield* Effect.yieldNow()
          }
        }),
      (file) => Effect.sync(() => fs.closeSync(file))
    )

  return {
    root: options.root,
    absolute,

    /** Whether the folder exists. A link or a file on the path is refused. */
    reach: (folder: string): Effect.Effect<boolean, SafeError> =>
      attempt("reach", folder, () => way(folder).every((path) => isFolder(path) !== undefined)),

    /**
     * Creates the folders and their parents with permissions and group; returns those that had others. A folder of the
     * root that another user created is left as it is.
     */
    ensureFolders: (
      folders: Iterable<string>,
      wanted: Pick<Modes, "folder" | "group">
    ): Effect.Effect<ReadonlyArray<string>, SafeError> =>
      Effect.suspend(() => {
        const all = new Set([...folders].flatMap(way))
        return Effect.map(
          Effect.forEach(all, (path) =>
            attempt("make", path, () => {
              const [mode, gid] = [wanted.folder(path), wanted.group(path)]
              const found = isFolder(path)
              if (found !== undefined && isPermitted(found, mode, gid)) return []
              if (found === undefined) {
                before("make folder", path)
                fs.mkdirSync(absolute(path), mode)
              }
              permitFolder(path, mode, gid)
              return found === undefined ? [] : [path]
            })
          ),
          (changed) => changed.flat()
        )
      }),

    /** The folder's permissions and group; undefined if it is absent, or if another user created it in the root. */
    folderMode: (
      folder: string
    ): Effect.Effect<{ readonly mode: number; readonly gid: number } | undefined, SafeError> =>
      attempt("look at", folder, () => {
        const stats = isFolder(folder)
        return stats === undefined || isForeign(stats)
          ? undefined
          : { mode: Number(stats.mode & permissions), gid: Number(stats.gid) }
      }),

    /** The file's stamp; undefined if it is absent. */
    stamp: (file: string): Effect.Effect<Stamp | undefined, SafeError> =>
      attempt("look at", file, () => {
        const stats = isFile(file)
        return stats === undefined ? undefined : stampOf(stats)
      }),

    /** Replaces the file's content atomically: a reader sees the old or the new content. */
    replace: (path: string, content: string | Uint8Array, mode: number): Effect.Effect<Stamp, SafeError> =>
      attempt("write", path, () => {
        const file = openTemporary(path, mode)
        try {
          writeAll(file, temporaryOf(path), bytesOf(content))
          return placeTemporary(file, path, mode)
        } catch (error) {
          discard(path)
          throw error
        } finally {
          fs.closeSync(file)
        }
      }),

    /** Starts a replacement whose content comes in pieces. */
    begin,

    /** Appends to the file; creates it if absent. */
    append: (path: string, content: string | Uint8Array, mode: number): Effect.Effect<Stamp, SafeError> =>
      attempt("append to", path, () =>
        using(
          path,
          fs.constants.O_WRONLY | fs.constants.O_APPEND | fs.constants.O_CREAT,
          (file) => {
            writeAll(file, path, bytesOf(content))
            const stamp = stampAt(file)
            if (stamp.mode === mode) return stamp
            permit(file, path, mode)
            return stampAt(file)
          },
          mode
        )
      ),

    /** Overwrites the beginning of the file in place; creates it if absent. */
    overwrite: (path: string, content: Uint8Array, mode: number): Effect.Effect<void, SafeError> =>
      attempt("write", path, () =>
        using(path, fs.constants.O_WRONLY | fs.constants.O_CREAT, (file) => writeAll(file, path, content), mode)
      ),

    /** Restores the file's permissions and group. */
    permit: (path: string, mode: number, gid?: number): Effect.Effect<Stamp, SafeError> =>
      attempt("change the permissions of", path, () => {
        // The owner may have removed its own read permission, so that open would fail.
        if (((isFile(path)?.mode ?? 0n) & 0o400n) === 0n) fs.chmodSync(absolute(path), mode)
        return using(path, fs.constants.O_RDONLY, (file) => {
          permit(file, path, mode, gid)
          return stampAt(file)
        })
      }),

    /** Size and checksum of the file's content, or of its first `through` bytes. */
    sum: (path: string, through: number = Number.MAX_SAFE_INTEGER): Effect.Effect<Sum, SafeError> =>
      Effect.suspend(() => {
        let [crc, size] = [0, 0]
        return Effect.map(
          eachPiece(path, 0, through, (bytes) => {
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
          eachPiece(path, offset, offset + length, (bytes) => void hash.update(bytes)),
          () => hash.digest("hex")
        )
      }),

    /** Reads at most `length` bytes at the offset. */
    readRange: (path: string, offset: number, length: number): Effect.Effect<Uint8Array, SafeError> =>
      attempt("read", path, () =>
        using(path, fs.constants.O_RDONLY, (file) => {
          const buffer = Buffer.alloc(length)
          let filled = 0
          while (filled < length) {
            before("read", path)
            const read = fs.readSync(file, buffer, filled, length - filled, offset + filled)
            if (read === 0) break
            filled += read
          }
          return buffer.subarray(0, filled)
        })
      ),

    /** Moves the file to `<name>.aside.<n>`, with the first free number, and returns that path. */
    keepAside: (path: string): Effect.Effect<string, SafeError> =>
      attempt("keep aside", path, () => {
        for (let n = 1; ; n++) {
          const aside = `${path}.aside.${n}`
          if (look(aside) !== undefined) continue
          before("rename", path)
          fs.renameSync(absolute(path), absolute(aside))
          return aside
        }
      }),

    /** Renames the file if it exists. */
    rename: (path: string, name: string): Effect.Effect<void, SafeError> =>
      attempt("rename", path, () => {
        before("rename", path)
        unlessMissing(() => fs.renameSync(absolute(path), absolute(name)))
      }),

    /** Removes the file if it exists. */
    remove: (path: string): Effect.Effect<void, SafeError> => attempt("remove", path, () => remove(path)),

    /** Removes the folder if it is empty, and then its empty parents. */
    removeEmpty: (folder: string): Effect.Effect<void, SafeError> =>
      attempt("remove", folder, () => {
        for (const path of way(folder).toReversed()) {
          before("remove", path)
          try {
            fs.rmdirSync(absolute(path))
          } catch (error) {
            if (["ENOTEMPTY", "EEXIST"].includes(codeOf(error))) return
            if (codeOf(error) !== "ENOENT") throw error
          }
        }
      }),

    /** Removes the folder if it exists and is empty. */
    removeFolder: (folder: string): Effect.Effect<void, SafeError> =>
      attempt("remove", folder, () => {
        before("remove", folder)
        try {
          fs.rmdirSync(absolute(folder))
        } catch (error) {
          if (!["ENOENT", "ENOTDIR", "ENOTEMPTY", "EEXIST"].includes(codeOf(error))) throw error
        }
      }),

    /** The folder's entries, by name; empty if it is absent. */
    list: (
      folder: string
    ): Effect.Effect<ReadonlyArray<{ readonly name: string; readonly folder: boolean }>, SafeError> =>
      attempt("list", folder, () => {
        before("list", folder)
        const entries = unlessMissing(() => fs.readdirSync(absolute(folder), { withFileTypes: true })) ?? []
        return entries.map((entry) => ({ name: entry.name, folder: entry.isDirectory() }))
      })
  }
}
