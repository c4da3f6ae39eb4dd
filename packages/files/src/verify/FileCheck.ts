/** Checks one file: existence, permissions, and content. Spec: FI-87, FI-88 in specs/files.md. */
import { Effect, Option, Stream } from "effect"
import { isAside, type SafeFiles, type Stamp } from "../disk/SafeFiles.ts"
import type { Finding, FindingKind, SafeError } from "../layout/Errors.ts"
import { isPermitted, type Modes } from "../layout/Layout.ts"
import { sumOf } from "../record/TrackedFolder.ts"
import { blobFile } from "../render/SessionContext.ts"

// Defines the root that a verification checks, and its findings.

/** The files under a root, and the permissions that they should have. */
export interface CheckedRoot {
  readonly files: SafeFiles
  readonly modes: Modes
}

export type Findings = ReadonlyArray<Finding>

/** A finding at a path; `sessionID` names the session that it belongs to, if any. */
export const findingAt = (
  path: string,
  sessionID: string | undefined,
  kind: FindingKind,
  details: string
): Finding => ({
  kind,
  path,
  ...(sessionID === undefined ? {} : { sessionID }),
  details
})

type Permitted = { readonly mode: number; readonly gid?: number | undefined }

/** The difference of two permissions as a sentence. */
const wrongMode = (whose: string, found: Permitted, wanted: Permitted): string =>
  found.mode === wanted.mode
    ? `${whose} group is ${found.gid}, not ${wanted.gid}`
    : `${whose} permissions are ${found.mode.toString(8)}, not ${wanted.mode.toString(8)}`

export const parentOf = (path: string): string => path.slice(0, path.lastIndexOf("/"))

// Checks folders: existence, permissions, and entries that Daybook did not create.

/** Whether the folder holds only asides, which outlive a removed session. */
export const asidesOnly = (files: SafeFiles, folder: string): Effect.Effect<boolean, SafeError> =>
  Effect.gen(function* () {
    const entries = yield* files.list(folder)
    for (const entry of entries) {
      if (isAside(entry.name)) continue
      if (!entry.folder || !(yield* asidesOnly(files, `${folder}/${entry.name}`))) return false
    }
    return entries.length > 0
  })

/** Everything in the folder and below it that is not expected. */
export const foreign = (
  root: CheckedRoot,
  folder: string,
  expected: ReadonlySet<string>,
  sessionID?: string
): Effect.Effect<Findings, SafeError> =>
  Effect.gen(function* () {
    const found: Array<Finding> = []
    for (const entry of yield* root.files.list(folder)) {
      const path = `${folder}/${entry.name}`
      if (expected.has(path)) continue
      if (entry.folder && [...expected].some((name) => name.startsWith(`${path}/`))) {
        found.push(...(yield* foreign(root, path, expected, sessionID)))
      } else if (!isAside(entry.name) && !(entry.folder && (yield* asidesOnly(root.files, path)))) {
        found.push(findingAt(path, sessionID, "foreign", "Daybook did not put this here"))
      }
    }
    return found
  })

/** Checks one folder: that it exists, is not a link, and has its permissions. */
const checkFolder = (
  { files, modes }: CheckedRoot,
  path: string,
  sessionID?: string
): Effect.Effect<Findings, SafeError> =>
  Effect.gen(function* () {
    if (!(yield* files.reach(path))) return [findingAt(path, sessionID, "missing", "the folder does not exist")]
    const found = yield* files.folderMode(path)
    const wanted = { mode: modes.folder(path), gid: modes.group(path) }
    return found === undefined || (found.mode === wanted.mode && (wanted.gid ?? found.gid) === found.gid)
      ? []
      : [findingAt(path, sessionID, "mode", wrongMode("the folder's", found, wanted))]
  }).pipe(
    Effect.catchTag("PathRefused", (error) =>
      Effect.succeed([findingAt(error.path.slice(files.root.length + 1), sessionID, "refused", error.message)])
    )
  )

/** Checks folders, parents first; skips what is `within` one that cannot be used. */
export const checkFolders = Effect.fnUntraced(function* (
  root: CheckedRoot,
  paths: ReadonlySet<string>,
  sessionID?: string
) {
  const found: Array<Finding> = []
  const closed: Array<string> = []
  const within = (path: string) => closed.some((above) => path.startsWith(`${above}/`))
  for (const path of [...paths].toSorted()) {
    if (within(path)) continue
    const findings = yield* checkFolder(root, path, sessionID)
    if (findings.some(({ kind }) => kind !== "mode")) closed.push(path)
    found.push(...findings)
  }
  return { found, within }
})

/** Why the session's folder cannot be compared, if it cannot. */
export const unusable = (
  { files }: CheckedRoot,
  path: string,
  id: string
): Effect.Effect<Finding | undefined, SafeError> =>
  files.reach(path).pipe(
    Effect.map((there) => (there ? undefined : findingAt(path, id, "missing", "the session's folder does not exist"))),
    Effect.catchTag("PathRefused", (error) => Effect.succeed(findingAt(path, id, "refused", error.message)))
  )

// Compares a file with bytes that come in pieces, and remembers how far they match.

/** The offset that a comparison reached, and whether all bytes before it match. */
export interface Progress {
  at: number
  right: boolean
}

export const makeProgress = (): Progress => ({ at: 0, right: true })

/** Compares the next bytes. `through` is where the file ends, if that may be within them. */
export const comparing = <E>(
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
): Effect.Effect<Findings, E | SafeError, R> =>
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
    const progress = makeProgress()
    return Effect.map(comparing(root.files, path, progress, bytes), () =>
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
