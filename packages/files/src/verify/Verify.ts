/**
 * Verifies the files under a root: renders every session up to the event that its files name, and compares every byte,
 * the permissions, and the other entries. It changes nothing, needs no ledger, and may run beside an exporter. Memory
 * is bounded by one portion of a log. Spec: FI-87, FI-88 in specs/files.md.
 */
import { realpath, stat } from "node:fs/promises"
import { Chunk, Effect, Option, Stream } from "effect"
import { isSessionID, SessionID } from "@daybook/log/domain/Identifiers"
import type { InvalidInput } from "@daybook/log/domain/InvalidInput"
import { type EventLog, type ReadError, SessionNotFound } from "@daybook/log/log/EventLog"
import { allItems } from "@daybook/log/store/Pages"
import { SessionStore } from "@daybook/log/store/SessionStore"
import type { StoreError } from "@daybook/log/store/StoreError"
import * as SafeFiles from "../disk/SafeFiles.ts"
import { levels } from "../disk/SafeFiles.ts"
import { type Finding, RootUnusable, type SafeError } from "../layout/Errors.ts"
import { addressOf, indexFolder, modesOf, type SharedSpaces } from "../layout/Layout.ts"
import { indexFiles } from "../render/Values.ts"
import {
  asidesOnly,
  checkContent,
  type CheckedRoot,
  checkFolders,
  findingAt,
  foreign,
  type Findings,
  parentOf
} from "./FileCheck.ts"
import { checkSession, type Seen } from "./SessionCheck.ts"

// Checks the index of one house, and houses that the store does not know.

/** The folder and all of its parents. */
const wayTo = (folder: string): ReadonlyArray<string> =>
  folder.split("/").map((_, n, names) => names.slice(0, n + 1).join("/"))

const checkHouse = Effect.fnUntraced(function* (root: CheckedRoot, index: string, seen: ReadonlyArray<Seen>) {
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
const unknownHouses = Effect.fnUntraced(function* ({ files, modes }: CheckedRoot, known: ReadonlySet<string>) {
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

/** The files to verify; `uid` and `shared` as for the exporter. */
export interface VerifyOptions {
  readonly root: string
  /** Verifies only this session, without its index. */
  readonly sessionID?: string | undefined
  readonly uid?: number | undefined
  readonly shared?: SharedSpaces | undefined
}

/** The errors that stop a verification. Differences of files are findings. */
export type VerifyError = RootUnusable | SafeError | ReadError | StoreError | InvalidInput

const openRoot = (root: string) =>
  Effect.tryPromise({
    try: async () => {
      const real = await realpath(root)
      return { root: real, mode: (await stat(real)).mode & 0o7777 }
    },
    catch: () =>
      new RootUnusable({ root, details: "no files were written there yet; daybook files export writes them" })
  })

type Verification = { readonly root: CheckedRoot; readonly store: SessionStore["Type"]; readonly uid: number }

const addressAt = Effect.fnUntraced(function* ({ store, uid }: Verification, id: string) {
  const { address } = yield* store.get(SessionID.make(id))
  // A session without an address is kept under the agent that it was created for.
  const first = address === undefined ? yield* store.event(SessionID.make(id), 0) : undefined
  const agent = first?.type === "session.created" ? first.data.agent : undefined
  return addressOf({ id, agent }, address, uid)
})

/** Checks the session, unless it has no files or is in another house than `house`. */
const look = Effect.fnUntraced(function* (verification: Verification, id: string, house?: string) {
  const kept = yield* addressAt(verification, id)
  if (kept === undefined || (house !== undefined && indexFolder(kept) !== house)) return undefined
  const { entry, findings } = yield* checkSession(verification.root, id, kept)
  const seen: Seen = { session: kept.session, entry, behind: findings.some(({ kind }) => kind === "behind") }
  return { index: indexFolder(kept), findings, seen }
})

/** Returns `instead` if the session was removed since it was listed. */
const unlessRemoved = <A, E, R>(look: Effect.Effect<A, E | SessionNotFound, R>, instead: A) =>
  Effect.catchIf(
    look,
    (error): error is E & SessionNotFound => error instanceof SessionNotFound,
    () => Effect.succeed(instead)
  )

const allSessions = ({ store }: Verification) =>
  Stream.map(
    allItems((cursor: string | undefined) => store.list({ limit: 100, cursor })),
    ({ id }) => id
  )

/** Comparisons of an index while its sessions change. */
const attempts = 4

/**
 * Checks one house. Sessions may come, go and run meanwhile: repeats a comparison that found a difference. While sessions are behind
 * or change, the exporter still has to write the index.
 */
const lookAtHouse = Effect.fnUntraced(function* (
  verification: Verification,
  index: string,
  first: ReadonlyArray<Seen>
) {
  const { root } = verification
  let [seen, findings] = [first, yield* checkHouse(root, index, first)]
  for (let n = 1; n < attempts && findings.length > 0; n++) {
    const before = JSON.stringify(seen)
    const again = yield* Stream.runCollect(
      allSessions(verification).pipe(
        Stream.mapEffect((id) => unlessRemoved(look(verification, id, index), undefined)),
        Stream.filterMap((looked) => (looked === undefined ? Option.none() : Option.some(looked.seen)))
      )
    )
    seen = Chunk.toReadonlyArray(again)
    findings = yield* checkHouse(root, index, seen)
    if (JSON.stringify(seen) === before && !seen.some(({ behind }) => behind)) return findings
  }
  return findings.length === 0 ? [] : [findingAt(index, undefined, "behind", "the exporter has to write it")]
})

const verifyAll = (verification: Verification) => {
  const houses = new Map<string, Array<Seen>>()
  const one = (id: string) =>
    Effect.map(look(verification, id), (looked): Findings => {
      if (looked === undefined) return []
      const { findings, index, seen } = looked
      const all = houses.get(index) ?? []
      all.push(seen)
      houses.set(index, all)
      return findings
    })
  const ofSessions = allSessions(verification).pipe(
    Stream.mapEffect((id) => unlessRemoved(one(id), [] as Findings)),
    Stream.flattenIterables
  )
  const ofHouses = Stream.suspend(() => Stream.fromIterable(houses)).pipe(
    Stream.mapEffect(([index, seen]) => lookAtHouse(verification, index, seen)),
    Stream.flattenIterables
  )
  const others = Effect.suspend(() => unknownHouses(verification.root, new Set([...houses.keys()].map(parentOf))))
  return Stream.concat(Stream.concat(ofSessions, ofHouses), Stream.flattenIterables(Stream.fromEffect(others)))
}

/** The differences between files and log, as they are found. No finding means that the files equal a fresh export. */
export const verify = (options: VerifyOptions): Stream.Stream<Finding, VerifyError, EventLog | SessionStore> =>
  Stream.unwrap(
    Effect.gen(function* () {
      const { mode, root } = yield* openRoot(options.root)
      const verification: Verification = {
        root: { files: SafeFiles.make({ root }), modes: modesOf(options.shared, mode) },
        store: yield* SessionStore,
        uid: options.uid ?? process.getuid?.() ?? 0
      }
      const id = options.sessionID
      if (id === undefined) return verifyAll(verification)
      if (!isSessionID(id)) return yield* new SessionNotFound({ sessionID: id })
      const found = Effect.map(look(verification, id), (looked): Findings => looked?.findings ?? [])
      return Stream.flattenIterables(Stream.fromEffect(found))
    })
  )
