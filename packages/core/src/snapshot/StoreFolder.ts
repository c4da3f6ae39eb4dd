/**
 * The folder of one work tree's snapshots: a private git repository, and the lock under which it changes. This module
 * creates the repository without `git init`, so that its format is ours. Spec: UN-3, UN-4, UN-8.
 */
import { createHash } from "node:crypto"
import { existsSync } from "node:fs"
import * as fs from "node:fs/promises"
import * as path from "node:path"
import { type Duration, Effect, Schedule, type Scope } from "effect"
import * as FileLock from "@daybook/log/storage/FileLock"
import { messageOf } from "@daybook/log/support/SystemError"
import { makeKeyedLock } from "../support/Keyed.ts"
import type { SnapshotLimits, WorkTree } from "./Candidates.ts"
import { type GitCommand, runGit } from "./Git.ts"
import { type SnapshotUnavailable, unavailable } from "./SnapshotError.ts"

export interface StoreOptions {
  readonly folder: string
  readonly hidden: ReadonlyArray<string>
  readonly limits: SnapshotLimits
  /** How long a snapshot may take, the wait for other processes included. */
  readonly patience: Duration.Duration
}

/** Names of temporary files of a restore begin with this; no snapshot holds them. */
export const temporaryPrefix = ".daybook-undo-"

/** A name of fixed length for a path or an id. */
export const hash = (text: string): string => createHash("sha256").update(text).digest("hex").slice(0, 32)

export const storeOf = ({ folder }: Pick<StoreOptions, "folder">, { root }: Pick<WorkTree, "root">): string =>
  path.join(folder, `${hash(root)}.git`)

export const tryFiles = <A>(doing: string, work: () => Promise<A>): Effect.Effect<A, SnapshotUnavailable> =>
  Effect.tryPromise({
    try: work,
    catch: (cause) => unavailable("failed", `${doing}: ${messageOf(cause)}`)
  })

export const stores = (folder: string): Effect.Effect<ReadonlyArray<string>, SnapshotUnavailable> =>
  existsSync(folder)
    ? Effect.map(
        tryFiles("reading the folder of snapshots", () => fs.readdir(folder)),
        (names) => names.filter((name) => name.endsWith(".git")).map((name) => path.join(folder, name))
      )
    : Effect.succeed([])

const inProcess = makeKeyedLock<string>()

export const locked =
  (store: string) =>
  <A, E, R>(work: Effect.Effect<A, E, R>): Effect.Effect<A, E | SnapshotUnavailable, Exclude<R, Scope.Scope>> =>
    inProcess(store)(
      Effect.scoped(
        Effect.zipRight(
          FileLock.acquire(store).pipe(
            Effect.mapError((cause) => unavailable("failed", `the lock of the snapshots: ${messageOf(cause)}`)),
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

export const gitIn = (store: string, args: ReadonlyArray<string>, input?: string) =>
  runGit(store, { cwd: store, args, env: { GIT_DIR: store }, ...(input === undefined ? {} : { input }) })

export const gitOn = (store: string, { root }: WorkTree, index: string, command: Omit<GitCommand, "cwd" | "env">) =>
  runGit(store, { ...command, cwd: root, env: { GIT_DIR: store, GIT_WORK_TREE: root, GIT_INDEX_FILE: index } })

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
  "[pack]",
  "threads = 1",
  "windowMemory = 64m",
  "[repack]",
  "writeBitmaps = false",
  "[submodule]",
  "recurse = false",
  ""
].join("\n")

/** The attributes with the highest precedence switch off what a repository's `.gitattributes` asks for. */
const attributes = "* -text -eol -ident -filter -diff -merge !working-tree-encoding\n"

/** The store's files; whose snapshots these are is for a person who looks at the folder, and for checks. */
const filesOf = ({ root }: WorkTree): ReadonlyArray<readonly [name: string, content: string]> => [
  ["HEAD", "ref: refs/heads/none\n"],
  ["config", config],
  ["info/attributes", attributes],
  ["info/exclude", `${temporaryPrefix}*\n`],
  ["description", `${root}\n`]
]

/** Creates the store whole or not at all. Its lock is held. */
export const ensure = (tree: WorkTree, store: string) =>
  existsSync(store)
    ? Effect.void
    : tryFiles("creating the snapshots", async () => {
        const made = `${store}.new`
        await fs.rm(made, { recursive: true, force: true })
        for (const name of ["info", "objects/info", "objects/pack", "refs/heads", "refs/daybook"]) {
          await fs.mkdir(path.join(made, name), { recursive: true, mode: 0o700 })
        }
        for (const [name, content] of filesOf(tree)) {
          await fs.writeFile(path.join(made, name), content, { mode: 0o600 })
        }
        await fs.rename(made, store)
      })

/** The root of the work tree whose snapshots a store holds; undefined if the store does not say. */
export const rootIn = (store: string): Effect.Effect<string | undefined> =>
  Effect.promise(() =>
    fs.readFile(path.join(store, "description"), "utf8").then(
      (text) => (text.endsWith("\n") ? text.slice(0, -1) : undefined),
      () => undefined
    )
  )

/** The folder of all stores, private to its owner. */
export const ensureFolder = (folder: string) =>
  tryFiles("creating the folder of snapshots", async () => {
    await fs.mkdir(folder, { recursive: true, mode: 0o700 })
    const { mode, uid } = await fs.stat(folder)
    if (process.getuid !== undefined && uid !== process.getuid()) throw new Error("it belongs to another user")
    if ((mode & 0o777) !== 0o700) await fs.chmod(folder, 0o700)
  })
