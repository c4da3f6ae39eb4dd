/** The exporter's record: its lock, its life, and what is done with one that is no good. */
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import Sqlite from "better-sqlite3"
import { Effect, Struct } from "effect"
import { processUid } from "../../packages/files/src/disk/FileCalls.ts"
import * as SafeFiles from "../../packages/files/src/disk/SafeFiles.ts"
import { modesOf } from "../../packages/files/src/layout/Layout.ts"
import * as Ledger from "../../packages/files/src/record/Ledger.ts"
import * as LedgerFile from "../../packages/files/src/record/LedgerFile.ts"
import type * as Records from "../../packages/files/src/record/Records.ts"
import { leaveCopies, secret } from "../log/support/Copies.ts"
import { tracesIn } from "../log/support/Traces.ts"
import { temporaryFolder } from "../support/Database.ts"

const open = (root: string) => Ledger.make(SafeFiles.make({ root }))
const record = (id: string): Records.SessionRecord => ({
  id,
  folder: `home/${id}`,
  index: "home/index",
  seq: 3,
  position: 9,
  first: "evt_1",
  shown: 2,
  checkpointSeq: 1,
  checkpointSize: 2,
  entry: "{}",
  behind: false
})
const file: Records.FileRecord = { size: 1, crc: 4_294_967_295, stamp: "1:1:1", next: null, lasting: false }

it.scoped("FI-111, FI-65: what was kept is there when it is opened again; what was forgotten is not", () =>
  Effect.gen(function* () {
    const root = yield* temporaryFolder
    const cursor = { position: 2 ** 45, eventID: "evt_1", sessionID: "ses_a", removals: 2 }
    yield* Effect.scoped(
      Effect.gen(function* () {
        const ledger = yield* open(root)
        assert.deepStrictEqual(yield* ledger.cursor, { position: 0, eventID: null, sessionID: null, removals: 0 })
        yield* ledger.setCursor(cursor)
        for (const id of ["a", "b"]) yield* ledger.keep(`home/${id}`, new Map([["state", file]]), record(id), "{}")
        yield* ledger.keep(
          "home/a",
          new Map([
            ["state", undefined],
            ["cwd", { ...file, next: { size: 2, crc: 0 } }]
          ])
        )
        yield* ledger.setBehind("a")
        yield* ledger.forget("b")
      })
    )
    const ledger = yield* open(root)
    assert.deepStrictEqual(yield* ledger.cursor, cursor)
    assert.deepStrictEqual(yield* ledger.session("a"), { ...record("a"), behind: true })
    assert.isUndefined(yield* ledger.session("b"))
    assert.strictEqual(yield* ledger.checkpoint("a"), "{}")
    assert.isUndefined(yield* ledger.checkpoint("b"))
    assert.deepStrictEqual([...(yield* ledger.files("home/a"))], [["cwd", { ...file, next: { size: 2, crc: 0 } }]])
    assert.deepStrictEqual(yield* ledger.behind(10), ["a"])
    assert.deepStrictEqual(yield* ledger.entries("home/index"), ["{}"])
    assert.deepStrictEqual((yield* ledger.sessions("", 10)).map(Struct.get("id")), ["a"])
    assert.deepStrictEqual(yield* ledger.sessions("a", 10), [])
  })
)

it.scoped("FI-65: many files of a folder are kept and forgotten in one go", () =>
  Effect.gen(function* () {
    const ledger = yield* open(yield* temporaryFolder)
    const names = Array.from({ length: 500 }, (_, n) => `f${n}`)
    yield* ledger.keep("x", new Map(names.map((name) => [name, file])))
    assert.strictEqual((yield* ledger.files("x")).size, 500)
    yield* ledger.keep("x", new Map(names.slice(1).map((name) => [name, undefined])))
    assert.deepStrictEqual([...(yield* ledger.files("x")).keys()], ["f0"])
  })
)

it.scoped("FI-66: a root that is taken is busy for a second, at once, and free when the first has closed", () =>
  Effect.gen(function* () {
    const root = yield* temporaryFolder
    yield* Effect.scoped(
      Effect.gen(function* () {
        yield* open(root)
        const refused = yield* Effect.flip(Effect.scoped(open(root)))
        assert.strictEqual(refused._tag, "RootBusy")
        assert.include(refused.message, root)
      })
    )
    yield* open(root)
  })
)

for (const [what, damage] of [
  ["is no database", (path: string) => writeFileSync(path, "x".repeat(5_000))],
  [
    "was damaged",
    (path: string) => {
      const bytes = readFileSync(path)
      writeFileSync(path, bytes.fill(7, 100))
    }
  ],
  [
    "is of another version",
    (path: string) => {
      const bytes = readFileSync(path)
      bytes.writeUInt32BE(99, 60)
      writeFileSync(path, bytes)
    }
  ]
] as const) {
  it.scoped(`FI-68: a record that ${what} is kept aside as it is, and a new one begins`, () =>
    Effect.gen(function* () {
      const root = yield* temporaryFolder
      const path = join(root, LedgerFile.ownFolder(processUid), "ledger.sqlite")
      yield* Effect.scoped(Effect.flatMap(open(root), (ledger) => ledger.keep("home/a", new Map(), record("a"))))
      damage(path)
      const theirs = readFileSync(path)
      const ledger = yield* open(root)
      assert.isUndefined(yield* ledger.session("a"))
      assert.isTrue(readFileSync(`${path}.aside.1`).equals(theirs))
    })
  )
}

it.scoped("FI-61: a link in place of the record or of its folder is refused, and not followed", () =>
  Effect.gen(function* () {
    const [root, outside] = [yield* temporaryFolder, yield* temporaryFolder]
    const own = join(root, LedgerFile.ownFolder(processUid))
    mkdirSync(own, { recursive: true })
    symlinkSync(join(outside, "ledger.sqlite"), join(own, "ledger.sqlite"))
    const refused = yield* Effect.flip(Effect.scoped(open(root)))
    assert.strictEqual(refused._tag, "RootUnusable")
    assert.include(refused.message, "symbolic link")
    assert.isFalse(existsSync(join(outside, "ledger.sqlite")))
  })
)

it.scoped("ST-39: an opened record has no copies of deleted rows in unused bytes of its pages", () =>
  Effect.gen(function* () {
    const root = yield* temporaryFolder
    const { filename } = yield* Effect.scoped(LedgerFile.open(SafeFiles.make({ root }), modesOf()))
    const db = new Sqlite(filename)
    leaveCopies(db)
    db.close()
    assert.isNotEmpty(tracesIn(root, secret))
    yield* open(root)
    assert.deepStrictEqual(tracesIn(root, secret), {})
  })
)
