/**
 * Checks folders: existence, permissions, and entries that Daybook did not create. Spec: FI-87, FI-88 in specs/files.md.
 */
import { Effect } from "effect"
import { isAside, type SafeFiles } from "../disk/SafeFiles.ts"
import type { Finding, SafeError } from "../layout/Errors.ts"
import { type CheckedRoot, findingAt, type Found, wrongMode } from "./CheckedRoot.ts"

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
): Effect.Effect<Found, SafeError> =>
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
): Effect.Effect<Found, SafeError> =>
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
