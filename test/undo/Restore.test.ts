/** Restoring real files: exact bytes, modes and links, nothing of others overwritten, nothing outside touched. */
import { randomBytes } from "node:crypto"
import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { contents, options, place, project, write } from "./support/Repository.ts"
import { take, turn, undo } from "./support/Snapshotting.ts"

describe("restore", () => {
  it.scopedLive("UN-20: an undo puts back bytes, modes, links, deleted and renamed files, and deletes new ones", () =>
    Effect.gen(function* () {
      const { options: given, work } = yield* place
      const binary = Buffer.from([0, 255, 13, 10, 0, 1])
      project(work, { "a.txt": "one\r\n", "b.bin": binary, gone: "1", run: "1", "from.txt": "moved", kind: "file" })
      symlinkSync("a.txt", join(work, "link"))
      write(work, { untracked: "mine" })
      chmodSync(join(work, "untracked"), 0o640)
      const state = contents(work)
      const before = (yield* take(given, work)).tree
      write(work, { "a.txt": "two\n", "b.bin": "text", "deep/er/new.txt": "1", untracked: "changed" })
      rmSync(join(work, "gone"))
      chmodSync(join(work, "run"), 0o755)
      rmSync(join(work, "link"))
      symlinkSync("/etc/passwd", join(work, "link"))
      renameSync(join(work, "from.txt"), join(work, "to.txt"))
      rmSync(join(work, "kind"))
      write(work, { "kind/inner": "now a folder" })
      const after = (yield* take(given, work)).tree
      const account = yield* undo(given, work, [{ before, after }])
      assert.deepStrictEqual(account, [
        "restored a.txt",
        "restored b.bin",
        "deleted deep/er/new.txt",
        "recreated from.txt",
        "recreated gone",
        "recreated kind",
        "deleted kind/inner",
        "restored link",
        "restored run",
        "deleted to.txt",
        "restored untracked"
      ])
      assert.deepStrictEqual(contents(work), state)
      // Again: there is nothing left to do.
      assert.isTrue((yield* undo(given, work, [{ before, after }])).every((line) => line.startsWith("already ")))
    })
  )

  it.scopedLive("UN-20: an undo puts back files that git sends in many parts", () =>
    Effect.gen(function* () {
      const { options: given, work } = yield* place
      project(work, { "a.bin": randomBytes(3_000_000), "b.bin": randomBytes(300_000), "c.txt": "" })
      const before = contents(work)
      const turns = [yield* turn(given, work, () => write(work, { "a.bin": "a", "b.bin": "b", "c.txt": "c" }))]
      assert.deepStrictEqual(yield* undo(given, work, turns), ["restored a.bin", "restored b.bin", "restored c.txt"])
      assert.deepStrictEqual(contents(work), before)
    })
  )

  it.scopedLive("UN-21: a path that changed since the turn stays and is named, and only force restores it", () =>
    Effect.gen(function* () {
      const { options: given, work } = yield* place
      project(work, { "a.txt": "1", "b.txt": "1", "c.txt": "1", "d.txt": "1", untouched: "1" })
      const before = (yield* take(given, work)).tree
      write(work, { "a.txt": "2", "b.txt": "2", "d.txt": "2", "new.txt": "2" })
      rmSync(join(work, "c.txt"))
      const after = (yield* take(given, work)).tree
      // The person's own work since.
      write(work, { "b.txt": "mine", "c.txt": "mine", "new.txt": "mine", untouched: "mine" })
      rmSync(join(work, "d.txt"))
      const account = yield* undo(given, work, [{ before, after }])
      assert.deepStrictEqual(account, [
        "restored a.txt",
        "conflict b.txt",
        "conflict c.txt",
        "conflict d.txt",
        "conflict new.txt"
      ])
      assert.strictEqual(readFileSync(join(work, "b.txt"), "utf8"), "mine")
      assert.isFalse(existsSync(join(work, "d.txt")))
      yield* undo(given, work, [{ before, after }], true)
      assert.strictEqual(readFileSync(join(work, "b.txt"), "utf8"), "1")
      assert.isFalse(existsSync(join(work, "new.txt")))
      assert.strictEqual(readFileSync(join(work, "untouched"), "utf8"), "mine")
    })
  )

  it.scopedLive("UN-22: what others changed between two turns that an undo takes back is a conflict", () =>
    Effect.gen(function* () {
      const { options: given, work } = yield* place
      project(work, { "a.txt": "0", "b.txt": "0", "c.txt": "0" })
      const one = (yield* take(given, work)).tree
      write(work, { "a.txt": "1", "b.txt": "1" })
      const two = (yield* take(given, work)).tree
      write(work, { "b.txt": "mine", "c.txt": "mine" })
      const three = (yield* take(given, work)).tree
      write(work, { "a.txt": "2", "b.txt": "2" })
      const four = (yield* take(given, work)).tree
      const account = yield* undo(given, work, [
        { before: one, after: two },
        { before: three, after: four }
      ])
      assert.deepStrictEqual(account, ["restored a.txt", "conflict b.txt"])
      assert.strictEqual(readFileSync(join(work, "c.txt"), "utf8"), "mine")
    })
  )

  it.scopedLive("UN-24: nothing is written or deleted through a link that leaves the folder", () =>
    Effect.gen(function* () {
      const { base, options: given, work } = yield* place
      project(work, { "dir/a.txt": "1", "dir/gone.txt": "1", "file.txt": "1" })
      const outside = join(base, "outside")
      mkdirSync(outside)
      const before = (yield* take(given, work)).tree
      write(work, { "dir/a.txt": "2", "dir/new.txt": "2", "file.txt": "2" })
      rmSync(join(work, "dir/gone.txt"))
      const after = (yield* take(given, work)).tree
      rmSync(join(work, "dir"), { recursive: true })
      symlinkSync(outside, join(work, "dir"))
      write(outside, { "a.txt": "2", "new.txt": "2" })
      const state = contents(outside)
      for (const force of [false, true]) {
        const account = yield* undo(given, work, [{ before, after }], force)
        assert.includeMembers(account, ["conflict dir/a.txt", "conflict dir/gone.txt", "conflict dir/new.txt"])
        assert.deepStrictEqual(contents(outside), state)
      }
      // A link in place of a file is replaced, not followed.
      write(work, { "file.txt": "2" })
      rmSync(join(work, "file.txt"))
      symlinkSync(join(outside, "a.txt"), join(work, "file.txt"))
      yield* undo(given, work, [{ before, after }], true)
      assert.strictEqual(readFileSync(join(work, "file.txt"), "utf8"), "1")
      assert.deepStrictEqual(contents(outside), state)
    })
  )

  it.scopedLive("UN-23: what a snapshot could not hold is never overwritten or deleted, not even with force", () =>
    Effect.gen(function* () {
      const { base, work } = yield* place
      const given = options(join(base, "data"), { fileBytes: 10 })
      project(work, { "a.txt": "1", "b.txt": "1", ".gitignore": "*.log\n" })
      const before = (yield* take(given, work)).tree
      rmSync(join(work, "a.txt"))
      write(work, { "b.txt": "2", "c.txt": "3" })
      const after = (yield* take(given, work)).tree
      write(work, { "a.txt": "larger than ten bytes", "c.txt": "larger than ten bytes" })
      rmSync(join(work, "b.txt"))
      mkdirSync(join(work, "b.txt"))
      write(work, { "b.txt/inner.log": "ignored" })
      const state = contents(work)
      const account = yield* undo(given, work, [{ before, after }], true)
      assert.deepStrictEqual(account, ["conflict a.txt", "conflict b.txt", "conflict c.txt"])
      assert.deepStrictEqual(contents(work), state)
    })
  )
})
