/** Runs the contract of session storage in memory and on disk, and tests what only a disk does. Spec: FM-70..FM-76. */
import { spawn } from "node:child_process"
import { once } from "node:events"
import {
  appendFileSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
  writeSync
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, assert, it } from "@effect/vitest"
import { Effect, FastCheck as fc, Option } from "effect"
import * as FileSessionStorage from "../../../packages/formats/src/storage/FileSessionStorage.ts"
import * as MemorySessionStorage from "../../../packages/formats/src/storage/MemorySessionStorage.ts"
import type { SessionStorage, SessionWriter } from "../../../packages/formats/src/storage/SessionStorage.ts"
import { cases } from "../../support/Cases.ts"
import { temporaryFolder } from "../../support/Database.ts"
import { waitingFor } from "../../support/Waiting.ts"
import { storageContract } from "../support/StorageContract.ts"

const root = mkdtempSync(join(tmpdir(), "daybook-test-"))
afterAll(() => rmSync(root, { recursive: true, force: true }))

storageContract({ name: "in memory", layer: MemorySessionStorage.layer, root: "/sessions" })
storageContract({ name: "on disk", layer: FileSessionStorage.layer, root })

/** Changes of the storage below a folder. */
const names = ["a", "b", "a/b", "a/c", "b/a", "a/b/c"] as const
const name = fc.constantFrom(...names)
const change = fc.oneof(
  fc.record({ do: fc.constant("folder" as const), path: name }),
  fc.record({ do: fc.constant("write" as const), path: name }),
  fc.record({ do: fc.constant("append" as const), path: name }),
  fc.record({ do: fc.constant("rename" as const), path: name, to: name }),
  fc.record({ do: fc.constant("unlink" as const), path: name }),
  fc.record({ do: fc.constant("back up" as const), path: name }),
  fc.record({ do: fc.constant("keep the rest" as const), path: name, tail: fc.nat(20) })
)
type Change = typeof change extends fc.Arbitrary<infer A> ? A : never

/** What the changes give, one after the other, and what there is in the end. Files that were opened stay open. */
const changed = (storage: SessionStorage["Type"], root: string, changes: ReadonlyArray<Change>) =>
  Effect.scoped(
    Effect.gen(function* () {
      yield* storage.ensureDir(root)
      const writers = new Map<string, SessionWriter>()
      const done = yield* Effect.forEach(changes, (step, n) => {
        const path = `${root}/${step.path}`
        const use = Effect.gen(function* () {
          switch (step.do) {
            case "folder":
              return yield* storage.ensureDir(path)
            case "write":
              return yield* storage.writeText(path, `text ${n}`)
            case "append": {
              const writer = writers.get(path) ?? (yield* storage.openWriter(path))
              writers.set(path, writer)
              return yield* writer.writeLine(`line ${n}`)
            }
            case "rename":
              return yield* storage.rename(path, `${root}/${step.to}`)
            case "unlink":
              return yield* storage.unlink(path)
            case "back up":
              return (yield* storage.backUp(path, "x")).slice(root.length)
            case "keep the rest":
              return yield* storage.writeLines(path, [`head ${n}`], step.tail)
          }
        })
        return Effect.match(use, {
          onFailure: (error) => (error._tag === "StorageFailed" ? error.code : error._tag),
          onSuccess: (found) => found ?? "done"
        })
      })
      const there = yield* Effect.forEach(["", ...names.map((each) => `/${each}`)], (each) =>
        Effect.all({
          exists: storage.exists(`${root}${each}`),
          text: Effect.option(storage.readText(`${root}${each}`)),
          files: Effect.option(storage.listFiles(`${root}${each}`)),
          folders: Effect.option(storage.listDirs(`${root}${each}`))
        })
      )
      return { done, there }
    })
  )

it.scoped("FM-76: whatever is renamed, replaced or removed, memory and disk hold the same and refuse the same", () =>
  Effect.gen(function* () {
    const folder = yield* temporaryFolder
    const disk = FileSessionStorage.make()
    let run = 0
    yield* Effect.promise(() =>
      fc.assert(
        fc.asyncProperty(fc.array(change, { maxLength: 10 }), (changes) =>
          Effect.runPromise(
            Effect.gen(function* () {
              const root = `/${++run}`
              const memory = yield* changed(MemorySessionStorage.make(), root, changes)
              assert.deepStrictEqual(memory, yield* changed(disk, `${folder}${root}`, changes))
            })
          )
        ),
        { numRuns: cases(60) }
      )
    )
  })
)

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

it.scoped("FM-420: what killed processes left of replacements is removed, what running ones write stays", () =>
  Effect.gen(function* () {
    const [storage, folder] = [FileSessionStorage.make(), yield* temporaryFolder]
    const ended = spawn(process.execPath, ["-e", ""])
    yield* waitingFor("the end of a process")(Effect.promise(() => once(ended, "exit")))
    const left = (name: string, pid: number | undefined) => {
      const path = join(folder, `.${name}.${pid}.1.tmp`)
      writeFileSync(path, "")
      return path
    }
    for (const use of [storage.lock(join(folder, "log")), storage.writeText(join(folder, "log"), "text")]) {
      left("other.jsonl", ended.pid)
      left("log", ended.pid)
      const old = left("log", process.ppid)
      utimesSync(old, 1, 1)
      const earlier = left("earlier", process.pid)
      utimesSync(earlier, 1, 1)
      left("running", process.ppid)
      yield* Effect.scoped(use)
      const found = readdirSync(folder).filter((name) => name.endsWith(".tmp"))
      assert.deepStrictEqual(found, [`.running.${process.ppid}.1.tmp`])
    }
  })
)

it.scoped("FM-421: a backup has the file's bytes, whatever they are, and never replaces an earlier one", () =>
  Effect.gen(function* () {
    const [storage, folder] = [FileSessionStorage.make(), yield* temporaryFolder]
    const file = join(folder, "log.jsonl")
    for (const [name, bytes] of [
      ["log.jsonl.v1.bak", [0xff, 0xfe, 0x0a]],
      ["log.jsonl.v1.2.bak", [0xc3, 0x00]],
      ["log.jsonl.v1.3.bak", []]
    ] as const) {
      writeFileSync(file, Buffer.from(bytes))
      assert.strictEqual(yield* storage.backUp(file, "v1"), join(folder, name))
      assert.deepStrictEqual([...readFileSync(join(folder, name))], [...bytes])
    }
    assert.deepStrictEqual([...readFileSync(join(folder, "log.jsonl.v1.bak"))], [0xff, 0xfe, 0x0a])
    const full = FileSessionStorage.make({ fsync: () => Promise.reject(noSpace) })
    assert.strictEqual((yield* Effect.flip(full.backUp(file, "damaged")))._tag, "StorageFailed")
    assert.isFalse(yield* storage.exists(`${file}.damaged.bak`))
  })
)

it.scoped("FM-422: what another program appends while the file is replaced follows the new lines", () =>
  Effect.gen(function* () {
    const file = join(yield* temporaryFolder, "log")
    writeFileSync(file, "old\nother\n")
    let syncs = 0
    const storage = FileSessionStorage.make({
      fsync: async () => {
        if (syncs++ === 0) appendFileSync(file, "while it was synced\n")
      },
      rename: (from, to) => {
        appendFileSync(file, "last moment\n")
        renameSync(from, to)
      }
    })
    yield* storage.writeLines(file, ["new"], "old\n".length)
    const lines = readFileSync(file, "utf8").split("\n")
    assert.deepStrictEqual(lines.slice(0, 4), ["new", "other", "while it was synced", "last moment"])
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
