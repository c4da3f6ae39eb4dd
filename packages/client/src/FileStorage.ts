/**
 * Keeps the cursor of each consumer in a file, which is replaced at once and is on disk before the call returns. Spec:
 * HT-67 in specs/http.md.
 *
 * @module @daybook/client/FileStorage
 */
import * as FileSystem from "@effect/platform/FileSystem"
import type { PlatformError } from "@effect/platform/Error"
import { Effect } from "effect"
import type { Storage } from "./Consumer.ts"

/** Names may have any character: a file's name has only safe ones. */
const fileOf = (folder: string, name: string): string => `${folder}/${encodeURIComponent(name)}.cursor`

/** A storage in this folder, which is made if it does not exist. */
export const make = (folder: string): Effect.Effect<Storage<PlatformError>, PlatformError, FileSystem.FileSystem> =>
  Effect.gen(function* () {
    const files = yield* FileSystem.FileSystem
    yield* files.makeDirectory(folder, { recursive: true })
    return {
      load: (name) =>
        files.readFileString(fileOf(folder, name)).pipe(
          Effect.catchIf(
            (error) => error._tag === "SystemError" && error.reason === "NotFound",
            () => Effect.succeed(undefined)
          )
        ),
      store: (name, cursor) =>
        Effect.scoped(
          Effect.gen(function* () {
            const next = `${fileOf(folder, name)}.new`
            const file = yield* files.open(next, { flag: "w", mode: 0o600 })
            yield* file.writeAll(new TextEncoder().encode(cursor))
            yield* file.sync
            yield* files.rename(next, fileOf(folder, name))
          })
        )
    }
  })
