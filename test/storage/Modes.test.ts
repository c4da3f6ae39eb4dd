/** Who may use what Daybook makes (ST-20, ST-21), under every umask that a process may have. */
import { chmodSync, existsSync, mkdirSync, statSync, symlinkSync } from "node:fs"
import { dirname, join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import * as Doctor from "../../packages/log/src/maintenance/Doctor.ts"
import * as PrivateFile from "../../packages/log/src/storage/PrivateFile.ts"
import { makeFolders } from "../../packages/log/src/storage/PrivateFile.ts"
import * as Store from "../../packages/log/src/Store.ts"
import { temporaryFolder } from "../tools/Workbench.ts"

const modeOf = (path: string): string => (statSync(path).mode & 0o777).toString(8)

const withUmask =
  (mask: number) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>) =>
    Effect.acquireUseRelease(
      Effect.sync(() => process.umask(mask)),
      () => effect,
      (before) => Effect.sync(() => process.umask(before))
    )

/** The modes of the database's files while it is open. */
const opened = (filename: string) =>
  Stream.runDrain(Doctor.verify).pipe(
    Effect.map(() => ["", "-wal", "-shm"].map((suffix) => modeOf(`${filename}${suffix}`))),
    Effect.provide(Store.layer({ filename }))
  )

describe("a database", () => {
  for (const mask of [0o000, 0o002, 0o022, 0o077, 0o277, 0o777]) {
    it.scopedLive(
      `ST-20: with umask ${mask.toString(8)} its files are for their owner alone, in a folder for all`,
      () =>
        Effect.gen(function* () {
          const folder = yield* temporaryFolder
          chmodSync(folder, 0o777)
          const filename = join(folder, "here.sqlite")
          assert.deepStrictEqual(yield* withUmask(mask)(opened(filename)), ["600", "600", "600"])
          // Opened again, when the files beside it are made anew.
          assert.deepStrictEqual(yield* withUmask(mask)(opened(filename)), ["600", "600", "600"])
        })
    )
  }

  it.scopedLive("ST-20: a link to a file that is not there yet makes that file for its owner alone", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      mkdirSync(join(folder, "far"))
      symlinkSync("far/second", join(folder, "first"))
      symlinkSync("target.sqlite", join(folder, "far/second"))
      yield* withUmask(0)(
        Effect.provide(Stream.runDrain(Doctor.verify), Store.layer({ filename: join(folder, "first") }))
      )
      assert.strictEqual(modeOf(join(folder, "far/target.sqlite")), "600")
    })
  )

  it.scopedLive("ST-21: the files and folders that others may use are found, and left to their owner", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const filename = join(folder, "old.sqlite")
      yield* opened(filename)
      const wide = (...folders: ReadonlyArray<string>) => Effect.promise(() => PrivateFile.wide(filename, folders))
      assert.deepStrictEqual(yield* wide(), [])
      chmodSync(filename, 0o664)
      assert.deepStrictEqual(yield* wide(), [{ path: filename, mode: 0o664 }])
      assert.deepStrictEqual(yield* opened(filename), ["664", "664", "664"])
      for (const file of yield* wide()) yield* Effect.promise(() => PrivateFile.tighten(file))
      assert.strictEqual(modeOf(filename), "600")
      assert.deepStrictEqual(yield* opened(filename), ["600", "600", "600"])

      const own = join(folder, "own")
      mkdirSync(own, { mode: 0o700 })
      symlinkSync(own, join(folder, "link"))
      const folders = [own, join(folder, "link"), join(folder, "missing"), filename]
      assert.deepStrictEqual(yield* wide(...folders), [])
      chmodSync(own, 0o711)
      assert.deepStrictEqual(yield* wide(...folders), [{ path: own, mode: 0o711 }])
      for (const each of yield* wide(...folders)) yield* Effect.promise(() => PrivateFile.tighten(each))
      assert.strictEqual(modeOf(own), "700")
    })
  )
})

it.scopedLive("ST-20: folders that are made for their owner are 0700 under any umask, those above included", () =>
  Effect.gen(function* () {
    const folder = yield* temporaryFolder
    for (const mask of [0o000, 0o077, 0o777]) {
      const made = join(folder, String(mask), "a/b")
      yield* withUmask(mask)(Effect.promise(() => makeFolders(made, 0o700)))
      assert.isTrue(existsSync(made))
      for (const each of [made, dirname(made), dirname(dirname(made))]) assert.strictEqual(modeOf(each), "700")
    }
  })
)
