/** Reads the bytes of a foreign log, which is opened for reading only. Spec: FM-1, FM-198, FM-199. */
import type { PlatformError } from "@effect/platform/Error"
import { FileSystem } from "@effect/platform/FileSystem"
import { Effect, Schema, Stream } from "effect"
import { Decompress } from "fzstd"

// Decompresses logs: Codex stores rollouts that are a week old compressed with zstd, as `rollout-*.jsonl.zst`. Node has
// zstd from 22.15.

const magic = [0x28, 0xb5, 0x2f, 0xfd]

/** Whether a file that starts with these bytes is compressed. */
const isCompressed = (start: Uint8Array): boolean => magic.every((byte, at) => start[at] === byte)

/** One byte of data can expand to 32 KiB of text: this many bytes are decompressed at a time. */
const portionBytes = 1024

const portionsOf = (bytes: Uint8Array): ReadonlyArray<Uint8Array> =>
  Array.from({ length: Math.ceil(bytes.length / portionBytes) }, (_, at) =>
    bytes.subarray(at * portionBytes, (at + 1) * portionBytes)
  )

/** The start of a line that does not end: readers of lines report that the text is torn here. */
const torn = new TextEncoder().encode("\n{")

/** Decompresses the portions of a file in order. After damage nothing more can be read. */
const make = () => {
  let out: Array<Uint8Array> = []
  let isDamaged = false
  const zstd = new Decompress((text) => void out.push(text))
  const push = (portion: Uint8Array, last: boolean): ReadonlyArray<Uint8Array> => {
    if (isDamaged) return []
    try {
      zstd.push(portion, last)
    } catch {
      isDamaged = true
      out.push(torn)
    }
    const texts = out
    out = []
    return texts
  }
  return { push: (portion: Uint8Array) => push(portion, false), end: () => push(new Uint8Array(0), true) }
}

/** The text of a file, whether its bytes are compressed or not. */
export const decompressed = <E, R>(bytes: Stream.Stream<Uint8Array, E, R>): Stream.Stream<Uint8Array, E, R> =>
  Stream.suspend(() => {
    let isFirst = true
    let zstd: ReturnType<typeof make> | undefined
    return bytes.pipe(
      Stream.mapConcat((chunk) => {
        if (isFirst && isCompressed(chunk)) zstd = make()
        isFirst = false
        return zstd === undefined ? [chunk] : portionsOf(chunk)
      }),
      // A portion's text is read before the next portion is decompressed.
      Stream.rechunk(1),
      Stream.mapConcat((portion) => (zstd === undefined ? [portion] : zstd.push(portion))),
      Stream.concat(Stream.suspend(() => Stream.fromIterable(zstd?.end() ?? [])))
    )
  })

/** A log cannot be read. Nothing was changed. */
export class LogUnreadable extends Schema.TaggedError<LogUnreadable>("@daybook/formats/LogUnreadable")(
  "LogUnreadable",
  {
    path: Schema.String,
    reason: Schema.Literal("missing", "not a file", "not permitted", "failed"),
    details: Schema.String
  }
) {
  override get message() {
    return `${this.path} cannot be read: ${this.details}`
  }
}

const unreadable = (path: string) => (error: PlatformError) => {
  const reason = error._tag === "BadArgument" ? "failed" : error.reason
  if (reason === "NotFound") return new LogUnreadable({ path, reason: "missing", details: "it does not exist" })
  if (reason === "PermissionDenied") {
    return new LogUnreadable({ path, reason: "not permitted", details: "this user may not read it" })
  }
  return new LogUnreadable({ path, reason: "failed", details: error.message })
}

const chunkBytes = 256 * 1024

/** The bytes of a regular file, in chunks. Anything else fails: opening a pipe would wait for a writer. */
export const bytes = (path: string): Stream.Stream<Uint8Array, LogUnreadable, FileSystem> =>
  Stream.unwrap(
    Effect.gen(function* () {
      const files = yield* FileSystem
      const { type } = yield* Effect.mapError(files.stat(path), unreadable(path))
      if (type !== "File") {
        return yield* new LogUnreadable({ path, reason: "not a file", details: "it is not a regular file" })
      }
      return Stream.mapError(files.stream(path, { chunkSize: chunkBytes }), unreadable(path))
    })
  )
