/**
 * The private git store of one work tree: takes snapshots of its files, compares and reads them, and forgets those of
 * removed sessions. A snapshot is a git tree; a reference per session keeps it. Unchanged files cost a look at their
 * state, through an index for each Location. Every change happens under a lock, on a copy of the index, so that a kill
 * leaves nothing behind that a later run trips over. Spec: UN-2..UN-9.
 */
import { createHash, randomUUID } from "node:crypto"
import { existsSync } from "node:fs"
import * as fs from "node:fs/promises"
import * as path from "node:path"
import { Duration, Effect, Schedule, type Scope } from "effect"
import * as FileLock from "@daybook/log/storage/FileLock"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import { isWithin } from "../support/TextFile.ts"
import { makeKeyedLock } from "../support/KeyedLock.ts"
import { candidates, pathsIn, type SnapshotLimits } from "./Candidates.ts"
import { type Change, changesIn } from "./Change.ts"
import { type GitCommand, runGit } from "./Git.ts"
import { type SnapshotUnavailable, unavailable } from "./SnapshotError.ts"
import type { WorkTree } from "./WorkTree.ts"

export interface StoreOptions {
  /** The folder of all stores. */
  readonly folder: string
  /** The runtime's own files: no snapshot holds them. */
  readonly hidden: ReadonlyArray<string>
  readonly limits: SnapshotLimits
  /** How long a snapshot may take, the wait for other processes included. */
  readonly patience: Duration.Duration
}

/** A stored state of a Location's files. */
export interface Snapshot {
  /** The id of its git tree. */
  readonly tree: string
  /** Files that it does not hold though no rule ignores them. */
  readonly omitted: ReadonlyArray<string>
}

/** Names of temporary files of a restore begin with this; no snapshot holds them. */
export const temporaryPrefix = ".daybook-undo-"

const hash = (text: string) => createHash("sha256").update(text).digest("hex").slice(0, 32)

/** The store's folder. */
export const storeOf = ({ folder }: StoreOptions, { root }: WorkTree): string => path.join(folder, `${hash(root)}.git`)

/** The name of a session's references: session ids may hold what a reference may not. */
const referencesOf = (sessionID: SessionID) => `refs/daybook/${hash(sessionID)}/`

/** No conversion of content, no helper program, and no file readable by others. */
const config = [
  "[core]",
  "repositoryformatversion = 0",
  "bare = false",
  "filemode = true",
  "symlinks = true",
  "ignorecase = false",
  "autocrlf = false",
  "safecrlf = false",
  "fsmonitor = false",
  "untrackedCache = false",
  "hooksPath = /dev/null",
  "attributesFile = /dev/null",
  "logAllRefUpdates = false",
  "sharedRepository = 0600",
  "compression = 1",
  "[gc]",
  "auto = 0",
  "[submodule]",
  "recurse = false",
  ""
].join("\n")

/** The attributes with the highest precedence switch off what a repository's `.gitattributes` asks for. */
const attributes = "* -text -eol -ident -filter -diff -merge !working-tree-encoding\n"

const tryFiles = <A>(doing: string, work: () => Promise<A>): Effect.Effect<A, SnapshotUnavailable> =>
  Effect.tryPromise({
    try: work,
    catch: (cause) => unavailable("failed", `${doing}: ${cause instanceof Error ? cause.message : String(cause)}`)
  })

const inProcess = makeKeyedLock<string>()

/** Holds the store in this and all other processes. */
const locked =
  (store: string) =>
  <A, E, R>(work: Effect.Effect<A, E, R>): Effect.Effect<A, E | SnapshotUnavailable, Exclude<R, Scope.Scope>> =>
    inProcess(store)(
      Effect.scoped(
        Effect.zipRight(
          FileLock.acquire(store).pipe(
            Effect.mapError((cause) => unavailable("failed", `the lock of the snapshots: ${String(cause)}`)),
            Effect.filterOrFail(
              (held) => held,
              () => unavailable("timeout", "another process holds the snapshots of this folder")
            ),
            Effect.retry({ schedule: Schedule.spaced("20 millis"), while: ({ reason }) => reason === "timeout" })
          ),
          work
        )
      )
    )

/** Runs git on the store; with `index`, on that index and the work tree. */
const git = (store: string, tree: WorkTree, command: Omit<GitCommand, "cwd" | "env">, index?: string) =>
  runGit(store, {
    ...command,
    cwd: index === undefined ? store : tree.root,
    env: {
      GIT_DIR: store,
      ...(index === undefined ? {} : { GIT_WORK_TREE: tree.root, GIT_INDEX_FILE: index })
    }
  })

/** Creates the store whole or not at all. Its lock is held. */
const ensure = (options: StoreOptions, tree: WorkTree, store: string) =>
  Effect.gen(function* () {
    if (existsSync(store)) return
    const made = `${store}.new`
    yield* tryFiles("creating the snapshots", () => fs.rm(made, { recursive: true, force: true }))
    yield* tryFiles("creating the snapshots", () => fs.mkdir(made, { mode: 0o700 }))
    yield* runGit(options.folder, {
      cwd: options.folder,
      args: ["init", "--quiet", "--bare", "--template=", made]
    })
    yield* tryFiles("creating the snapshots", async () => {
      const info = path.join(made, "info")
      await fs.mkdir(info, { recursive: true, mode: 0o700 })
      await fs.writeFile(path.join(made, "config"), config, { mode: 0o600 })
      await fs.writeFile(path.join(info, "attributes"), attributes, { mode: 0o600 })
      await fs.writeFile(path.join(info, "exclude"), `${temporaryPrefix}*\n`, { mode: 0o600 })
      // Whose snapshots these are, for a person who looks at the folder.
      await fs.writeFile(path.join(made, "description"), `${tree.root}\n`, { mode: 0o600 })
      for (const name of ["HEAD", "config"]) await fs.chmod(path.join(made, name), 0o600)
      await fs.rename(made, store)
    })
  })

/** The folder of all stores, private to its owner. */
const ensureFolder = ({ folder }: StoreOptions) =>
  tryFiles("creating the folder of snapshots", async () => {
    await fs.mkdir(folder, { recursive: true, mode: 0o700 })
    const { mode, uid } = await fs.stat(folder)
    if (process.getuid !== undefined && uid !== process.getuid()) throw new Error("it belongs to another user")
    if ((mode & 0o777) !== 0o700) await fs.chmod(folder, 0o700)
  })

const indexOf = (store: string, { directory }: WorkTree) => path.join(store, `index-${hash(directory)}`)

/**
 * A copy of the Location's index until the scope closes. Its time stays: git compares it with those of files, to find
 * files that changed right after they were stored.
 */
const workingIndex = (store: string, tree: WorkTree) =>
  Effect.acquireRelease(
    tryFiles("copying the index", async () => {
      const [index, copy] = [indexOf(store, tree), path.join(store, `working-${randomUUID()}`)]
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

/** Files that are tracked in the person's repository though a rule ignores them. */
const trackedIgnored = (store: string, { directory, gitFolder, root }: WorkTree) =>
  gitFolder === undefined || !existsSync(path.join(gitFolder, "index"))
    ? Effect.succeed([])
    : runGit(store, {
        cwd: root,
        args: [
          "-c",
          "core.fsmonitor=false",
          "ls-files",
          "-z",
          "-c",
          "-i",
          "--exclude-standard",
          "--",
          scope(root, directory)
        ],
        env: { GIT_DIR: gitFolder, GIT_WORK_TREE: root }
      }).pipe(
        Effect.map(pathsIn),
        // A damaged index costs these files, not the snapshot.
        Effect.catchIf(
          ({ reason }) => reason === "failed",
          () => Effect.succeed([])
        )
      )

const scope = (root: string, directory: string) => path.relative(root, directory) || "."

/** Files that are new, changed or gone since the index was written. */
const listed = (store: string, tree: WorkTree, index: string) =>
  Effect.map(
    git(
      store,
      tree,
      {
        args: [
          "-c",
          `core.excludesFile=${tree.exclude ?? "/dev/null"}`,
          "ls-files",
          "-z",
          "--others",
          "--modified",
          "--deleted",
          "--exclude-standard",
          "--",
          scope(tree.root, tree.directory)
        ]
      },
      index
    ),
    pathsIn
  )

/** Stores the state of the Location's files, kept for the session. */
export const take = Effect.fn("SnapshotStore.take")(function* (
  options: StoreOptions,
  tree: WorkTree,
  sessionID: SessionID
): Effect.fn.Return<Snapshot, SnapshotUnavailable> {
  const store = storeOf(options, tree)
  yield* ensureFolder(options)
  return yield* Effect.gen(function* () {
    yield* ensure(options, tree, store)
    yield* sweep(store)
    const index = yield* workingIndex(store, tree)
    const names = [...(yield* listed(store, tree, index)), ...(yield* trackedIgnored(store, tree))]
    const { omitted, removed, stored } = yield* candidates(tree.root, names, options.hidden, options.limits)
    const update = (args: ReadonlyArray<string>, paths: ReadonlyArray<string>) =>
      paths.length === 0
        ? Effect.void
        : git(store, tree, { args: ["update-index", "-z", ...args, "--stdin"], input: paths.join("\0") + "\0" }, index)
    yield* update(["--force-remove"], [...removed, ...omitted.filter((name) => !name.endsWith("/"))])
    yield* update(["--add", "--remove", "--replace"], stored)
    const written = (yield* git(store, tree, { args: ["write-tree"] }, index)).toString("utf8").trim()
    yield* git(store, tree, { args: ["update-ref", `${referencesOf(sessionID)}${written}`, written] })
    if (existsSync(index)) yield* tryFiles("keeping the index", () => fs.rename(index, indexOf(store, tree)))
    return { tree: written, omitted }
  }).pipe(Effect.scoped, locked(store), within(options))
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

/** Whether the store has a snapshot. */
const has = (store: string, tree: WorkTree, id: string) =>
  existsSync(store)
    ? Effect.isSuccess(git(store, tree, { args: ["cat-file", "-e", `${id}^{tree}`] }))
    : Effect.succeed(false)

/** The files that differ between two snapshots. */
export const changes = Effect.fn("SnapshotStore.changes")(function* (
  options: StoreOptions,
  tree: WorkTree,
  before: string,
  after: string
): Effect.fn.Return<ReadonlyArray<Change>, SnapshotUnavailable> {
  const store = storeOf(options, tree)
  for (const id of [before, after]) if (!(yield* has(store, tree, id))) return yield* gone
  const args = ["diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--no-renames", before, after]
  return changesIn(yield* git(store, tree, { args }))
})

/** The content of a stored file. */
export const content = (
  options: StoreOptions,
  tree: WorkTree,
  id: string
): Effect.Effect<Buffer, SnapshotUnavailable> => git(storeOf(options, tree), tree, { args: ["cat-file", "blob", id] })

/** Keeps a snapshot for one session in all stores no longer, and erases what no other session needs. */
export const forget = Effect.fn("SnapshotStore.forget")(function* (options: StoreOptions, sessionID: SessionID) {
  const names = existsSync(options.folder)
    ? yield* tryFiles("reading the folder of snapshots", () => fs.readdir(options.folder))
    : []
  for (const name of names) {
    const store = path.join(options.folder, name)
    if (name.endsWith(".git")) yield* locked(store)(forgetIn(store, sessionID))
  }
})

const forgetIn = Effect.fnUntraced(function* (store: string, sessionID: SessionID) {
  const run = (args: ReadonlyArray<string>, input?: string) =>
    runGit(store, { cwd: store, args, env: { GIT_DIR: store }, ...(input === undefined ? {} : { input }) })
  const found = yield* run(["for-each-ref", "--format=%(refname)", referencesOf(sessionID)])
  const references = found.toString("utf8").split("\n").filter(Boolean)
  if (references.length === 0) return
  yield* run(["update-ref", "--stdin"], references.map((name) => `delete ${name}\n`).join(""))
  yield* erase(store)
})

/** Erases everything that no reference needs. Indexes name such content, so they go too: they are built again. */
const erase = (store: string) =>
  Effect.gen(function* () {
    const run = (args: ReadonlyArray<string>) => runGit(store, { cwd: store, args, env: { GIT_DIR: store } })
    yield* tryFiles("erasing snapshots", async () => {
      for (const name of await fs.readdir(store)) {
        if (/^(?:index|working)-/.test(name)) await fs.rm(path.join(store, name), { force: true })
      }
    })
    if ((yield* run(["for-each-ref", "--count=1"])).length === 0) {
      yield* tryFiles("erasing snapshots", () => fs.rm(store, { recursive: true, force: true }))
      return
    }
    yield* run(["prune", "--expire=now"])
  })

/** Whether a path is in the part of the work tree that the Location's snapshots hold. */
export const covers = ({ directory, root }: WorkTree, name: string): boolean =>
  isWithin(directory, path.join(root, name))
