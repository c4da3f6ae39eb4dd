/** Tests that a full disk is named, whatever SQLite says. Spec: ST-760 in specs/storage.md. */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { join } from "node:path"
import { fullDisk, withoutRoom } from "../../packages/log/src/storage/FullDisk.ts"
import { temporaryFolder } from "../support/Harness.ts"

const failure = (code: string) => Object.assign(new Error("x"), { code })

it.scoped("ST-760: a failure for lack of room names the folder, what is free, and how to read meanwhile", () =>
  Effect.gen(function* () {
    const folder = yield* temporaryFolder
    for (const code of ["SQLITE_FULL", "ENOSPC"]) {
      const sentence = fullDisk(join(folder, "a.db"), failure(code)) ?? assert.fail("it is full")
      assert.match(sentence, /^the disk of \S+ is full \(\d+ B free\): free some space .* set DAYBOOK_DB to the copy$/)
      assert.include(sentence, folder)
    }
  })
)

it.scoped("ST-760: an error of a disk with room, and another failure, are not for lack of room", () =>
  Effect.gen(function* () {
    const folder = yield* temporaryFolder
    for (const code of ["SQLITE_IOERR_SHMSIZE", "SQLITE_BUSY", "EIO"]) {
      assert.isUndefined(fullDisk(join(folder, "a.db"), failure(code)))
    }
  })
)

// A file system without any room, on every Linux.
it("ST-760: an error of a disk without room is for lack of room, though SQLite does not say so", () => {
  assert.include(fullDisk("/proc/a.db", failure("SQLITE_IOERR_SHMSIZE")), "the disk of /proc is full (0 B free)")
})

it.scoped("ST-760: a disk without room is known before a write fails", () =>
  Effect.gen(function* () {
    assert.strictEqual(withoutRoom("/proc/a.db"), "the disk of /proc is full (0 B free)")
    assert.isUndefined(withoutRoom(join(yield* temporaryFolder, "a.db")))
  })
)
