/** Disks that take nothing, users who may not write, and what a long reader leaves of the write-ahead log. */
import { execFileSync } from "node:child_process"
import {
  chmodSync,
  chownSync,
  existsSync,
  readdirSync,
  readFileSync,
  realpathSync,
  statSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { dirname, join } from "node:path"
import { assert, it } from "@effect/vitest"
import Sqlite from "better-sqlite3"
import { Effect, Layer, Option, TestClock } from "effect"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import * as Database from "../../packages/log/src/storage/Database.ts"
import { childProgram, startChild } from "../support/Child.ts"
import { logAt, temporaryDatabase, temporaryFolder } from "../support/Database.ts"
import { begin, readAll, renamed, session } from "../support/Logs.ts"
import { smallDisk } from "../support/SmallDisk.ts"

/** The superuser may write everywhere: then the child runs as nobody. */
const nobody: { readonly uid?: number } = process.getuid?.() === 0 ? { uid: 65534 } : {}

const made = Effect.gen(function* () {
  const folder = yield* temporaryFolder
  const filename = join(folder, "daybook.db")
  yield* Effect.provide(begin(session()), logAt(filename))
  yield* Effect.addFinalizer(() => Effect.sync(() => chmodSync(folder, 0o755)))
  return { folder, filename }
})

const modes: Record<string, readonly [file: number, folder: number]> = {
  "a file": [0o444, 0o777],
  "a folder": [0o666, 0o555],
  "a file in a folder": [0o444, 0o555]
}

it.scopedLive("ST-17: an unprivileged user is refused a database whose file or folder is read-only, and told why", () =>
  Effect.gen(function* () {
    const program = yield* childProgram()
    for (const [what, [file, folderMode]] of Object.entries(modes)) {
      const { filename, folder } = yield* made
      const bytes = readFileSync(filename)
      chmodSync(filename, file)
      chmodSync(folder, folderMode)
      const child = yield* startChild(program.outfile, filename, nobody)
      yield* child.tell({ do: "open" })
      const answer = yield* child.answer
      assert.deepInclude(answer, { is: "failed", tag: "DatabaseError" }, what)
      const message = answer.is === "failed" ? answer.message : ""
      for (const part of [filename, "cannot be written", "read-only", "choose a writable place"]) {
        assert.include(message, part, what)
      }
      yield* child.kill
      assert.isTrue(readFileSync(filename).equals(bytes), what)
      // A file that SQLite left beside it would be read-only as well, and have the database refused for ever.
      assert.deepStrictEqual(readdirSync(folder), ["daybook.db"], what)
      // With its permissions back it is what it was.
      chmodSync(folder, 0o777)
      chmodSync(filename, 0o666)
      yield* Effect.provide(Effect.void, logAt(filename))
    }
  })
)

it.scopedLive("ST-17: a database is refused by the path that is read-only, and opens once that is writable", () =>
  Effect.gen(function* () {
    const program = yield* childProgram()
    const { filename, folder } = yield* made
    const link = join(yield* temporaryFolder, "link.db")
    chmodSync(dirname(link), 0o755)
    symlinkSync(filename, link)
    writeFileSync(`${filename}-wal`, "")
    writeFileSync(`${filename}-shm`, "")
    const paths = [filename, folder, `${filename}-wal`, `${filename}-shm`]
    const permit = (readOnly?: string) => {
      for (const path of paths) {
        if (nobody.uid !== undefined) chownSync(path, nobody.uid, nobody.uid)
        chmodSync(path, path === readOnly ? 0o555 : 0o777)
      }
    }
    for (const readOnly of paths) {
      permit(readOnly)
      const child = yield* startChild(program.outfile, link, nobody)
      yield* child.tell({ do: "open" })
      const answer = yield* child.answer
      assert.deepInclude(answer, { is: "failed", tag: "DatabaseError" }, readOnly)
      assert.include(answer.is === "failed" ? answer.message : "", `${realpathSync(readOnly)} is read-only`)
      yield* child.kill
    }
    permit()
    const child = yield* startChild(program.outfile, link, nobody)
    yield* child.tell({ do: "open" })
    assert.deepInclude(yield* child.answer, { is: "opened" })
    yield* child.kill
  })
)

it.scopedLive("ST-17: a database on a disk that is mounted read-only is refused, to the superuser too", () =>
  Effect.gen(function* () {
    const disk = yield* smallDisk(4)
    // Who may not mount is no superuser: a read-only folder is that user's read-only disk.
    const folder = Option.isSome(disk) ? disk.value.folder : yield* temporaryFolder
    const [filename, id] = [join(folder, "daybook.db"), session()]
    const stored = yield* Effect.provide(begin(id, 3), logAt(filename))
    const toggle = (writable: boolean) =>
      Option.isSome(disk)
        ? execFileSync("mount", ["-o", `remount,${writable ? "rw" : "ro"}`, folder])
        : chmodSync(folder, writable ? 0o755 : 0o555)
    toggle(false)
    const refused = yield* Effect.flip(Effect.scoped(Layer.build(Database.layer({ filename }))))
    toggle(true)
    assert.deepInclude(refused, { _tag: "DatabaseError", reason: "read-only" })
    assert.include(refused.message, "cannot be written")
    assert.deepStrictEqual(yield* Effect.provide(readAll(id), logAt(filename)), stored)
  })
)

it.scopedLive("ST-17: a database that another process is writing opens at once", () =>
  Effect.gen(function* () {
    const { filename } = yield* made
    const other = new Sqlite(filename)
    other.exec("BEGIN IMMEDIATE")
    yield* Effect.scoped(Layer.build(Database.layer({ filename })))
    other.exec("ROLLBACK")
    other.close()
  })
)

const walSize = (filename: string) => (existsSync(`${filename}-wal`) ? statSync(`${filename}-wal`).size : 0)

for (const then of ["commits come after it", "nothing comes after it"]) {
  it.scoped(
    `ST-18: the write-ahead log that a long reader made grow is cut when the reader has ended, and ${then}`,
    () =>
      Effect.gen(function* () {
        const [filename, id] = [yield* temporaryDatabase, session()]
        yield* Effect.gen(function* () {
          const log = yield* EventLog
          yield* begin(id)
          const reader = new Sqlite(filename, { readonly: true })
          reader.exec("BEGIN")
          reader.prepare("SELECT count(*) FROM event").get()
          for (let n = 0; n < 24; n++) yield* log.append(id, [renamed("x".repeat(500_000))])
          assert.isAbove(walSize(filename), Database.walLimit)
          reader.exec("COMMIT")
          reader.close()
          if (then === "commits come after it") for (let n = 0; n < 3; n++) yield* log.append(id, [renamed("more")])
          else {
            yield* TestClock.adjust("10 seconds")
            // The look at the file's size is the file system's, and not the clock's.
            while (walSize(filename) > Database.walLimit) yield* Effect.promise(() => new Promise(setImmediate))
          }
          assert.isAtMost(walSize(filename), Database.walLimit)
          assert.strictEqual((yield* log.read({ sessionID: id, after: 23 })).events[0]?.seq, 24)
        }).pipe(Effect.provide(logAt(filename)))
      })
  )
}
