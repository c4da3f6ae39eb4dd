/**
 * What is left of removed sessions. Method: sessions with answers, pictures and indexes are exported and removed, with the
 * record of the exporter intact, lost or set back, after kills and failures, and among files of others. What must hold: the
 * tree is that of a fresh export, but for what others put there, which is untouched.
 */
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Chunk, Effect, Layer, Queue, Stream } from "effect"
import * as LedgerFile from "../../packages/files/src/record/LedgerFile.ts"
import { verify } from "../../packages/files/src/verify/Verify.ts"
import type { SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { draft } from "../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import * as SqlSessionStore from "../../packages/log/src/store/SqlSessionStore.ts"
import { memoryLog, temporaryFolder } from "../support/Database.ts"
import { tracesIn } from "../log/support/Traces.ts"
import { begin, renamed, session } from "../support/Logs.ts"
import { exportAll, exporterAt, tree } from "./support/Exports.ts"
import { told } from "./support/Told.ts"

const uid = 7
const store = SqlSessionStore.layer.pipe(Layer.provideMerge(memoryLog))
const houseOf = (agent: string) => `home/${uid}/agent/${agent}/session`

/** A session at an address of its own, with a run and a picture. */
const make = Effect.fnUntraced(function* (id: SessionID, agent: string, name: string) {
  const log = yield* EventLog
  const address = { scope: "private", uid, kind: "agent", name: agent, session: name } as const
  yield* log.append(id, [
    draft("session.created", { location: { directory: "/SECRET" }, title: "SECRET" }),
    draft("session.next.addressed", { address }),
    ...told(`SECRET of ${id}`, id)
  ])
})

/** Exports, and gives what was reported. */
const findings = (root: string) =>
  Effect.gen(function* () {
    const exporter = yield* exporterAt({ root, uid })
    const queue = yield* exporter.findings
    yield* exporter.catchUp
    return Chunk.toReadonlyArray(yield* Queue.takeAll(queue)).map(({ kind, path }) => `${kind} ${path}`)
  }).pipe(Effect.scoped)

const verified = (root: string) =>
  Effect.map(Stream.runCollect(verify({ root, uid })), (found) =>
    Chunk.toReadonlyArray(found).map(({ kind, path }) => `${kind} ${path}`)
  )

const fresh = Effect.fnUntraced(function* (root: string) {
  yield* exportAll({ root: `${root}-fresh`, uid })
  const found = tree(`${root}-fresh`)
  rmSync(`${root}-fresh`, { recursive: true })
  return found
})

const loseRecord = (root: string) => rmSync(join(root, LedgerFile.recordsFolder), { recursive: true })

const newRoot = Effect.map(temporaryFolder, (folder) => join(folder, "ctx"))

const [gone, alone, stays] = [session("gone"), session("alone"), session("stays")]
const goneFolder = `${houseOf("coder")}/gone`

/** Three sessions in one house and one in another, exported; one of each house is removed, and the record is lost. */
const removedWithoutRecord = Effect.gen(function* () {
  const log = yield* EventLog
  const root = yield* newRoot
  yield* make(gone, "coder", "gone")
  yield* make(stays, "coder", "stays")
  yield* make(session("calm"), "coder", "calm")
  yield* make(alone, "writer", "default")
  yield* exportAll({ root, uid })
  for (const id of [gone, alone]) yield* log.remove(id)
  loseRecord(root)
  return root
})

it.scoped(
  "ST-39: a removed session leaves no byte of its text below the root, the record of an open exporter included",
  () =>
    Effect.gen(function* () {
      const log = yield* EventLog
      const root = yield* newRoot
      const exporter = yield* exporterAt({ root, uid })
      yield* make(stays, "coder", "stays")
      for (let n = 0; n < 3; n++) {
        yield* make(session(`gone${n}`), "coder", `gone${n}`)
        yield* exporter.catchUp
      }
      for (let n = 0; n < 3; n++) {
        assert.isNotEmpty(tracesIn(root, `SECRET of ses_gone${n}`))
        yield* log.remove(session(`gone${n}`))
      }
      yield* exporter.catchUp
      for (let n = 0; n < 3; n++) assert.deepStrictEqual(tracesIn(root, `SECRET of ses_gone${n}`), {})
      assert.isNotEmpty(tracesIn(root, `SECRET of ${stays}`))
    }).pipe(Effect.provide(store))
)

it.scoped("FI-97: sessions that were removed while the record was lost leave no byte, and nothing is reported", () =>
  Effect.gen(function* () {
    const root = yield* removedWithoutRecord
    assert.deepStrictEqual(yield* findings(root), [])
    assert.deepStrictEqual(tree(root), yield* fresh(root))
    assert.deepStrictEqual(yield* verified(root), [])
  }).pipe(Effect.provide(store))
)

it.scoped("FI-97: sessions that were made and removed after the record was copied leave no byte", () =>
  Effect.gen(function* () {
    const log = yield* EventLog
    const root = yield* newRoot
    yield* make(stays, "coder", "stays")
    yield* exportAll({ root, uid })
    cpSync(join(root, LedgerFile.recordsFolder), `${root}-records`, { recursive: true })
    yield* make(gone, "coder", "gone")
    yield* make(alone, "writer", "default")
    yield* exportAll({ root, uid })
    for (const id of [gone, alone]) yield* log.remove(id)
    loseRecord(root)
    cpSync(`${root}-records`, join(root, LedgerFile.recordsFolder), { recursive: true })
    assert.deepStrictEqual(yield* findings(root), [])
    assert.deepStrictEqual(tree(root), yield* fresh(root))
  }).pipe(Effect.provide(store))
)

it.scoped("FI-97, FI-83: the export of one session removes them too, and leaves the index whole", () =>
  Effect.gen(function* () {
    const root = yield* removedWithoutRecord
    const exporter = yield* exporterAt({ root, uid })
    const found = yield* exporter.findings
    yield* exporter.exportSession(stays)
    assert.deepStrictEqual(tree(root), yield* fresh(root))
    assert.strictEqual(yield* Queue.size(found), 0)
  }).pipe(Effect.provide(store))
)

it.scoped("FI-97: whichever file operation of it fails, the next export leaves no byte of them", () =>
  Effect.gen(function* () {
    const root = yield* removedWithoutRecord
    const expected = yield* fresh(root)
    let failures = 0
    for (let n = 0; n < 20; n++) {
      const copy = `${root}-${n}`
      cpSync(root, copy, { recursive: true, preserveTimestamps: true })
      let left = 20 * n
      const before = () => {
        if (left-- === 0) throw Object.assign(new Error("fault"), { code: "EIO" })
      }
      const failed = yield* Effect.either(exportAll({ root: copy, uid, before }))
      if (failed._tag === "Left") failures += 1
      yield* exportAll({ root: copy, uid })
      assert.deepStrictEqual(tree(copy), expected, `fault at ${20 * n}`)
      rmSync(copy, { recursive: true })
    }
    assert.isAbove(failures, 10)
  }).pipe(Effect.provide(store))
)

it.scoped("FI-97: what others put into the folder of such a session stays, and so does what a link leads to", () =>
  Effect.gen(function* () {
    const root = yield* removedWithoutRecord
    const outside = yield* temporaryFolder
    writeFileSync(join(outside, "state"), "theirs")
    const at = (name: string) => join(root, goneFolder, name)
    writeFileSync(at("notes.txt"), "theirs")
    writeFileSync(at("context/mine"), "theirs")
    writeFileSync(at("context/dedup/blob/sha256-short"), "theirs")
    writeFileSync(at("state.aside.1"), "theirs")
    for (const name of ["state", "updated_at"]) rmSync(at(name))
    symlinkSync(join(outside, "state"), at("state"))
    mkdirSync(at("updated_at"))
    rmSync(at("context/swap"), { recursive: true, force: true })
    symlinkSync(outside, at("context/swap"))
    yield* exportAll({ root, uid })
    const left = Object.entries(tree(root)).filter(([path]) => path.startsWith(`${goneFolder}/`))
    assert.deepStrictEqual(
      left.filter(([, content]) => !content.startsWith("folder")).map(([path]) => path.slice(goneFolder.length + 1)),
      ["context/dedup/blob/sha256-short", "context/mine", "context/swap", "notes.txt", "state", "state.aside.1"]
    )
    assert.isTrue(statSync(at("updated_at")).isDirectory())
    assert.deepStrictEqual(readFileSync(join(outside, "state"), "utf8"), "theirs")
    assert.notInclude(JSON.stringify(left), "SECRET")
    assert.include(yield* verified(root), `foreign ${goneFolder}`)
  }).pipe(Effect.provide(store))
)

it.scoped("FI-97: a file that was being written goes with the folder", () =>
  Effect.gen(function* () {
    const root = yield* removedWithoutRecord
    rmSync(join(root, goneFolder, "context/dedup"), { recursive: true })
    mkdirSync(join(root, goneFolder, "context/dedup/blob"), { recursive: true })
    for (const name of [".messages.jsonl.tmp", `context/dedup/blob/.sha256-${"a".repeat(64)}.tmp`]) {
      writeFileSync(join(root, goneFolder, name), "SECRET")
    }
    yield* exportAll({ root, uid })
    assert.deepStrictEqual(tree(root), yield* fresh(root))
  }).pipe(Effect.provide(store))
)

/** What makes of the folder of a removed session one that Daybook does not know as such. */
const claims: ReadonlyArray<readonly [string, (folder: string, root: string) => void]> = [
  ["is a copy under another name", (folder) => renameSync(folder, `${folder}-copy`)],
  ["has no metadata", (folder) => rmSync(join(folder, "meta.json"))],
  ["has metadata that is no JSON", (folder) => writeFileSync(join(folder, "meta.json"), "{")],
  [
    "has metadata behind a link",
    (folder, root) => {
      renameSync(join(folder, "meta.json"), `${root}.meta.json`)
      symlinkSync(`${root}.meta.json`, join(folder, "meta.json"))
    }
  ],
  ...(
    [
      ["names a session that the log never had", { session_id: "ses_never" }],
      ["names a session that the log still has", { session_id: stays }],
      ["names no session", { session_id: "../gone" }],
      ["names another address", { name: "writer" }],
      ["names an address that leads out", { name: "../agent/coder" }],
      ["is of another version", { version: 2 }]
    ] as const
  ).map(
    ([what, change]) =>
      [
        what,
        (folder: string) => {
          const path = join(folder, "meta.json")
          writeFileSync(path, JSON.stringify({ ...JSON.parse(readFileSync(path, "utf8")), ...change }))
        }
      ] as const
  )
]

it.scoped("FI-97, FI-88: a folder that is not that of a removed session by its metadata and its place is left", () =>
  Effect.gen(function* () {
    const root = yield* removedWithoutRecord
    for (const [n, [what, change]] of claims.entries()) {
      const copy = `${root}-${n}`
      cpSync(root, copy, { recursive: true })
      change(join(copy, goneFolder), copy)
      const theirs = () =>
        Object.entries(tree(copy)).filter(([path]) => path.startsWith(goneFolder) && !path.includes(".aside."))
      const before = theirs()
      assert.isAbove(before.length, 5)
      yield* exportAll({ root: copy, uid })
      assert.deepStrictEqual(theirs(), before, what)
      assert.isTrue(
        (yield* verified(copy)).some((found) => found.startsWith(`foreign ${goneFolder}`)),
        what
      )
    }
  }).pipe(Effect.provide(store))
)

it.scoped("FI-97: the export of one session leaves the folder of another that was removed and made again", () =>
  Effect.gen(function* () {
    const root = yield* newRoot
    yield* make(stays, "coder", "stays")
    yield* make(gone, "coder", "gone")
    yield* (yield* EventLog).remove(gone)
    yield* make(gone, "coder", "gone")
    yield* exportAll({ root, uid })
    const before = tree(root)
    const file = () => statSync(join(root, goneFolder, "events.jsonl")).ino
    const written = file()
    loseRecord(root)
    yield* (yield* exporterAt({ root, uid })).exportSession(stays)
    assert.deepStrictEqual(tree(root), before)
    assert.strictEqual(file(), written)
  }).pipe(Effect.provide(store))
)

it.scoped("FI-97: a tree of another store is left as it is", () =>
  Effect.gen(function* () {
    const root = yield* removedWithoutRecord
    const before = tree(root)
    yield* Effect.provide(exportAll({ root, uid }), Layer.fresh(store))
    assert.deepStrictEqual(tree(root), before)
  }).pipe(Effect.provide(store))
)

it.scoped("FI-82: a link in place of a removed session's file is left and reported, and all its other files go", () =>
  Effect.gen(function* () {
    const log = yield* EventLog
    const [root, outside] = [yield* newRoot, yield* temporaryFolder]
    for (const [id, name] of [
      [gone, "context"],
      [alone, "created_at"]
    ] as const) {
      yield* make(id, "coder", "default")
      yield* exportAll({ root, uid })
      const folder = `${houseOf("coder")}/default`
      const at = join(root, folder, name)
      rmSync(at, { recursive: true })
      symlinkSync(outside, at)
      yield* log.remove(id)
      const reported = yield* findings(root)
      assert.isAbove(reported.length, 0)
      assert.isTrue(
        reported.every((finding) => finding.startsWith(`refused ${folder}/${name}`)),
        reported.join()
      )
      const left = Object.keys(tree(root)).filter((path) => path.startsWith(`${folder}/`))
      assert.deepStrictEqual(left, [`${folder}/${name}`])
      rmSync(at)
      rmSync(join(root, "home"), { recursive: true })
    }
    assert.deepStrictEqual(tree(outside), {})
  }).pipe(Effect.provide(store))
)

it.scoped("FI-82: a session that was removed while its folder was away is removed when the folder is back", () =>
  Effect.gen(function* () {
    const log = yield* EventLog
    const root = yield* newRoot
    yield* make(gone, "coder", "gone")
    yield* make(stays, "writer", "stays")
    yield* exportAll({ root, uid })
    const folder = join(root, goneFolder)
    renameSync(folder, `${root}.away`)
    symlinkSync(`${root}.away`, folder)
    yield* log.remove(gone)
    assert.deepStrictEqual(yield* findings(root), [`refused ${goneFolder}`])
    assert.isTrue(existsSync(join(`${root}.away`, "meta.json")))
    rmSync(folder)
    renameSync(`${root}.away`, folder)
    yield* exportAll({ root, uid })
    assert.deepStrictEqual(tree(root), yield* fresh(root))
  }).pipe(Effect.provide(store))
)

it.scoped("FI-80, FI-82: an index whose removal fails is removed by the next export, in this process or another", () =>
  Effect.gen(function* () {
    const log = yield* EventLog
    const root = yield* newRoot
    const index = `${houseOf("coder")}/index`
    for (const again of ["this", "another"]) {
      yield* make(gone, "coder", "gone")
      yield* exportAll({ root, uid })
      yield* log.remove(gone)
      let broken = true
      const before = (operation: string, path: string) => {
        if (broken && operation === "remove" && path.startsWith(index)) {
          throw Object.assign(new Error("fault"), { code: "EIO" })
        }
      }
      yield* Effect.scoped(
        Effect.gen(function* () {
          const exporter = yield* exporterAt({ root, uid, before })
          assert.strictEqual((yield* Effect.flip(exporter.catchUp))._tag, "FileFailed")
          broken = false
          if (again === "this") yield* exporter.catchUp
        })
      )
      if (again === "another") yield* exportAll({ root, uid })
      assert.deepStrictEqual(tree(root), {}, again)
    }
  }).pipe(Effect.provide(store))
)

it.scoped(
  "FI-71, FI-72: an empty log is remembered: gone or written to by others it is reported, else it is not touched",
  () =>
    Effect.gen(function* () {
      const root = yield* newRoot
      const id = session("quiet")
      yield* begin(id)
      const path = `${houseOf("build")}/${id}/messages.jsonl`
      const stamp = () => statSync(join(root, path), { bigint: true }).ctimeNs
      yield* exportAll({ root, uid })
      const [before, first] = [tree(root), stamp()]
      assert.strictEqual(statSync(join(root, path)).size, 0)
      const log = yield* EventLog
      yield* log.append(id, [renamed("title 1")])
      assert.strictEqual((yield* exportAll({ root, uid })).sessions, 1)
      assert.strictEqual((yield* exportAll({ root, uid })).sessions, 0)
      assert.strictEqual(stamp(), first)
      rmSync(join(root, path))
      assert.deepStrictEqual(yield* findings(root), [`missing ${path}`])
      assert.strictEqual(tree(root)[path], before[path])
      assert.deepStrictEqual(yield* findings(root), [])
      appendFileSync(join(root, path), "theirs\n")
      assert.deepStrictEqual(yield* findings(root), [`changed ${path}`])
      assert.strictEqual(readFileSync(join(root, `${path}.aside.1`), "utf8"), "theirs\n")
      assert.deepStrictEqual(yield* findings(root), [])
    }).pipe(Effect.provide(store))
)

it.scoped(
  "FI-82: a session that fails between its two logs, and is removed before the next export, leaves nothing",
  () =>
    Effect.gen(function* () {
      const log = yield* EventLog
      const root = yield* newRoot
      yield* make(gone, "coder", "gone")
      const before = (operation: string, path: string) => {
        if (operation === "open" && path.endsWith("/events.jsonl")) {
          throw Object.assign(new Error("fault"), { code: "EIO" })
        }
      }
      assert.strictEqual((yield* Effect.flip(exportAll({ root, uid, before })))._tag, "FileFailed")
      assert.isAbove(statSync(join(root, goneFolder, "messages.jsonl")).size, 0)
      yield* log.remove(gone)
      yield* exportAll({ root, uid })
      assert.deepStrictEqual(tree(root), {})
    }).pipe(Effect.provide(store))
)

it.scoped(
  "FI-82: a removed session's files that others changed are kept aside and reported, and no other is left",
  () =>
    Effect.gen(function* () {
      const log = yield* EventLog
      const root = yield* newRoot
      yield* make(gone, "coder", "gone")
      yield* exportAll({ root, uid })
      const names = ["events.jsonl", "state"]
      const at = (name: string) => join(root, goneFolder, name)
      for (const name of names) writeFileSync(at(name), "theirs")
      yield* log.remove(gone)
      assert.deepStrictEqual(
        (yield* findings(root)).toSorted(),
        names.map((name) => `changed ${goneFolder}/${name}`)
      )
      const left = Object.entries(tree(root)).filter(([, content]) => !content.startsWith("folder"))
      assert.deepStrictEqual(
        left,
        names.map((name) => [`${goneFolder}/${name}.aside.1`, "600 theirs"])
      )
      assert.deepStrictEqual(yield* verified(root), [])
    }).pipe(Effect.provide(store))
)

it.scoped(
  "FI-82: a session that is removed after an export of it failed anywhere leaves no byte, and nothing is reported",
  () =>
    Effect.gen(function* () {
      const log = yield* EventLog
      const root = yield* newRoot
      let failures = 0
      for (let n = 0; n < 30; n++) {
        const id = session(`fails${n}`)
        yield* make(id, "coder", "default")
        yield* exportAll({ root, uid })
        yield* log.append(id, [renamed("SECRET"), ...told("SECRET, again", `${id}-2`)])
        let left = Number.POSITIVE_INFINITY
        const before = () => {
          if (left-- <= 0) throw Object.assign(new Error("killed"), { code: "EIO" })
        }
        yield* Effect.scoped(
          Effect.gen(function* () {
            const exporter = yield* exporterAt({ root, uid, before })
            left = 5 * n
            // Every later operation fails too, as after a kill.
            if ((yield* Effect.either(exporter.catchUp))._tag === "Left") failures += 1
          })
        )
        yield* log.remove(id)
        assert.deepStrictEqual(yield* findings(root), [], `killed at ${5 * n}`)
        assert.deepStrictEqual(tree(root), {}, `killed at ${5 * n}`)
      }
      assert.isAbove(failures, 20)
    }).pipe(Effect.provide(store))
)

it.scoped(
  "FI-82: a session that is made again at its address is written as a new one, without a word on the files before",
  () =>
    Effect.gen(function* () {
      const log = yield* EventLog
      const root = yield* newRoot
      const exporter = yield* exporterAt({ root, uid })
      const found = yield* exporter.findings
      for (const words of ["first", "second"]) {
        yield* make(session(words), "coder", "default")
        yield* exporter.catchUp
        assert.include(readFileSync(join(root, houseOf("coder"), "default/meta.json"), "utf8"), `ses_${words}`)
        assert.deepStrictEqual(tree(root), yield* fresh(root))
        yield* log.remove(session(words))
        yield* exporter.catchUp
        assert.deepStrictEqual(tree(root), {})
      }
      assert.strictEqual(yield* Queue.size(found), 0)
    }).pipe(Effect.provide(store))
)

it.scoped("FI-82: of removals that fill more than a page none is passed over", () =>
  Effect.gen(function* () {
    const log = yield* EventLog
    const root = yield* newRoot
    yield* make(gone, "coder", "gone")
    yield* exportAll({ root, uid })
    for (let n = 0; n < 512; n++) {
      yield* begin(session(`brief${n}`))
      yield* log.remove(session(`brief${n}`))
    }
    yield* log.remove(gone)
    const exporter = yield* exporterAt({ root, uid })
    yield* exporter.catchUp
    assert.deepStrictEqual(tree(root), {})
  }).pipe(Effect.provide(store))
)
