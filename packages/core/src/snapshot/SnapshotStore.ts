/**
 * The private git store of one work tree: takes snapshots of its files, compares and reads them. A snapshot is a git
 * tree; a reference per session keeps it. Unchanged files cost a look at their state, through an index for each
 * Location. Every change happens under a lock, on a copy of the index, so that a kill leaves nothing behind that a
 * later run trips over. `StoreFolder.ts` creates the store, `Upkeep.ts` bounds and erases. Spec: UN-2..UN-8, UN-20.
 */
import { randomUUID } from "node:crypto"
import { existsSync } from "node:fs"
import * as fs from "node:fs/promises"
import * as path from "node:path"
import type { Readable } from "node:stream"
import { Duration, Effect } from "effect"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import { messageOf } from "@daybook/log/support/SystemError"
import { type Candidates, candidates, pathsIn, taggedIn, type WorkTree } from "./Candidates.ts"
import { changesIn, type Pair } from "./Change.ts"
import { gitFailed, noGit, runGit, startGit } from "./Git.ts"
import * as References from "./References.ts"
import { type SnapshotUnavailable, unavailable } from "./SnapshotError.ts"
import {
  ensure,
  ensureFolder,
  gitIn,
  gitOn,
  hash,
  locked,
  storeOf,
  type StoreOptions,
  tryFiles
} from "./StoreFolder.ts"

// Reads the contents of stored files, one after another, through one git process.

const args = ["cat-file", "--batch"]

type Take = (count: number) => Promise<Buffer>

/** Takes the next bytes of a stream: as many as asked for, fewer at its end. */
const takerOf = (stream: Readable): Take => {
  const parts: AsyncIterator<Buffer> = stream[Symbol.asyncIterator]()
  let rest: Buffer = Buffer.alloc(0)
  return async (count) => {
    const taken: Array<Buffer> = []
    for (let missing = count; missing > 0;) {
      if (rest.length === 0) {
        const next = await parts.next()
        if (next.done === true) break
        rest = next.value
      }
      const part = rest.subarray(0, missing)
      rest = rest.subarray(part.length)
      missing -= part.length
      taken.push(part)
    }
    return Buffer.concat(taken)
  }
}

const lineOf = async (take: Take): Promise<string> => {
  for (let line = ""; ;) {
    const next = (await take(1)).toString("latin1")
    if (next === "" || next === "\n") return line
    line += next
  }
}

/** A reader of contents by their ids, until the scope closes. It takes one id at a time. */
const open = (store: string) =>
  Effect.gen(function* () {
    const child = yield* Effect.acquireRelease(
      Effect.suspend(() => {
        const started = startGit(store, { cwd: store, args, env: { GIT_DIR: store } })
        return started === undefined ? noGit : Effect.succeed(started)
      }),
      (started) => Effect.sync(() => started.kill("SIGKILL"))
    )
    child.on("error", () => {})
    child.stderr.resume()
    const take = takerOf(child.stdout)
    return (id: string) =>
      Effect.tryPromise({
        try: async () => {
          child.stdin.write(`${id}\n`)
          const [, type, size] = (await lineOf(take)).split(" ")
          if (type !== "blob") throw new Error(`${id} is ${type ?? "unreadable"}`)
          const content = await take(Number(size))
          if (content.length !== Number(size)) throw new Error(`${id} is incomplete`)
          await take(1)
          return content
        },
        catch: (cause) => gitFailed(args, messageOf(cause))
      })
  })

/** A stored state of a Location's files. */
export interface Snapshot {
  /** The id of its git tree. */
  readonly tree: string
  /** Files that it does not hold though no rule ignores them. */
  readonly omitted: ReadonlyArray<string>
  /** Bytes of the files that were new or changed. */
  readonly stored: number
}

const indexOf = (store: string, { directory }: WorkTree) => path.join(store, `index-${hash(directory)}`)

/** A name for a temporary file of the store; a later run sweeps it after a kill. */
const working = (store: string) => path.join(store, `working-${randomUUID()}`)

/** A copy of the Location's index until the scope closes, with its time: git finds racy changes by it. */
const workingIndex = (store: string, tree: WorkTree) =>
  Effect.acquireRelease(
    tryFiles("copying the index", async () => {
      const [index, copy] = [indexOf(store, tree), working(store)]
      if (existsSync(index)) {
        await fs.copyFile(index, copy)
        const { atime, mtime } = await fs.stat(index)
        await fs.utimes(copy, atime, mtime)
      }
      return copy
    }),
    (copy) =>
      Effect.promise(() =>
        Promise.all([fs.rm(copy, { force: true }), fs.rm(`${copy}.lock`, { force: true })]).catch(() => undefined)
      )
  )

/** Removes what killed processes left. The store's lock is held. */
const sweep = (store: string) =>
  tryFiles("sweeping the snapshots", async () => {
    for (const name of await fs.readdir(store)) {
      if (name.startsWith("working-")) await fs.rm(path.join(store, name), { force: true })
    }
  })

const scope = ({ directory, root }: WorkTree) => path.relative(root, directory) || "."

/** Files that are tracked in the person's repository though a rule ignores them. */
const trackedIgnored = (store: string, tree: WorkTree) => {
  const { gitFolder, root } = tree
  if (gitFolder === undefined || !existsSync(path.join(gitFolder, "index"))) return Effect.succeed([])
  return runGit(store, {
    cwd: root,
    args: ["-c", "core.fsmonitor=false", "ls-files", "-z", "-c", "-i", "--exclude-standard", "--", scope(tree)],
    env: { GIT_DIR: gitFolder, GIT_WORK_TREE: root }
  }).pipe(
    Effect.map(pathsIn),
    // A damaged index costs these files, not the snapshot.
    Effect.catchIf(
      ({ reason }) => reason === "failed",
      () => Effect.succeed([])
    )
  )
}

const listing = ["ls-files", "-t", "-z", "--others", "--modified", "--deleted", "--exclude-standard", "--"]

/** Files that are new, changed or gone since the index was written. Changes nothing. */
const listed = (store: string, tree: WorkTree, index: string) =>
  Effect.map(
    gitOn(store, tree, index, {
      args: ["-c", `core.excludesFile=${tree.exclude ?? "/dev/null"}`, ...listing, scope(tree)]
    }),
    taggedIn
  )

/** What differs from the index: files to store, paths that the index must lose, and files that are left out. */
const differences = Effect.fnUntraced(function* (options: StoreOptions, store: string, tree: WorkTree) {
  const [{ names, untracked }, ignored] = yield* Effect.all(
    [listed(store, tree, indexOf(store, tree)), trackedIgnored(store, tree)],
    { concurrency: 2 }
  )
  const chosen = yield* candidates(tree.root, [...names, ...ignored], options.hidden, options.limits)
  const isHeld = (name: string) => !untracked.has(name) && !name.endsWith("/")
  return { ...chosen, removed: [...chosen.removed, ...chosen.omitted].filter(isHeld) } satisfies Candidates
})

/** Above this number of files, one pack takes less time than a file for each. */
const few = 100

/** Versions of git before 2.37 would write a pack for each file. */
const packs = (store: string) =>
  Effect.map(gitIn(store, ["version"]), (output) => {
    const [, major = "0", minor = "0"] = /(\d+)\.(\d+)/.exec(output.toString("utf8")) ?? []
    return Number(major) > 2 || (Number(major) === 2 && Number(minor) >= 37)
  })

/** Stores what differs from the index, publishes the index, and returns the tree. */
const store = Effect.fnUntraced(function* (at: string, tree: WorkTree, { removed, stored }: Candidates) {
  const index = yield* workingIndex(at, tree)
  const packed = stored.length > few && (yield* packs(at)) ? ["-c", "core.bigFileThreshold=1"] : []
  const update = (args: ReadonlyArray<string>, paths: ReadonlyArray<string>) =>
    paths.length === 0
      ? Effect.void
      : gitOn(at, tree, index, {
          args: [...packed, "update-index", "-z", ...args, "--stdin"],
          input: `${paths.join("\0")}\0`
        })
  yield* update(["--force-remove"], removed)
  yield* update(["--add", "--remove", "--replace"], stored)
  const written = (yield* gitOn(at, tree, index, { args: ["write-tree"] })).toString("utf8").trim()
  if (existsSync(index)) {
    yield* tryFiles("keeping the index", () => fs.rename(index, indexOf(at, tree)))
    yield* References.remember(indexOf(at, tree), written, working(at))
  }
  return written
}, Effect.scoped)

/** Stores the state of the Location's files, kept for the session. */
export const take = Effect.fn("SnapshotStore.take")(function* (
  options: StoreOptions,
  tree: WorkTree,
  sessionID: SessionID
) {
  const at = storeOf(options, tree)
  yield* ensureFolder(options.folder)
  const attempt = Effect.gen(function* () {
    const found = yield* differences(options, at, tree)
    const isSame = found.stored.length + found.removed.length === 0
    const known = isSame ? yield* References.known(indexOf(at, tree)) : undefined
    const written = known ?? (yield* store(at, tree, found))
    yield* References.keep({ store: at, key: References.keyOf(sessionID), tree: written }, working(at))
    return { tree: written, omitted: found.omitted, stored: found.bytes }
  })
  // The index may be damaged, or may name objects that are: without it all files are read.
  const again = Effect.zipRight(
    tryFiles("removing the index", () => fs.rm(indexOf(at, tree))),
    attempt
  )
  return yield* Effect.gen(function* () {
    yield* ensure(tree, at)
    yield* sweep(at)
    return yield* Effect.catchIf(
      attempt,
      ({ reason }) => reason === "failed" && existsSync(indexOf(at, tree)),
      () => again
    )
  }).pipe(locked(at), within(options))
})

/** Ends work that takes too long, also where the caller cannot be interrupted. */
const within =
  ({ patience }: StoreOptions) =>
  <A>(work: Effect.Effect<A, SnapshotUnavailable>): Effect.Effect<A, SnapshotUnavailable> =>
    Effect.timeoutFail(Effect.interruptible(work), {
      duration: patience,
      onTimeout: () => unavailable("timeout", `it took longer than ${Duration.format(patience)}`)
    })

const gone = unavailable("missing", "the snapshot is no longer kept")

/** The files that differ between the two snapshots of each pair. */
export const changes = Effect.fn("SnapshotStore.changes")(function* (
  options: StoreOptions,
  tree: WorkTree,
  pairs: ReadonlyArray<Pair>
) {
  const at = storeOf(options, tree)
  if (!existsSync(at)) return yield* gone
  const args = ["diff-tree", "--stdin", "-r", "-z", "--raw", "--no-abbrev", "--no-renames"]
  const lines = pairs.map(({ after, before }) => `${before} ${after}\n`)
  const groups = changesIn(yield* gitIn(at, args, lines.join("")))
  // git leaves out a pair with a missing tree.
  if (groups.length !== pairs.length) return yield* gone
  return groups.map(({ changes }) => changes)
})

/** A reader of stored files, until the scope closes. */
export const contents = (options: StoreOptions, tree: WorkTree) => open(storeOf(options, tree))
