/** Reads files below a root; yields between pieces of a whole file. Spec: FI-60..FI-62 in specs/files.md (SC-3). */
import { createHash } from "node:crypto"
import * as fs from "node:fs"
import { crc32 } from "node:zlib"
import { Effect } from "effect"
import type { SafeError } from "../layout/Errors.ts"
import { attempt, type Below, isFile, open, stampOf, using } from "./FileCalls.ts"
import type { Stamp, Sum } from "./Stamp.ts"

const chunkSize = 256 * 1024

/** Reads a range of the file in pieces that share one buffer: use each before the next. */
const eachPiece = (
  at: Below,
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

/** The operations that read. */
export const readOperations = (at: Below) => ({
  /** The file's stamp; undefined if it is absent. */
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
