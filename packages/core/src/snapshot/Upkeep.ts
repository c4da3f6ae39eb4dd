/**
 * Keeps the stores small: forgets sessions, erases what nothing needs, packs what is left, and drops the oldest
 * snapshots when all stores together exceed their size. Spec: UN-9, UN-40..UN-43, UN-44, UN-45, UN-46, UN-47.
 */
import { existsSync } from "node:fs"
import * as fs from "node:fs/promises"
import * as path from "node:path"
import { Array as Arr, Effect, Option, Order } from "effect"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import { SessionStore } from "@daybook/log/store/SessionStore"
import { runGit } from "./Git.ts"
import * as References from "./References.ts"
import type { SnapshotUnavailable } from "./SnapshotError.ts"
import { gitIn, locked, rootIn, stores, tryFiles } from "./StoreFolder.ts"
import { isFolder } from "./Candidates.ts"

// Says up to which time the turns of sessions are pruned, so that their snapshots can go.

/** The time of the last pruned event of each session that has one. */
export const times = Effect.gen(function* () {
  const store = yield* SessionStore
  const found = new Map<SessionID, number>()
  for (let page = yield* store.snapshots(); page.length > 0;) {
    for (const { session, sessionID } of page) if (session !== undefined) found.set(sessionID, session.updatedAt)
    page = yield* store.snapshots(page.at(-1)?.sessionID)
  }
  return found
}).pipe(Effect.withSpan("Snapshots.prunedTurns"))

/** Its presence says that references were dropped and that their content may still be stored. */
const pendingIn = (store: string) => path.join(store, "erase-pending")

/** Whether an erasure was begun and not finished. */
export const isPending = (store: string): boolean => existsSync(pendingIn(store))

const namesIn = (folder: string) => fs.readdir(folder, { withFileTypes: true }).catch(() => [])

/** The bytes of all files below a folder. */
export const bytesOf = async (folder: string): Promise<number> => {
  let bytes = 0
  for (const entry of await namesIn(folder)) {
    const at = path.join(folder, entry.name)
    const size = fs.lstat(at).then(
      (stats) => stats.size,
      () => 0
    )
    bytes += entry.isDirectory() ? await bytesOf(at) : await size
  }
  return bytes
}

/** Removes indexes whose tree is not kept: they name contents that are about to be erased. They are built again. */
const removeIndexes = Effect.fnUntraced(function* (store: string, kept: ReadonlySet<string>) {
  for (const { name } of yield* Effect.promise(() => namesIn(store))) {
    if (!/^(?:index-[0-9a-f]+|working-.*)$/.test(name)) continue
    const tree = yield* References.known(path.join(store, name))
    if (tree !== undefined && kept.has(tree)) continue
    yield* tryFiles("erasing snapshots", async () => {
      for (const file of [name, `${name}.tree`]) await fs.rm(path.join(store, file), { force: true })
    })
  }
})

/** Folders of loose objects, and packs that a killed process left incomplete. */
const isLeft = (name: string) => /^[0-9a-f]{2}$/.test(name)
const isIncomplete = (name: string) => name.startsWith("tmp_") || name.startsWith(".tmp-")

/** Packs what references need and erases everything else. The store's lock is held. */
const repack = Effect.fnUntraced(function* (store: string, kept: ReadonlyArray<References.Reference>) {
  yield* removeIndexes(store, new Set(kept.map(({ tree }) => tree)))
  if (kept.length === 0) {
    return yield* tryFiles("erasing snapshots", () => fs.rm(store, { recursive: true, force: true }))
  }
  yield* gitIn(store, ["repack", "-a", "-d", "-n", "-q"])
  const objects = path.join(store, "objects")
  // All that is needed is in the new pack.
  yield* tryFiles("erasing snapshots", async () => {
    for (const { name } of await namesIn(objects)) {
      if (isLeft(name)) await fs.rm(path.join(objects, name), { recursive: true, force: true })
    }
    for (const folder of [objects, path.join(objects, "pack")]) {
      for (const { name } of await namesIn(folder)) {
        if (isIncomplete(name)) await fs.rm(path.join(folder, name), { recursive: true, force: true })
      }
    }
    await fs.rm(pendingIn(store), { force: true })
  })
})

/** Drops these references of a store, whose lock is held, and erases what only they need. A kill in between leaves a note to finish it. */
export const erase = Effect.fnUntraced(function* (
  store: string,
  isDropped: (reference: References.Reference) => boolean
) {
  const [kept, dropped] = Arr.partition(yield* References.references(store), isDropped)
  if (dropped.length === 0 && !isPending(store)) return 0
  yield* tryFiles("erasing snapshots", () => fs.writeFile(pendingIn(store), "", { mode: 0o600 }))
  yield* References.drop(dropped)
  yield* repack(store, kept)
  return dropped.length
})

/** Drops a session's snapshots in all stores, and erases content that no other session needs. */
export const forget = Effect.fn("Snapshots.forget")(function* (folder: string, sessionID: SessionID) {
  const gone = References.keyOf(sessionID)
  for (const store of yield* stores(folder)) {
    const keys = yield* References.keysIn(store)
    if (keys.includes(gone)) yield* locked(store)(erase(store, ({ key }) => key === gone))
  }
})

/** Drops the snapshots of sessions that were taken up to a time. Returns their number. */
export const forgetUntil = Effect.fn("Snapshots.forgetUntil")(function* (
  folder: string,
  times: ReadonlyMap<SessionID, number>
) {
  const until = new Map(Arr.map([...times], ([id, time]) => [References.keyOf(id), time] as const))
  let count = 0
  for (const store of yield* stores(folder)) {
    const keys = yield* References.keysIn(store)
    if (!keys.some((key) => until.has(key))) continue
    count += yield* locked(store)(erase(store, ({ key, time }) => time <= (until.get(key) ?? -1)))
  }
  return count
})

/** Loose objects above which a store is packed, estimated from one of 256 folders as git does, and packs. */
const loosest = 4_096
const mostPacks = 20

const isScattered = async (store: string): Promise<boolean> => {
  const loose = (await namesIn(path.join(store, "objects", "17"))).length * 256
  const packs = (await namesIn(path.join(store, "objects", "pack"))).filter(({ name }) => name.endsWith(".pack"))
  return loose > loosest || packs.length > mostPacks
}

/** Finishes erasures that failed or were cut off, packs a store of many files, and removes an empty one. */
const tidy = Effect.fnUntraced(function* (store: string) {
  const kept = yield* References.references(store)
  const scattered = yield* Effect.promise(() => isScattered(store))
  if (scattered || kept.length === 0 || isPending(store)) yield* repack(store, kept)
})

const byAge = Order.mapInput(Order.number, ({ time }: References.Reference) => time)

/** What is left after the oldest snapshots are dropped, as a share of the size: the next snapshots fit without a repack. */
const share = 0.8

export interface Bounded {
  /** Bytes of all stores afterwards. */
  readonly bytes: number
  readonly dropped: number
}

export const measure = Effect.fn("Snapshots.measure")(function* (folder: string) {
  const all = yield* stores(folder)
  const found = yield* Effect.forEach(all, References.references)
  return { bytes: yield* Effect.promise(() => bytesOf(folder)), folders: all.length, snapshots: found.flat().length }
})

const reported = <A>(store: string, work: Effect.Effect<A, SnapshotUnavailable>) =>
  Effect.asSome(work).pipe(
    Effect.catchAll((error) =>
      Effect.as(Effect.logWarning(`snapshots in ${store}: ${error.message}; daybook doctor checks them`), Option.none())
    )
  )

/** Drops the oldest snapshots of all stores until these fit into `maxBytes`. */
const bound = Effect.fnUntraced(function* (folder: string, maxBytes: number) {
  let dropped = 0
  for (;;) {
    const bytes = yield* Effect.promise(() => bytesOf(folder))
    const all = Arr.sort((yield* Effect.forEach(yield* stores(folder), References.references)).flat(), byAge)
    if (bytes <= maxBytes || all.length === 0) return { bytes, dropped } satisfies Bounded
    // Content is shared, so the share of bytes is an estimate; the next round measures again.
    const oldest = Arr.take(all, Math.max(1, Math.ceil(all.length * (1 - (share * maxBytes) / bytes))))
    const before = dropped
    for (const [store, mine] of Object.entries(Arr.groupBy(oldest, ({ store }) => store))) {
      const names = new Set(mine.map(References.nameOf))
      const isOldest = (reference: References.Reference) => names.has(References.nameOf(reference))
      dropped += Option.getOrElse(yield* reported(store, locked(store)(erase(store, isOldest))), () => 0)
    }
    if (dropped === before) return { bytes, dropped } satisfies Bounded
  }
})

/** Finishes erasures, packs, and drops what exceeds the size. A store that fails is logged. */
export const run = Effect.fn("Snapshots.upkeep")(function* (folder: string, maxBytes: number) {
  for (const store of yield* stores(folder)) yield* reported(store, locked(store)(tidy(store)))
  return yield* bound(folder, maxBytes)
})

// Finds and mends faults of the stores of snapshots.

export interface Fault {
  readonly store: string
  readonly root: string | undefined
  /** `damaged`: content is missing or changed. `orphaned`: no folder. `unfinished`: content of removed snapshots. */
  readonly kind: "damaged" | "orphaned" | "unfinished"
  /** A sentence for the person. */
  readonly details: string
}

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
  return isPending(store) ? fault("unfinished", "content of removed snapshots is still stored") : undefined
})

export const check = Effect.fn("Snapshots.check")(function* (folder: string) {
  const found = yield* Effect.forEach(yield* stores(folder), (store) => locked(store)(faultOf(store)))
  return found.filter((fault) => fault !== undefined)
})

const ids = /\b[0-9a-f]{40}\b/g

/** Whether all objects of a snapshot are there, and none of these objects is `bad`. */
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
  yield* erase(store, (reference) => !kept.has(References.nameOf(reference)))
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
      return locked(store)(Effect.asVoid(erase(store, () => false)))
  }
})
