/** The size of the stores: what goes first, what is packed, and that an erasure is finished. */
import { randomBytes } from "node:crypto"
import { existsSync, mkdirSync, readdirSync, rmSync, watch, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, FiberId, Layer } from "effect"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import * as References from "../../packages/core/src/snapshot/References.ts"
import * as Snapshots from "../../packages/core/src/snapshot/Snapshots.ts"
import { storeOf } from "../../packages/core/src/snapshot/StoreFolder.ts"
import * as Upkeep from "../../packages/core/src/snapshot/Upkeep.ts"
import { SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import { runtime } from "../support/Harness.ts"
import { waitingFor } from "../support/Waiting.ts"
import { contents, options, place, project, workTree, write } from "./support/Repository.ts"
import { changedPaths, session, take, turn, undo } from "./support/Snapshotting.ts"

const unbounded = Number.MAX_SAFE_INTEGER

/** Hides git while an effect runs. */
const withoutGit = <A, E, R>(work: Effect.Effect<A, E, R>) =>
  Effect.suspend(() => {
    const path = process.env["PATH"]
    process.env["PATH"] = "/nowhere"
    return Effect.ensuring(
      work,
      Effect.sync(() => (process.env["PATH"] = path))
    )
  })

/** Waits until a file is removed. */
const watching = (file: string) => {
  const removed = Deferred.unsafeMake<void>(FiberId.none)
  const watcher = watch(dirname(file), () => {
    if (existsSync(file)) return
    watcher.close()
    Deferred.unsafeDone(removed, Effect.void)
  })
  return Deferred.await(removed)
}

describe("upkeep", () => {
  it.scopedLive("UN-40, UN-41: above the size the oldest snapshots go first, and what is left can be restored", () =>
    Effect.gen(function* () {
      const { options: given, work } = yield* place
      project(work, { "a.bin": "1" })
      const change = () => write(work, { "a.bin": randomBytes(20_000) })
      const first = yield* turn(given, work, change)
      const second = yield* turn(given, work, change)
      const state = contents(work)
      const last = yield* turn(given, work, change)
      const found = yield* Upkeep.run(given.folder, 55_000)
      assert.isAtMost(found.bytes, 55_000)
      assert.isAbove(found.dropped, 0)
      assert.strictEqual((yield* Effect.flip(undo(given, work, [first]))).reason, "missing")
      assert.deepStrictEqual(yield* undo(given, work, [last]), ["restored a.bin"])
      assert.deepStrictEqual(contents(work), state)
      assert.strictEqual(last.before, second.after)
      // Nothing fits.
      assert.deepStrictEqual((yield* Upkeep.run(given.folder, 0)).bytes, 0)
    })
  )

  it.scopedLive("UN-42: many new files become one pack, whose contents are restored", () =>
    Effect.gen(function* () {
      const { options: given, work } = yield* place
      project(work, Object.fromEntries(Array.from({ length: 101 }, (_, at) => [`${at}.txt`, `text ${at}`])))
      const state = contents(work)
      const changed = yield* turn(given, work, () => write(work, { "7.txt": "new" }))
      const objects = join(storeOf(given, yield* workTree(work)), "objects")
      assert.lengthOf(
        readdirSync(join(objects, "pack")).filter((name) => name.endsWith(".pack")),
        1
      )
      assert.isBelow(readdirSync(objects).length, 10)
      assert.deepStrictEqual(yield* undo(given, work, [changed]), ["restored 7.txt"])
      assert.deepStrictEqual(contents(work), state)
    })
  )

  it.scopedLive("UN-42: a store of many objects is packed, and keeps its snapshots and what later ones need", () =>
    Effect.gen(function* () {
      const { options: given, work } = yield* place
      project(work, { "a.txt": "1", "b.txt": "1" })
      const changed = yield* turn(given, work, () => write(work, { "a.txt": "2" }))
      const objects = join(storeOf(given, yield* workTree(work)), "objects")
      mkdirSync(join(objects, "17"), { recursive: true })
      for (let at = 0; at < 17; at++) writeFileSync(join(objects, "17", `${at}`.padStart(38, "0")), "unneeded")
      yield* Upkeep.run(given.folder, unbounded)
      assert.sameMembers(readdirSync(objects), ["info", "pack"])
      assert.deepStrictEqual(yield* changedPaths(given, work, changed), ["a.txt"])
      const later = yield* turn(given, work, () => write(work, { "b.txt": "2" }))
      assert.deepStrictEqual(yield* changedPaths(given, work, later), ["b.txt"])
    })
  )

  it.scopedLive("UN-9: after an erasure, a snapshot of unchanged files stores again what was erased", () =>
    Effect.gen(function* () {
      const { options: given, work } = yield* place
      const other = SessionID.make("ses_other")
      project(work, { "a.txt": "1" })
      yield* take(given, work, other)
      write(work, { "a.txt": "2" })
      yield* take(given, work)
      yield* Upkeep.forget(given.folder, session)
      yield* take(given, work, other)
      assert.deepStrictEqual(yield* Upkeep.check(given.folder), [])
    })
  )

  it.scopedLive("UN-43: an erasure that failed is finished by the next upkeep", () =>
    Effect.gen(function* () {
      const { options: given, work } = yield* place
      project(work, { "a.txt": "1" })
      yield* take(given, work)
      write(work, { "a.txt": "2" })
      yield* take(given, work, SessionID.make("ses_other"))
      const error = yield* Effect.flip(withoutGit(Upkeep.forget(given.folder, session)))
      assert.strictEqual(error.reason, "no-git")
      const store = storeOf(given, yield* workTree(work))
      assert.deepStrictEqual(yield* References.keysIn(store), [References.keyOf(SessionID.make("ses_other"))])
      assert.isTrue(existsSync(join(store, "erase-pending")))
      yield* Upkeep.run(given.folder, unbounded)
      assert.isFalse(existsSync(join(store, "erase-pending")))
      assert.sameMembers(readdirSync(join(store, "objects")), ["info", "pack"])
    })
  )

  it.scopedLive("UN-43: a start finishes an erasure that an earlier process began", () =>
    Effect.gen(function* () {
      const { options: given, work } = yield* place
      project(work, { "a.txt": "1" })
      const kept = yield* turn(given, work, () => write(work, { "a.txt": "2" }))
      const note = join(storeOf(given, yield* workTree(work)), "erase-pending")
      writeFileSync(note, "")
      const erased = watching(note)
      yield* Layer.build(Snapshots.layer({ folder: given.folder }))
      yield* waitingFor("the end of the erasure")(erased)
      assert.deepStrictEqual(yield* changedPaths(given, work, kept), ["a.txt"])
    })
  )

  it.scopedLive("UN-9, UN-43: a start erases the snapshots of a session that was removed without them", () =>
    Effect.gen(function* () {
      const { base, work } = yield* place
      const data = join(base, "data")
      mkdirSync(data)
      project(work, { "a.txt": "1" })
      const given = { ...options(join(data, "snapshots")) }
      const open = runtime({ filename: join(data, "log.sqlite") })
      yield* Effect.gen(function* () {
        const sessions = yield* Sessions
        const { id } = yield* sessions.create({ location: { directory: work } })
        yield* take(given, work, id)
        yield* (yield* EventLog).remove(id)
      }).pipe(Effect.provide(open))
      assert.isTrue(existsSync(storeOf(given, yield* workTree(work))))
      yield* Effect.provide(Effect.void, runtime({ filename: join(data, "log.sqlite") }))
      assert.isFalse(existsSync(storeOf(given, yield* workTree(work))))
    })
  )

  it.scopedLive("UN-43: a store without snapshots, as after a kill, is removed", () =>
    Effect.gen(function* () {
      const { options: given, work } = yield* place
      project(work, { "a.txt": "1" })
      yield* take(given, work)
      const store = storeOf(given, yield* workTree(work))
      rmSync(join(store, "refs", "daybook"), { recursive: true })
      assert.deepStrictEqual(yield* Upkeep.run(given.folder, unbounded), { bytes: 0, dropped: 0 })
      assert.isFalse(existsSync(store))
    })
  )

  it.scopedLive("UN-44: snapshots up to a time go, those of other sessions and later ones stay", () =>
    Effect.gen(function* () {
      const { options: given, work } = yield* place
      const other = SessionID.make("ses_other")
      project(work, { "a.txt": "1" })
      const old = yield* turn(given, work, () => write(work, { "a.txt": "2" }))
      const until = Math.max(
        ...(yield* References.references(storeOf(given, yield* workTree(work)))).map(({ time }) => time)
      )
      yield* take(given, work, other)
      const late = yield* turn(given, work, () => write(work, { "a.txt": "3" }))
      const dropped = yield* Upkeep.forgetUntil(given.folder, new Map([[session, until]]))
      assert.strictEqual(dropped, 1)
      assert.strictEqual((yield* Effect.flip(changedPaths(given, work, old))).reason, "missing")
      assert.deepStrictEqual(yield* changedPaths(given, work, late), ["a.txt"])
    })
  )
})
