/**
 * Files and folders under one root, reached without following a link: every folder on the way is looked at, the file at
 * the end is opened with O_NOFOLLOW, and what is no folder or no regular file is an error that names it. A value is
 * replaced in one step; a log grows at its end. Permissions are exact whatever the process's mask is. It knows nothing of
 * sessions. Spec: FI-60..FI-64 in specs/files.md (SC-3, FL-3).
 */
import { createHash } from "node:crypto"
import { constants, type BigIntStats } from "node:fs"
import * as fs from "node:fs/promises"
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

const stampOf = (stats: BigIntStats): Stamp => ({
  text: `${stats.ino}:${stats.size}:${stats.ctimeNs}`,
  size: Number(stats.size),
  mode: Number(stats.mode & permissions)
})

const kindOf = (stats: BigIntStats): PathRefused["found"] =>
  stats.isSymbolicLink() ? "symbolic link" : stats.isDirectory() ? "folder" : "other kind of file"

/** Not blocking: a pipe that somebody put there must not hold up everything. */
const flags = constants.O_NOFOLLOW | constants.O_NONBLOCK
const chunkSize = 256 * 1024

export type SafeFiles = ReturnType<typeof make>

/** The name under which a file's next content is written, in the same folder. */
export const temporaryName = (name: string): string => `.${name}.tmp`

/** Whether the name is one that `keepAside` gives. */
export const isAside = (name: string): boolean => /\.aside\.[1-9]\d*$/.test(name)

const parts = (path: string): readonly [folder: string, name: string] => {
  const cut = path.lastIndexOf("/")
  return cut === -1 ? ["", path] : [path.slice(0, cut), path.slice(cut + 1)]
}

/** The files under a root. All paths are relative to it, with slashes; a file's folder is taken as reached before. */
export const make = ({ before = () => undefined, root }: SafeFilesOptions) => {
  const absolute = (path: string): string => (path === "" ? root : join(root, path))

  const attempt = <A>(operation: string, path: string, use: () => Promise<A>): Effect.Effect<A, SafeError> =>
    // An operation that has begun is waited for: nobody may come to the file before it ends.
    Effect.uninterruptible(Effect.tryPromise({ try: use, catch: (error) => failed(operation, absolute(path), error) }))

  const look = async (path: string): Promise<BigIntStats | undefined> => {
    before("look", path)
    try {
      return await fs.lstat(absolute(path), { bigint: true })
    } catch (error) {
      if (codeOf(error) === "ENOENT") return undefined
      throw error
    }
  }

  const isFolder = async (path: string): Promise<BigIntStats | undefined> => {
    const stats = await look(path)
    if (stats === undefined || stats.isDirectory()) return stats
    throw new PathRefused({ path: absolute(path), found: kindOf(stats) })
  }

  const isFile = async (path: string): Promise<BigIntStats | undefined> => {
    const stats = await look(path)
    if (stats === undefined || stats.isFile()) return stats
    throw new PathRefused({ path: absolute(path), found: kindOf(stats) })
  }

  const open = async (path: string, how: number, mode?: number) => {
    before("open", path)
    const handle = await fs.open(absolute(path), how | flags, mode)
    try {
      const stats = await handle.stat({ bigint: true })
      if (!stats.isFile()) throw new PathRefused({ path: absolute(path), found: kindOf(stats) })
      return { handle, stats }
    } catch (error) {
      await handle.close()
      throw error
    }
  }

  const remove = async (path: string): Promise<boolean> => {
    before("remove", path)
    try {
      await fs.unlink(absolute(path))
      return true
    } catch (error) {
      if (codeOf(error) === "ENOENT") return false
      throw error
    }
  }

  /** All bytes, also where the system takes them in pieces. */
  const writeAll = async (handle: fs.FileHandle, path: string, content: Uint8Array): Promise<void> => {
    before("write", path)
    await handle.appendFile(content)
  }

  const bytesOf = (content: string | Uint8Array): Uint8Array =>
    typeof content === "string" ? Buffer.from(content, "utf8") : content

  /** Every folder of the path, from the one in the root on. */
  const way = (folder: string): ReadonlyArray<string> =>
    folder === "" ? [] : folder.split("/").map((_, index, names) => names.slice(0, index + 1).join("/"))

  const permitFolder = async (path: string, mode: number): Promise<void> => {
    before("permit", path)
    const handle = await fs.open(absolute(path), constants.O_RDONLY | constants.O_DIRECTORY | flags)
    try {
      await handle.chmod(mode)
    } finally {
      await handle.close()
    }
  }

  const begin = (path: string, mode: number): Effect.Effect<Replacement, SafeError, Scope.Scope> => {
    const [folder, name] = parts(path)
    const temporary = folder === "" ? temporaryName(name) : `${folder}/${temporaryName(name)}`
    return Effect.gen(function* () {
      const { handle } = yield* Effect.acquireRelease(
        attempt("write", path, async () => {
          await isFile(path)
          // What a killed process left.
          await remove(temporary)
          const opened = await open(temporary, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, mode)
          return { ...opened, placed: false }
        }),
        ({ handle }) => Effect.promise(() => handle.close().catch(() => undefined))
      )
      let [crc, size, placed] = [0, 0, false]
      yield* Effect.addFinalizer(() =>
        placed ? Effect.void : Effect.promise(() => fs.unlink(absolute(temporary)).catch(() => undefined))
      )
      return {
        sum: () => ({ size, crc }),
        write: (content) =>
          attempt("write", path, async () => {
            const bytes = bytesOf(content)
            await writeAll(handle, temporary, bytes)
            crc = crc32(bytes, crc)
            size += bytes.length
          }),
        place: attempt("replace", path, async () => {
          before("permit", temporary)
          await handle.chmod(mode)
          before("rename", path)
          await fs.rename(absolute(temporary), absolute(path))
          placed = true
          return stampOf(await handle.stat({ bigint: true }))
        })
      } satisfies Replacement
    })
  }

  /** The file's bytes from one to another, in pieces that are used at once: the next one takes their place. */
  const eachPiece = async (
    path: string,
    from: number,
    through: number,
    use: (bytes: Uint8Array) => void
  ): Promise<void> => {
    const { handle } = await open(path, constants.O_RDONLY)
    try {
      const buffer = Buffer.allocUnsafe(chunkSize)
      for (let at = from; at < through;) {
        before("read", path)
        const { bytesRead } = await handle.read(buffer, 0, Math.min(chunkSize, through - at), at)
        if (bytesRead === 0) break
        use(buffer.subarray(0, bytesRead))
        at += bytesRead
      }
    } finally {
      await handle.close()
    }
  }

  const sumOf = async (path: string, through: number): Promise<Sum> => {
    let [crc, size] = [0, 0]
    await eachPiece(path, 0, through, (bytes) => {
      crc = crc32(bytes, crc)
      size += bytes.length
    })
    return { size, crc }
  }

  const readRange = async (path: string, offset: number, length: number): Promise<Uint8Array> => {
    const { handle } = await open(path, constants.O_RDONLY)
    try {
      const buffer = Buffer.alloc(length)
      let filled = 0
      while (filled < length) {
        before("read", path)
        const { bytesRead } = await handle.read(buffer, filled, length - filled, offset + filled)
        if (bytesRead === 0) break
        filled += bytesRead
      }
      return buffer.subarray(0, filled)
    } finally {
      await handle.close()
    }
  }

  return {
    root,
    absolute,

    /** Whether the folder is there. A link or a file on the way is refused. */
    reach: (folder: string): Effect.Effect<boolean, SafeError> =>
      attempt("reach", folder, async () => {
        for (const path of way(folder)) if ((await isFolder(path)) === undefined) return false
        return true
      }),

    /** Makes the folder with all on the way to it, each with its mode; gives those whose mode was another. */
    ensureFolder: (
      folder: string,
      modeOf: (folder: string) => number
    ): Effect.Effect<ReadonlyArray<string>, SafeError> =>
      attempt("make", folder, async () => {
        const changed: Array<string> = []
        for (const path of way(folder)) {
          const mode = modeOf(path)
          let stats = await isFolder(path)
          if (stats === undefined) {
            before("make folder", path)
            await fs.mkdir(absolute(path), mode).catch((error: unknown) => {
              if (codeOf(error) !== "EEXIST") throw error
            })
            stats = await isFolder(path)
          } else if (Number(stats.mode & permissions) !== mode) changed.push(path)
          if (stats === undefined || Number(stats.mode & permissions) !== mode) await permitFolder(path, mode)
        }
        return changed
      }),

    /** The folder's permissions; undefined where nothing is. */
    folderMode: (folder: string): Effect.Effect<number | undefined, SafeError> =>
      attempt("look at", folder, async () => {
        const stats = await isFolder(folder)
        return stats === undefined ? undefined : Number(stats.mode & permissions)
      }),

    /** The file's stamp; undefined where nothing is. */
    stamp: (file: string): Effect.Effect<Stamp | undefined, SafeError> =>
      attempt("look at", file, async () => {
        const stats = await isFile(file)
        return stats === undefined ? undefined : stampOf(stats)
      }),

    /** Replaces the file's content in one step: a reader sees the old one or the new one. */
    replace: (file: string, content: string | Uint8Array, mode: number): Effect.Effect<Stamp, SafeError> =>
      Effect.scoped(
        Effect.gen(function* () {
          const replacement = yield* begin(file, mode)
          yield* replacement.write(content)
          return yield* replacement.place
        })
      ),

    begin,

    /** Adds to the end of the file, which is made when it is not there and the end is its beginning. */
    append: (file: string, content: string | Uint8Array, mode: number): Effect.Effect<Stamp, SafeError> =>
      attempt("append to", file, async () => {
        const { handle } = await open(file, constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT, mode)
        try {
          const bytes = bytesOf(content)
          if (bytes.length > 0) await writeAll(handle, file, bytes)
          const stats = await handle.stat({ bigint: true })
          if (Number(stats.mode & permissions) === mode) return stampOf(stats)
          before("permit", file)
          await handle.chmod(mode)
          return stampOf(await handle.stat({ bigint: true }))
        } finally {
          await handle.close()
        }
      }),

    /** Gives the file its permissions back. */
    permit: (file: string, mode: number): Effect.Effect<Stamp, SafeError> =>
      attempt("change the permissions of", file, async () => {
        before("permit", file)
        const handle = await fs.open(absolute(file), constants.O_RDONLY | flags).catch(async (error: unknown) => {
          // A file that its owner may not read: looked at again, for there is no other way to it.
          if (codeOf(error) !== "EACCES" || (await isFile(file)) === undefined) throw error
          await fs.chmod(absolute(file), mode)
          return fs.open(absolute(file), constants.O_RDONLY | flags)
        })
        try {
          await handle.chmod(mode)
          return stampOf(await handle.stat({ bigint: true }))
        } finally {
          await handle.close()
        }
      }),

    /** Size and checksum of the file's content, or of its first `through` bytes. */
    sum: (file: string, through: number = Number.MAX_SAFE_INTEGER): Effect.Effect<Sum, SafeError> =>
      attempt("read", file, () => sumOf(file, through)),

    /** The SHA-256, in hex, of so many bytes from the offset on. */
    digest: (file: string, offset: number, length: number): Effect.Effect<string, SafeError> =>
      attempt("read", file, async () => {
        const hash = createHash("sha256")
        await eachPiece(file, offset, offset + length, (bytes) => void hash.update(bytes))
        return hash.digest("hex")
      }),

    /** At most `length` bytes from the offset on. */
    readRange: (file: string, offset: number, length: number): Effect.Effect<Uint8Array, SafeError> =>
      attempt("read", file, () => readRange(file, offset, length)),

    /** Moves the file to `<name>.aside.<n>`, the first that is free, and gives that path. */
    keepAside: (file: string): Effect.Effect<string, SafeError> =>
      attempt("keep aside", file, async () => {
        for (let n = 1; ; n++) {
          const aside = `${file}.aside.${n}`
          if ((await look(aside)) !== undefined) continue
          before("rename", file)
          await fs.rename(absolute(file), absolute(aside))
          return aside
        }
      }),

    /** Removes the file; false where nothing was. */
    remove: (file: string): Effect.Effect<boolean, SafeError> => attempt("remove", file, () => remove(file)),

    /** Removes the folder when it is empty, and those above it that are empty then. */
    removeEmpty: (folder: string): Effect.Effect<void, SafeError> =>
      attempt("remove", folder, async () => {
        for (const path of way(folder).toReversed()) {
          before("remove", path)
          try {
            await fs.rmdir(absolute(path))
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
      attempt("list", folder, async () => {
        before("list", folder)
        try {
          const entries = await fs.readdir(absolute(folder), { withFileTypes: true })
          return entries.map((entry) => ({ name: entry.name, folder: entry.isDirectory() }))
        } catch (error) {
          if (codeOf(error) === "ENOENT") return []
          throw error
        }
      })
  }
}
