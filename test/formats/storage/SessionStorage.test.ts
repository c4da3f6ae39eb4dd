/** Runs the contract of session storage in memory and on disk, and tests what only a disk does. Spec: FM-70..FM-76. */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync, writeSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, assert, it } from "@effect/vitest"
import { Effect, Option } from "effect"
import * as FileSessionStorage from "../../../packages/formats/src/storage/FileSessionStorage.ts"
import * as MemorySessionStorage from "../../../packages/formats/src/storage/MemorySessionStorage.ts"
import { temporaryFolder } from "../../support/Database.ts"
import { waitingFor } from "../../support/Waiting.ts"
import { storageContract } from "../support/StorageContract.ts"

const root = mkdtempSync(join(tmpdir(), "daybook-test-"))
afterAll(() => rmSync(root, { recursive: true, force: true }))

storageContract({ name: "in memory", layer: MemorySessionStorage.layer, root: "/sessions" })
storageContract({ name: "on disk", layer: FileSessionStorage.layer, root })

const noSpace = Object.assign(new Error("no space"), { code: "ENOSPC" })

it.scoped("FM-70: folders and files are private to their owner; a replaced file keeps its mode", () =>
  Effect.gen(function* () {
    const [storage, folder] = [FileSessionStorage.make(), yield* temporaryFolder]
    const before = process.umask(0)
    yield* storage.ensureDir(join(folder, "a/b"))
    yield* storage.writeText(join(folder, "a/text"), "text")
    yield* storage.openWriter(join(folder, "a/log"))
    writeFileSync(join(folder, "a/shared"), "", { mode: 0o640 })
    yield* storage.writeText(join(folder, "a/shared"), "text")
    process.umask(before)
    const modes = ["a", "a/b", "a/text", "a/log", "a/shared"].map((path) => statSync(join(folder, path)).mode & 0o777)
    assert.deepStrictEqual(modes, [0o700, 0o700, 0o600, 0o600, 0o640])
  })
)

it.scoped("FM-72: a replacement that fails at any call leaves the old content and no other file", () =>
  Effect.gen(function* () {
    const folder = yield* temporaryFolder
    const file = join(folder, "log")
    writeFileSync(file, "old\n")
    const fail = () => {
      throw noSpace
    }
    for (const calls of [{ write: fail }, { fsync: () => Promise.reject(noSpace) }, { rename: fail }]) {
      const error = yield* Effect.flip(FileSessionStorage.make(calls).writeLines(file, ["new"]))
      assert.deepInclude({ ...error }, { _tag: "StorageFailed", path: file, code: "ENOSPC" })
      assert.include(error.message, "the disk is full")
      assert.strictEqual(readFileSync(file, "utf8"), "old\n")
      assert.deepStrictEqual(readdirSync(folder), ["log"])
    }
  })
)

it.scoped("FM-72: the content is durable before its name, and the name after it", () =>
  Effect.gen(function* () {
    const [folder, order] = [yield* temporaryFolder, new Array<string>()]
    const storage = FileSessionStorage.make({
      write: (file, bytes) => (order.push("write"), writeSync(file, bytes)),
      fsync: async () => void order.push("fsync"),
      rename: () => void order.push("rename")
    })
    yield* storage.writeText(join(folder, "log"), "text")
    assert.deepStrictEqual(order, ["write", "fsync", "rename", "fsync"])
  })
)

it.scoped("FM-73: a line that was written in part is cut off again, and the writer keeps its error", () =>
  Effect.gen(function* () {
    const file = join(yield* temporaryFolder, "log")
    let left = 20
    const storage = FileSessionStorage.make({
      write: (handle, bytes) => {
        if (left === 0) throw noSpace
        const written = writeSync(handle, bytes.subarray(0, left))
        left -= written
        return written
      }
    })
    const writer = yield* storage.openWriter(file)
    yield* writer.writeLine('{"first":1}')
    const error = yield* Effect.flip(writer.writeLine('{"second":"does not fit"}'))
    assert.strictEqual(error.code, "ENOSPC")
    assert.strictEqual(readFileSync(file, "utf8"), '{"first":1}\n')
    left = 1000
    assert.deepStrictEqual(yield* Effect.flip(writer.writeLine("{}")), error)
    assert.deepStrictEqual(yield* Effect.flip(writer.fsync), error)
    assert.deepStrictEqual(Option.getOrUndefined(yield* writer.error), error)
    assert.strictEqual(readFileSync(file, "utf8"), '{"first":1}\n')
  })
)

it.scoped("FM-73: a line that the system takes in pieces is whole", () =>
  Effect.gen(function* () {
    const file = join(yield* temporaryFolder, "log")
    const storage = FileSessionStorage.make({ write: (handle, bytes) => writeSync(handle, bytes.subarray(0, 3)) })
    yield* (yield* storage.openWriter(file)).writeLine("0123456789")
    assert.strictEqual(readFileSync(file, "utf8"), "0123456789\n")
  })
)

/** Takes the lock as another program would, says so, and waits. */
const program = `
  const Sqlite = require("better-sqlite3")
  const db = new Sqlite(process.argv[1] + ".lock")
  db.exec("BEGIN EXCLUSIVE")
  process.stdout.write("held")
  setInterval(() => db.open, 1000)
`

it.scoped("FM-74: a process that is killed gives its lock back", () =>
  Effect.gen(function* () {
    const [storage, folder] = [FileSessionStorage.make(), yield* temporaryFolder]
    const file = join(folder, "log.jsonl")
    const holder = spawn(process.execPath, ["-e", program, file], { stdio: ["ignore", "pipe", "inherit"] })
    yield* Effect.addFinalizer(() => Effect.sync(() => holder.kill("SIGKILL")))
    const [ended, held] = [once(holder, "exit"), once(holder.stdout, "data")]
    yield* waitingFor("the holder of the lock")(Effect.promise(() => held))
    assert.strictEqual((yield* Effect.flip(Effect.scoped(storage.lock(file))))._tag, "SessionLocked")
    holder.kill("SIGKILL")
    yield* waitingFor("the end of the holder")(Effect.promise(() => ended))
    yield* storage.lock(file)
  })
)
