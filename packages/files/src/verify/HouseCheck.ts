/** Checks the index of one house, and houses that the store does not know. Spec: FI-87, FI-88 in specs/files.md. */
import { Effect } from "effect"
import { levels } from "../disk/Houses.ts"
import type * as SafeFiles from "../disk/SafeFiles.ts"
import type { Finding, SafeError } from "../layout/Errors.ts"
import { indexFiles } from "../render/IndexFiles.ts"
import { type CheckedRoot, findingAt, parentOf } from "./CheckedRoot.ts"
import { checkContent } from "./FileCheck.ts"
import { asidesOnly, checkFolders, foreign } from "./FolderCheck.ts"
import type { Seen } from "./SessionCheck.ts"

/** The folder and all of its parents. */
const wayTo = (folder: string): ReadonlyArray<string> =>
  folder.split("/").map((_, n, names) => names.slice(0, n + 1).join("/"))

/** Checks the index of one house, and other entries beside its sessions. */
export const checkHouse = Effect.fnUntraced(function* (root: CheckedRoot, index: string, seen: ReadonlyArray<Seen>) {
  const entries = seen.flatMap(({ entry }) => (entry === undefined ? [] : [entry]))
  // The index entry of a session that cannot be compared is unknown.
  const whole = entries.length === seen.length
  const wanted = [...indexFiles(entries)].map(([name, content]) => [`${index}/${name}`, content] as const)
  const beside = parentOf(index)
  const expected = new Set([...wanted.map(([path]) => path), ...seen.map(({ session }) => `${beside}/${session}`)])
  const ways = whole ? wanted.flatMap(([path]) => wayTo(parentOf(path))) : []
  const { found, within } = yield* checkFolders(root, new Set([...wayTo(index), ...ways]))
  if (within(`${beside}/.`)) return found
  const ofFiles = yield* Effect.forEach(
    wanted.filter(([path]) => whole && !within(path)),
    ([path, content]) => checkContent(root, path, undefined, content)
  )
  const others = (yield* foreign(root, beside, expected)).filter(
    ({ path }) => (whole || !`${path}/`.startsWith(`${index}/`)) && found.every((one) => one.path !== path)
  )
  return [found, ...ofFiles, others].flat()
})

/** The subfolders of a folder, as paths. */
const below = (files: SafeFiles.SafeFiles, path: string) =>
  Effect.map(files.list(path), (entries) =>
    entries.flatMap(({ folder, name }) => (folder ? [path === "" ? name : `${path}/${name}`] : []))
  )

/** Why the folder cannot be read. */
const refusedAt = (files: SafeFiles.SafeFiles, path: string) =>
  files.reach(path).pipe(
    Effect.as(undefined),
    Effect.catchTag("PathRefused", (refused) => Effect.succeed(refused))
  )

/** Houses with files but without a session in the store; in a common root, only those of this user. */
export const unknownHouses = Effect.fnUntraced(function* ({ files, modes }: CheckedRoot, known: ReadonlySet<string>) {
  const found: Array<Finding> = []
  const visit = (path: string, depth: number): Effect.Effect<void, SafeError> =>
    Effect.gen(function* () {
      const names: ReadonlyArray<string> | undefined = levels[depth]
      for (const next of yield* below(files, path)) {
        if (names !== undefined && !names.includes(next.slice(next.lastIndexOf("/") + 1))) continue
        const refused = yield* refusedAt(files, next)
        if (refused !== undefined) {
          const theirs = modes.common && depth === 1 && refused.found === "folder of another user"
          // The sessions of a known house reported it already.
          const reported = [...known].some((house) => `${house}/`.startsWith(`${next}/`))
          if (!theirs && !reported) found.push(findingAt(next, undefined, "refused", refused.message))
        } else if (depth < levels.length - 1) yield* visit(next, depth + 1)
        else if (!known.has(next) && !(yield* asidesOnly(files, next))) {
          found.push(findingAt(next, undefined, "foreign", "the log has no session here"))
        }
      }
    })
  yield* visit("", 0)
  return found
})
