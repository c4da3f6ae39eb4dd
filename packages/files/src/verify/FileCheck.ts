/** Checks one file: existence, permissions, and content. Spec: FI-87, FI-88 in specs/files.md. */
import { Effect, Option, type Stream } from "effect"
import type { Stamp } from "../disk/SafeFiles.ts"
import type { FindingKind, SafeError } from "../layout/Errors.ts"
import { isPermitted } from "../layout/Modes.ts"
import { sumOf } from "../record/TrackedFolder.ts"
import { blobFile } from "../render/SessionContext.ts"
import { type CheckedRoot, findingAt, type Found, wrongMode } from "./CheckedRoot.ts"
import * as Progress from "./Progress.ts"

export type Content = string | Uint8Array

/** How a content differs from the expected one; none if it does not. */
export type Difference = Option.Option<readonly [FindingKind, string]>

export const changed: Difference = Option.some(["changed", "its content differs from the log"])

/** Checks a file's existence and permissions, and its content with `compare`. A link or folder there is a finding. */
export const checkFile = <E, R>(
  { files, modes }: CheckedRoot,
  path: string,
  sessionID: string | undefined,
  compare: (stamp: Stamp) => Effect.Effect<Difference, E, R>
): Effect.Effect<Found, E | SafeError, R> =>
  Effect.gen(function* () {
    const finding = (kind: FindingKind, details: string) => findingAt(path, sessionID, kind, details)
    const looked = yield* Effect.either(files.stamp(path))
    if (looked._tag === "Left") {
      if (looked.left._tag === "PathRefused") return [finding("refused", looked.left.message)]
      return yield* looked.left
    }
    const stamp = looked.right
    if (stamp === undefined) return [finding("missing", "the file does not exist")]
    const { gid, mode } = stamp
    const wrong = isPermitted(modes, path, stamp)
      ? []
      : [finding("mode", wrongMode("its", { gid, mode }, { mode: modes.file(path), gid: modes.group(path) }))]
    return Option.match(yield* compare(stamp), {
      onNone: () => wrong,
      onSome: ([kind, details]) => [...wrong, finding(kind, details)]
    })
  })

/** Compares a file with a content in memory. */
export const checkContent = (root: CheckedRoot, path: string, sessionID: string | undefined, content: Content) =>
  checkFile(root, path, sessionID, ({ size }) => {
    const sum = sumOf(content)
    if (size !== sum.size) return Effect.succeed(changed)
    return Effect.map(root.files.readRange(path, 0, size), (there) =>
      Buffer.compare(there, Buffer.from(content)) === 0 ? Option.none() : changed
    )
  })

/** Compares a file with a content that is produced on demand. */
export const checkStream = <E>(
  root: CheckedRoot,
  path: string,
  sessionID: string,
  bytes: Stream.Stream<Uint8Array, E>
) =>
  checkFile(root, path, sessionID, ({ size }) => {
    const progress = Progress.make()
    return Effect.map(Progress.compare(root.files, path, progress, bytes), () =>
      progress.right && progress.at === size ? Option.none() : changed
    )
  })

/** Compares a blob with the hash in its name. */
export const checkBlob = (root: CheckedRoot, folder: string, sessionID: string, hash: string) => {
  const path = `${folder}/${blobFile(hash)}`
  return checkFile(root, path, sessionID, ({ size }) =>
    Effect.map(root.files.digest(path, 0, size), (digest) => (`sha256-${digest}` === hash ? Option.none() : changed))
  )
}
