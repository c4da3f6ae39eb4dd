/** Finds and mends faults of the stores of snapshots. A check changes nothing. Spec: UN-46, UN-47. */
import { existsSync, lstatSync } from "node:fs"
import * as fs from "node:fs/promises"
import * as path from "node:path"
import { Effect } from "effect"
import { runGit } from "./Git.ts"
import * as References from "./References.ts"
import type { SnapshotUnavailable } from "./SnapshotError.ts"
import { gitIn, locked, rootIn, stores, tryFiles } from "./StoreFolder.ts"
import * as Upkeep from "./Upkeep.ts"

/** A fault of one store. */
export interface Fault {
  readonly store: string
  /** The folder whose snapshots it holds, if it says so. */
  readonly root: string | undefined
  /**
   * `damaged`: content is missing or changed. `orphaned`: the folder is gone. `unfinished`: content of removed snapshots is
   * still stored.
   */
  readonly kind: "damaged" | "orphaned" | "unfinished"
  /** A sentence for the person. */
  readonly details: string
}

const isFolder = (name: string) => lstatSync(name, { throwIfNoEntry: false })?.isDirectory() === true

/** The lines of git's output that report faults of a store's objects. */
const complaints = (store: string) =>
  Effect.map(
    runGit(store, {
      cwd: store,
      args: ["fsck", "--full", "--no-dangling", "--no-reflogs", "--no-progress"],
      env: { GIT_DIR: store },
      everything: true
    }),
    (output) =>
      output
        .toString("utf8")
        .split("\n")
        .filter((line) => line !== "" && !line.startsWith("notice:"))
  )

/** The first fault of a store. Its lock is held. */
const faultOf = Effect.fnUntraced(function* (store: string) {
  const root = yield* rootIn(store)
  const fault = (kind: Fault["kind"], details: string): Fault => ({ store, root, kind, details })
  if (
    root === undefined ||
    !["HEAD", "config", "objects", "refs"].every((name) => existsSync(path.join(store, name)))
  ) {
    return fault("damaged", "it lacks files that each store has")
  }
  const [complaint] = yield* complaints(store)
  if (complaint !== undefined) return fault("damaged", `git says: ${complaint}`)
  if (!isFolder(root)) return fault("orphaned", `${root} is gone`)
  return Upkeep.isPending(store) ? fault("unfinished", "content of removed snapshots is still stored") : undefined
})

/** The faults of all stores. */
export const check = Effect.fn("Snapshots.check")(function* (
  folder: string
): Effect.fn.Return<ReadonlyArray<Fault>, SnapshotUnavailable> {
  const found = yield* Effect.forEach(yield* stores(folder), (store) => locked(store)(faultOf(store)))
  return found.filter((fault) => fault !== undefined)
})

const ids = /\b[0-9a-f]{40}\b/g

/** Whether all that a snapshot needs is there, and none of it is `bad`. */
const isWhole = (bad: ReadonlySet<string>, { store, tree }: References.Reference) =>
  Effect.match(gitIn(store, ["rev-list", "--objects", tree]), {
    onFailure: () => false,
    onSuccess: (output) => !(output.toString("latin1").match(ids) ?? []).some((id) => bad.has(id))
  })

const discard = (store: string) => tryFiles("removing snapshots", () => fs.rm(store, { recursive: true, force: true }))

/** Keeps the whole snapshots, and removes the damaged ones. */
const salvage = Effect.fnUntraced(function* (store: string) {
  const bad = new Set((yield* complaints(store)).flatMap((line) => line.match(ids) ?? []))
  const all = yield* References.references(store)
  const whole = yield* Effect.filter(all, (reference) => isWhole(bad, reference))
  const kept = new Set(whole.map(References.nameOf))
  yield* Upkeep.erase(store, (reference) => !kept.has(References.nameOf(reference)))
  if (existsSync(store) && (yield* complaints(store)).length > 0) yield* discard(store)
})

/** Mends a fault: keeps the whole snapshots of a damaged store, removes an orphaned store, finishes an erasure. */
export const mend = Effect.fn("Snapshots.mend")(({ kind, store }: Fault): Effect.Effect<void, SnapshotUnavailable> => {
  switch (kind) {
    case "damaged":
      return locked(store)(Effect.catchAll(salvage(store), () => discard(store)))
    case "orphaned":
      return locked(store)(discard(store))
    case "unfinished":
      return locked(store)(Effect.asVoid(Upkeep.erase(store, () => false)))
  }
})
