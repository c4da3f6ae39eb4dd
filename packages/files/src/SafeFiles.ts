/**
 * Files and folders under one root, reached without following a link: every folder on the way is looked at, the file at
 * the end is opened with O_NOFOLLOW, and what is no folder or no regular file is an error that names it. A value is
 * replaced in one step; a log grows at its end. Permissions are exact whatever the process's mask is. Calls are short and
 * synchronous, as those of the database beside them: a call handed to another thread costs a hundred times its work. What
 * reads whole files lets others go between pieces. It knows nothing of sessions. Spec: FI-60..FI-64 in specs/files.md (SC-3,
 * FL-3).
 */
import { createHash } from "node:crypto"
import * as fs from "node:fs"
import { join } from "node:path"
import { crc32 } from "node:zlib"
import { Effect, Predicate, type Scope } from "effect"
import { FileFailed, PathRefused, type SafeError } from "./Errors.ts"

/** What tells whether a file is as it was left, without reading it. */
export interface Stamp {
  /** Changes with every change of content, name or permissions: inode, size and time of change. */
  readonly text: string
  readonly size: number
  readonly mode: number
}

/** The size and the checksum of a content. */
export interface Sum {
  readonly size: number
  readonly crc: number
}

/** What a file system is asked to do; fault tests count these. */
export type FileOperation =
  "look" | "make folder" | "open" | "write" | "read" | "rename" | "remove" | "permit" | "list" | "cut"

export interface SafeFilesOptions {
  /** The root as a real path. */
  readonly root: string
  /** Called before each operation; what it throws is the operation's failure. For tests of failing disks. */
  readonly before?: ((operation: FileOperation, path: string) => void) | undefined
}

/** A new content of a file, written beside it and put in its place at once. */
export interface Replacement {
  readonly write: (content: string | Uint8Array) => Effect.Effect<void, SafeError>
  /** What was written so far. */
  readonly sum: () => Sum
  /** Puts it in place. Without this it is removed when the scope closes. */
  readonly place: Effect.Effect<Stamp, SafeError>
}

const codeOf = (error: unknown): string =>
  Predicate.hasProperty(error, "code") && typeof error.code === "string" ? error.code : "EIO"

const sentences: Record<string, string> = {
  EACCES: "permission is denied; give this user access to it",
  EDQUOT: "the quota is used up; make room and it goes on",
  EIO: "the disk could not be read or written",
  EMFILE: "too many files are open; raise the limit of open files",
  ENFILE: "too many files are open on this machine",
  ENAMETOOLONG: "the path is longer than this file system takes; choose a shorter root",
  ENOENT: "it is gone",
  ENOSPC: "the disk is full; make room and it goes on",
  EPERM: "this user may not do that to it",
  EROFS: "the file system is read-only; choose a writable root"
}

const failed = (operation: string, path: string, error: unknown): SafeError => {
  if (error instanceof PathRefused) return error
  const code = codeOf(error)
  if (code === "ELOOP") return new PathRefused({ path, found: "symbolic link" })
  if (code === "EISDIR") return new PathRefused({ path, found: "folder" })
  if (code === "ENOTDIR" || code === "ENXIO") return new PathRefused({ path, found: "other kind of file" })
  const details = sentences[code] ?? `the file system says ${code}`
  return new FileFailed({ operation, path, code, details })
}

const permissions = 0o7777n

const stampOf = (stats: fs.BigIntStats): Stamp => ({
  text: `${stats.ino}:${stats.size}:${stats.ctimeNs}`,
  size: Number(stats.size),
  mode: Number(stats.mode & permissions)
})

const kindOf = (stats: fs.BigIntStats): PathRefused["found"] =>
  stats.isSymbolicLink() ? "symbolic link" : stats.isDirectory() ? "folder" : "other kind of file"

/** Not blocking: a pipe that somebody put there must not hold up everything. */
const flags = fs.constants.O_NOFOLLOW | fs.constants.O_NONBLOCK
const chunkSize = 256 * 1024

export type SafeFiles = ReturnType<typeof make>

/** The name under which a file's next content is written, in the same folder. */
export const temporaryName = (name: string): string => `.${name}.tmp`

/** Whether the name is one that `keepAside` gives. */
export const isAside = (name: string): boolean => /\.aside\.[1-9]\d*$/.test(name)

/** Nothing where nothing is. */
const unlessMissing = <A>(use: () => A): A | undefined => {
  try {
    return use()
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined
    throw error
  }
}

/** The files under a root. All paths are relative to it, with slashes; a file's folder is taken as reached before. */
export const make = ({ before = () => undefined, root }: SafeFilesOptions) => {
  const absolute = (path: string): string => (path === "" ? root : join(root, path))

  const attempt = <A>(operation: string, path: string, use: () => A): Effect.Effect<A, SafeError> =>
    Effect.try({ try: use, catch: (error) => failed(operation, absolute(path), error) })

  const look = (path: string): fs.BigIntStats | undefined => {
    before("look", path)
    return unlessMissing(() => fs.lstatSync(absolute(path), { bigint: true }))
  }

  const isFolder = (path: string): fs.BigIntStats | undefined => {
    const stats = look(path)
    if (stats === undefined || stats.isDirectory()) return stats
    throw new PathRefused({ path: absolute(path), found: kindOf(stats) })
  }

  const isFile = (path: string): fs.BigIntStats | undefined => {
    const stats = look(path)
    if (stats === undefined || stats.isFile()) return stats
    throw new PathRefused({ path: absolute(path), found: kindOf(stats) })
  }

  /** Opens a regular file and nothing else. */
  const open = (path: string, how: number, mode?: number): number => {
    before("open", path)
    const file = fs.openSync(absolute(path), how | flags, mode)
    const stats = fs.fstatSync(file, { bigint: true })
    if (stats.isFile()) return file
    fs.closeSync(file)
    throw new PathRefused({ path: absolute(path), found: kindOf(stats) })
  }

  const using = <A>(path: string, how: number, use: (file: number) => A, mode?: number): A => {
    const file = open(path, how, mode)
    try {
      return use(file)
    } finally {
      fs.closeSync(file)
    }
  }

  const remove = (path: string): void => {
    before("remove", path)
    unlessMissing(() => fs.unlinkSync(absolute(path)))
  }

  /** All bytes, also where the system takes them in pieces. */
  const writeAll = (file: number, path: string, content: Uint8Array): void => {
    for (let at = 0; at < content.length;) {
      before("write", path)
      at += fs.writeSync(file, content, at, content.length - at)
    }
  }

  const permit = (file: number, path: string, mode: number): void => {
    before("permit", path)
    fs.fchmodSync(file, mode)
  }

  const stampAt = (file: number): Stamp => stampOf(fs.fstatSync(file, { bigint: true }))

  const bytesOf = (content: string | Uint8Array): Uint8Array =>
    typeof content === "string" ? Buffer.from(content, "utf8") : content

  /** Every folder of the path, from the one in the root on. */
  const way = (folder: string): ReadonlyArray<string> =>
    folder === ""
      ? []
      : folder
          .replace(/\/$/, "")
          .split("/")
          .map((_, index, names) => names.slice(0, index + 1).join("/"))

  const permitFolder = (path: string, mode: number): void => {
    const folder = fs.openSync(absolute(path), fs.constants.O_RDONLY | fs.constants.O_DIRECTORY | flags)
    try {
      permit(folder, path, mode)
    } finally {
      fs.closeSync(folder)
    }
  }

  const temporaryOf = (path: string): string => {
    const cut = path.lastIndexOf("/") + 1
    return path.slice(0, cut) + temporaryName(path.slice(cut))
  }

  /** An empty file beside the one that it is to replace. */
  const openTemporary = (path: string, mode: number): number => {
    isFile(path)
    const temporary = temporaryOf(path)
    // What a killed process left.
    remove(temporary)
    return open(temporary, fs.constants.O_WRONLY | fs.constants.O_CREAT | fs.constants.O_EXCL, mode)
  }

  const placeTemporary = (file: number, path: string, mode: number): Stamp => {
    const temporary = temporaryOf(path)
    permit(file, temporary, mode)
    before("rename", path)
    fs.renameSync(absolute(temporary), absolute(path))
    return stampAt(file)
  }

  const discard = (path: string): void => {
    try {
      fs.unlinkSync(absolute(temporaryOf(path)))
    } catch {
      // It goes when the file is next replaced.
    }
  }

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

  /** The file's bytes from one to another, in pieces that are used at once: the next one takes their place. */
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
    root,
    absolute,

    /** Whether the folder is there. A link or a file on the way is refused. */
    reach: (folder: string): Effect.Effect<boolean, SafeError> =>
      attempt("reach", folder, () => way(folder).every((path) => isFolder(path) !== undefined)),

    /** Makes the folder with all on the way to it, each with its mode; gives those whose mode was another. */
    ensureFolder: (
      folder: string,
      modeOf: (folder: string) => number
    ): Effect.Effect<ReadonlyArray<string>, SafeError> =>
      attempt("make", folder, () => {
        const changed: Array<string> = []
        for (const path of way(folder)) {
          const mode = modeOf(path)
          const found = isFolder(path)
          if (found !== undefined && Number(found.mode & permissions) === mode) continue
          if (found !== undefined) changed.push(path)
          else {
            before("make folder", path)
            fs.mkdirSync(absolute(path), mode)
          }
          permitFolder(path, mode)
        }
        return changed
      }),

    /** The folder's permissions; undefined where nothing is. */
    folderMode: (folder: string): Effect.Effect<number | undefined, SafeError> =>
      attempt("look at", folder, () => {
        const stats = isFolder(folder)
        return stats === undefined ? undefined : Number(stats.mode & permissions)
      }),

    /** The file's stamp; undefined where nothing is. */
    stamp: (file: string): Effect.Effect<Stamp | undefined, SafeError> =>
      attempt("look at", file, () => {
        const stats = isFile(file)
        return stats === undefined ? undefined : stampOf(stats)
      }),

    /** Replaces the file's content in one step: a reader sees the old one or the new one. */
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

    /** A content that comes in pieces; in place when all of it is there. */
    begin,

    /** Adds to the end of the file, which is made when it is not there. */
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

    /** Gives the file its permissions back. */
    permit: (path: string, mode: number): Effect.Effect<Stamp, SafeError> =>
      attempt("change the permissions of", path, () => {
        // Its owner may have taken his own right to open it: there is no other way to it then.
        if (((isFile(path)?.mode ?? 0n) & 0o400n) === 0n) fs.chmodSync(absolute(path), mode)
        return using(path, fs.constants.O_RDONLY, (file) => {
          permit(file, path, mode)
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

    /** The SHA-256, in hex, of so many bytes from the offset on. */
    digest: (path: string, offset: number, length: number): Effect.Effect<string, SafeError> =>
      Effect.suspend(() => {
        const hash = createHash("sha256")
        return Effect.map(
          eachPiece(path, offset, offset + length, (bytes) => void hash.update(bytes)),
          () => hash.digest("hex")
        )
      }),

    /** At most `length` bytes from the offset on. */
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

    /** Moves the file to `<name>.aside.<n>`, the first that is free, and gives that path. */
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

    /** Removes the file, if it is there. */
    remove: (path: string): Effect.Effect<void, SafeError> => attempt("remove", path, () => remove(path)),

    /** Removes the folder when it is empty, and those above it that are empty then. */
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

    /** What lies in the folder, by name; nothing where there is no folder. */
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
