/** Damaged, orphaned and unfinished stores: a check names them, and mending keeps what is whole. */
import { chmodSync, existsSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { storeOf } from "../../packages/core/src/snapshot/StoreFolder.ts"
import * as Upkeep from "../../packages/core/src/snapshot/Upkeep.ts"
import { contents, place, project, workTree, write } from "./support/Repository.ts"
import { changedPaths, changesOf, take, turn, undo } from "./support/Snapshotting.ts"

const kinds = (folder: string) => Effect.map(Upkeep.check(folder), (faults) => faults.map(({ kind }) => kind))

const mendAll = (folder: string) => Effect.flatMap(Upkeep.check(folder), Effect.forEach(Upkeep.mend))

describe("faults of stores", () => {
  it.scopedLive("UN-46, UN-47: changed content is found, and the snapshots without it are kept", () =>
    Effect.gen(function* () {
      const { options: given, work } = yield* place
      project(work, { "a.txt": "1", "b.txt": "1" })
      const whole = yield* turn(given, work, () => write(work, { "a.txt": "2" }))
      const broken = yield* turn(given, work, () => write(work, { "b.txt": "lost" }))
      assert.deepStrictEqual(yield* kinds(given.folder), [])
      const [change] = yield* changesOf(given, work, broken)
      const id = change?.after?.id ?? ""
      const store = storeOf(given, yield* workTree(work))
      const object = join(store, "objects", id.slice(0, 2), id.slice(2))
      const state = contents(given.folder)
      const bytes = readFileSync(object)
      bytes[2] = (bytes[2] ?? 0) ^ 0xff
      chmodSync(object, 0o600)
      writeFileSync(object, bytes)
      chmodSync(object, 0o400)
      assert.deepStrictEqual(yield* kinds(given.folder), ["damaged"])
      assert.sameMembers(Object.keys(contents(given.folder)), Object.keys(state))
      yield* mendAll(given.folder)
      assert.deepStrictEqual(yield* kinds(given.folder), [])
      assert.strictEqual((yield* Effect.flip(changedPaths(given, work, broken))).reason, "missing")
      assert.deepStrictEqual(yield* undo(given, work, [whole]), ["restored a.txt"])
      // The next snapshot stores again what was lost.
      const next = yield* turn(given, work, () => write(work, { "b.txt": "3" }))
      assert.deepStrictEqual(yield* undo(given, work, [next]), ["restored b.txt"])
      assert.strictEqual(readFileSync(join(work, "b.txt"), "utf8"), "lost")
    })
  )

  it.scopedLive("UN-46, UN-47: a store that lacks its files, and one whose folder is gone, are found and removed", () =>
    Effect.gen(function* () {
      const { base, options: given, work } = yield* place
      const moved = join(base, "moved")
      project(work, { "a.txt": "1" })
      project(moved, { "a.txt": "1" })
      yield* take(given, work)
      yield* take(given, moved)
      const [store, orphan] = [storeOf(given, yield* workTree(work)), storeOf(given, yield* workTree(moved))]
      rmSync(join(store, "HEAD"))
      renameSync(moved, join(base, "elsewhere"))
      assert.sameMembers(yield* kinds(given.folder), ["damaged", "orphaned"])
      yield* mendAll(given.folder)
      assert.deepStrictEqual([existsSync(store), existsSync(orphan)], [false, false])
      yield* take(given, work)
      assert.deepStrictEqual(yield* kinds(given.folder), [])
    })
  )

  it.scopedLive("UN-46, UN-47: an erasure that is not finished is found, and finished", () =>
    Effect.gen(function* () {
      const { options: given, work } = yield* place
      project(work, { "a.txt": "1" })
      const kept = yield* turn(given, work, () => write(work, { "a.txt": "2" }))
      const note = join(storeOf(given, yield* workTree(work)), "erase-pending")
      writeFileSync(note, "")
      assert.deepStrictEqual(yield* kinds(given.folder), ["unfinished"])
      yield* mendAll(given.folder)
      assert.isFalse(existsSync(note))
      assert.deepStrictEqual(yield* changedPaths(given, work, kept), ["a.txt"])
    })
  )

  it.scopedLive("UN-48: after its index was damaged, a snapshot holds everything", () =>
    Effect.gen(function* () {
      const { options: given, work } = yield* place
      project(work, { "a.txt": "1", "b.txt": "1" })
      const first = yield* take(given, work)
      const store = storeOf(given, yield* workTree(work))
      for (const name of Object.keys(contents(store))) {
        if (/^index-[0-9a-f]+$/.test(name)) writeFileSync(join(store, name), "no index")
      }
      write(work, { "a.txt": "2" })
      const second = yield* take(given, work)
      assert.deepStrictEqual(yield* changedPaths(given, work, { before: first.tree, after: second.tree }), ["a.txt"])
    })
  )
})
