/** Compares a file with bytes that come in pieces, and remembers how far they match. */
import { Effect, Stream } from "effect"
import type { SafeFiles } from "../disk/SafeFiles.ts"
import type { SafeError } from "../layout/Errors.ts"

/** The offset that a comparison reached, and whether all bytes before it match. */
export interface Progress {
  at: number
  right: boolean
}

export const make = (): Progress => ({ at: 0, right: true })

/** Compares the next bytes. `through` is where the file ends, if that may be within them. */
export const compare = <E>(
  files: SafeFiles,
  path: string,
  progress: Progress,
  all: Stream.Stream<Uint8Array, E>,
  through = Number.POSITIVE_INFINITY
): Effect.Effect<void, E | SafeError> =>
  all.pipe(
    Stream.takeWhile(() => progress.right && progress.at < through),
    Stream.runForEach((piece) => {
      const bytes = piece.subarray(0, through - progress.at)
      return files.readRange(path, progress.at, bytes.length).pipe(
        Effect.map((there) => {
          progress.right = Buffer.compare(there, bytes) === 0
          progress.at += bytes.length
        }),
        Effect.catchAll((error) =>
          // The final check reports what is there.
          error._tag === "PathRefused" || error.code === "ENOENT"
            ? Effect.sync(() => void (progress.right = false))
            : Effect.fail(error)
        )
      )
    })
  )
