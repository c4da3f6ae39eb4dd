/**
 * Names the hold of a root: the record, in the database, of how far the files under it are. It lives as long as the
 * folder of the exporter's record. Spec: FI-124 in specs/files.md.
 */
import { lstat } from "node:fs/promises"
import { join } from "node:path"
import { Effect, Predicate } from "effect"

/** The folder of all exporters' records under the root. */
export const recordsFolder = ".daybook"

const prefix = "files "

/** The name of the root's hold. No other consumer has a name with a space. */
export const nameOf = (root: string): string => prefix + root

const isAbsent = (error: unknown): boolean =>
  Predicate.hasProperty(error, "code") && (error.code === "ENOENT" || error.code === "ENOTDIR")

/** Whether this is the hold of a root that was removed. A root that cannot be reached still holds. */
export const isGone = (name: string): Effect.Effect<boolean> =>
  name.startsWith(prefix)
    ? Effect.tryPromise(() => lstat(join(name.slice(prefix.length), recordsFolder))).pipe(
        Effect.as(false),
        Effect.catchAll(({ error }) => Effect.succeed(isAbsent(error)))
      )
    : Effect.succeed(false)
