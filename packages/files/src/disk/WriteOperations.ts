/** Writes, moves and removes files below a root. Spec: FI-60..FI-64 in specs/files.md (SC-3, FL-3). */
import * as fs from "node:fs"
import { crc32 } from "node:zlib"
import { Effect, type Scope } from "effect"
import type { SafeError } from "../layout/Errors.ts"
import {
  absolute,
  attempt,
  type Below,
  discard,
  isFile,
  look,
  openTemporary,
  permit,
  placeTemporary,
  remove,
  stampAt,
  temporaryOf,
  unlessMissing,
  using,
  writeAll
} from "./FileCalls.ts"
import type { Stamp, Sum } from "./Stamp.ts"

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

const begin = (at: Below, path: string, mode: number): Effect.Effect<Replacement, SafeError, Scope.Scope> =>
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

/** The operations that change files. */
export const writeOperations = (at: Below) => ({
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

  /** Restores the file's permissions and group. */
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
