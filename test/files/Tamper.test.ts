/**
 * Other hands on the files. Method: a real conversation is exported; one file at a time is edited, cut, added to, given
 * other permissions, deleted or replaced by a link; the exporter starts again, or goes on. What must hold: the tree is
 * what a fresh export makes, what was changed lies aside as it was, it was reported with its path, and nothing was
 * followed.
 */
import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Chunk, Context, Effect, Layer, Queue, Stream } from "effect"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import { processUid } from "../../packages/files/src/disk/FileCalls.ts"
import * as SafeFiles from "../../packages/files/src/disk/SafeFiles.ts"
import * as Ledger from "../../packages/files/src/record/Ledger.ts"
import * as LedgerFile from "../../packages/files/src/record/LedgerFile.ts"
import { verify } from "../../packages/files/src/verify/Verify.ts"
import { runtime, temporaryFolder } from "../support/Harness.ts"
import * as ScriptedModel from "../support/ScriptedModel.ts"
import { exportAll, exporterAt, tree } from "./support/Exports.ts"

/** One pixel. */
const picture =
  "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
const uid = 7

class Exported extends Context.Tag("test/Exported")<
  Exported,
  {
    readonly sessionID: string
    readonly house: string
    readonly folder: string
    readonly fresh: Record<string, string>
  }
>() {}

/** A conversation with a picture, and its files. */
const conversation = Effect.gen(function* () {
  const [sessions, model] = [yield* Sessions, yield* ScriptedModel.ScriptedModel]
  const { id } = yield* sessions.create({ location: { directory: tmpdir() } })
  yield* model.answer(ScriptedModel.says("It is a picture."))
  const prompt = { text: "What is this?", files: [{ uri: picture, mime: "image/png", name: "p.png" }] }
  yield* sessions.prompt({ sessionID: id, prompt })
  yield* sessions.wait(id)
  const root = yield* temporaryFolder
  yield* exportAll({ root, uid })
  const house = "home/7/agent/build/session"
  return { sessionID: id, house, folder: `${house}/${id}`, fresh: tree(root) }
})

const layer = Layer.scoped(Exported, conversation).pipe(Layer.provideMerge(runtime()))

/** An exported root to lay hands on. */
const exported = Effect.gen(function* () {
  const root = yield* temporaryFolder
  yield* exportAll({ root, uid })
  return root
})

const found = (root: string) => Effect.map(Stream.runCollect(verify({ root, uid })), Chunk.toReadonlyArray)

/** What is reported while something is done. */
const reported = (root: string) =>
  Effect.scoped(
    Effect.gen(function* () {
      const exporter = yield* exporterAt({ root, uid })
      const findings = yield* exporter.findings
      yield* exporter.catchUp
      return Chunk.toReadonlyArray(yield* Queue.takeAll(findings))
    })
  )

/** Changes that leave a file which is not ours. */
const edits: Record<string, (path: string) => void> = {
  edited: (path) => writeFileSync(path, `edited ${readFileSync(path, "latin1")}`),
  "cut off": (path) => truncateSync(path, 1),
  "added to": (path) => appendFileSync(path, '{"role":"user"'),
  emptied: (path) => truncateSync(path, 0),
  "replaced by rename": (path) => {
    writeFileSync(`${path}.theirs`, "theirs\n")
    renameSync(`${path}.theirs`, path)
  }
}

const shape = (path: string) =>
  path
    .replace(/ses_\w+/, "<session>")
    .replace(/by-cwd\/\w+/, "by-cwd/<hash>")
    .replace(/sha256-[0-9a-f]+/, "<blob>")

it.layer(layer)("files of a conversation", (it) => {
  const files = Effect.map(Exported, ({ fresh }) =>
    Object.keys(fresh).filter((path) => fresh[path]?.startsWith("folder") === false)
  )

  it.scoped("every file of the layout is there to lay hands on", () =>
    Effect.gen(function* () {
      const names = new Set((yield* files).map((path) => shape(path.slice("home/7/agent/build/session/".length))))
      for (const name of [
        "messages.jsonl",
        "events.jsonl",
        "latest.md",
        "state",
        "cwd",
        "meta.json",
        "context/pack.json"
      ]) {
        assert.isTrue(names.has(`<session>/${name}`), name)
      }
      for (const name of ["index/list", "index/current", "index/by-cwd/<hash>"]) assert.isTrue(names.has(name), name)
      assert.isTrue(names.has("<session>/context/dedup/blob/<blob>"))
      const { folder, fresh } = yield* Exported
      // Of the picture too, which a line names.
      assert.match(fresh[`${folder}/messages.jsonl`] ?? "", /"blob":"sha256-/)
    })
  )

  for (const [how, edit] of Object.entries(edits)) {
    it.scoped(`FI-72: a file that was ${how} is reported, kept aside as it is, and written again`, () =>
      Effect.gen(function* () {
        const { fresh } = yield* Exported
        const root = yield* exported
        const paths = yield* files
        for (const path of paths) edit(join(root, path))
        const theirs = paths.map((path) => readFileSync(join(root, path), "latin1"))
        const findings = yield* reported(root)
        assert.deepStrictEqual(
          findings.map(({ aside, kind, path }) => `${kind} ${path} ${aside}`).toSorted(),
          paths.map((path) => `changed ${path} ${path}.aside.1`).toSorted()
        )
        assert.deepStrictEqual(
          paths.map((path) => readFileSync(join(root, `${path}.aside.1`), "latin1")),
          theirs
        )
        assert.deepStrictEqual(tree(root, { asides: false }), fresh)
        assert.deepStrictEqual(yield* found(root), [])
      })
    )
  }

  it.scoped("FI-114, FI-87: a verification finds one changed file by its path, and a line without an end as such", () =>
    Effect.gen(function* () {
      const root = yield* exported
      for (const path of yield* files) {
        const file = join(root, path)
        const ours = readFileSync(file)
        appendFileSync(file, "theirs")
        const kind = path.endsWith("messages.jsonl") || path.endsWith("events.jsonl") ? "torn" : "changed"
        assert.deepStrictEqual(
          (yield* found(root)).map(({ kind, path }) => ({ kind, path })),
          [{ kind, path }]
        )
        writeFileSync(file, ours)
      }
      assert.deepStrictEqual(yield* found(root), [])
    })
  )

  it.scoped("FI-72: a second file of other hands is kept beside the first", () =>
    Effect.gen(function* () {
      const { folder, fresh } = yield* Exported
      const root = yield* exported
      for (const n of [1, 2, 3]) {
        writeFileSync(join(root, folder, "state"), `${n}`)
        yield* exportAll({ root, uid })
        assert.strictEqual(readFileSync(join(root, folder, `state.aside.${n}`), "utf8"), `${n}`)
      }
      assert.deepStrictEqual(tree(root, { asides: false }), fresh)
    })
  )

  it.scoped("FI-71: a deleted file comes back as it was and is reported, and so do its permissions", () =>
    Effect.gen(function* () {
      const { fresh } = yield* Exported
      const root = yield* exported
      for (const path of yield* files) {
        rmSync(join(root, path))
        assert.deepStrictEqual(
          (yield* found(root)).map(({ kind, path }) => ({ kind, path })),
          [{ kind: "missing", path }]
        )
        assert.deepStrictEqual(
          (yield* reported(root)).map(({ kind, path }) => ({ kind, path })),
          [{ kind: "missing", path }]
        )
        assert.deepStrictEqual(tree(root), fresh, path)
        chmodSync(join(root, path), 0o666)
        assert.deepStrictEqual(
          (yield* found(root)).map(({ kind, path }) => ({ kind, path })),
          [{ kind: "mode", path }]
        )
        assert.deepStrictEqual(
          (yield* reported(root)).map(({ kind, path }) => ({ kind, path })),
          [{ kind: "mode", path }]
        )
        assert.deepStrictEqual(tree(root), fresh, path)
      }
    })
  )

  it.scoped("IX-4, PK-1, FL-8: a deleted index, context, session, house or tree comes back byte for byte", () =>
    Effect.gen(function* () {
      const { folder, fresh, house } = yield* Exported
      const root = yield* exported
      for (const path of [`${house}/index`, `${house}/index/by-cwd`, `${folder}/context`, folder, house, "home"]) {
        rmSync(join(root, path), { recursive: true })
        yield* exportAll({ root, uid })
        assert.deepStrictEqual(tree(root), fresh, path)
      }
      rmSync(root, { recursive: true })
      yield* exportAll({ root, uid })
      assert.deepStrictEqual(tree(root), fresh)
    })
  )

  it.scoped(
    "FI-68: with its record gone, damaged or of another version, the files are compared and left as they are",
    () =>
      Effect.gen(function* () {
        const { fresh } = yield* Exported
        const root = yield* exported
        const ledger = join(root, LedgerFile.ownFolder(processUid), "ledger.sqlite")
        rmSync(join(root, LedgerFile.recordsFolder), { recursive: true })
        yield* exportAll({ root, uid })
        assert.deepStrictEqual(tree(root), fresh)
        writeFileSync(ledger, "no database at all, but long enough to be taken for one".repeat(100))
        yield* exportAll({ root, uid })
        assert.deepStrictEqual(tree(root), fresh)
        assert.isTrue(existsSync(`${ledger}.aside.1`))
        assert.strictEqual((yield* exportAll({ root, uid })).sessions, 0)
      })
  )

  it.scoped(
    "SC-3: a link in place of a file is refused by name and not followed; the file is back when it is gone",
    () =>
      Effect.gen(function* () {
        const { fresh, sessionID } = yield* Exported
        const root = yield* exported
        const target = join(yield* temporaryFolder, "target")
        writeFileSync(target, "theirs")
        for (const path of yield* files) {
          const file = join(root, path)
          rmSync(file)
          symlinkSync(target, file)
          const seen = (yield* found(root)).filter(({ path: at }) => at === path)
          assert.deepStrictEqual(
            seen.map(({ kind }) => kind),
            ["refused"],
            path
          )
          const findings = yield* reported(root)
          assert.deepStrictEqual(
            findings.map(({ kind, path }) => ({ kind, path })),
            [{ kind: "refused", path }]
          )
          assert.isTrue(tree(root)[path]?.startsWith("link "))
          assert.strictEqual(readFileSync(target, "utf8"), "theirs")
          rmSync(file)
          yield* exportAll({ root, uid })
          assert.deepStrictEqual(tree(root), fresh, `${path} of ${sessionID}`)
        }
      })
  )

  it.scoped("SC-3: a link or a file in place of a folder is refused, and nothing is written through it", () =>
    Effect.gen(function* () {
      const { folder, fresh, house } = yield* Exported
      const root = yield* exported
      const target = yield* temporaryFolder
      for (const path of ["home", house, folder, `${folder}/context`, `${house}/index`, `${house}/index/by-cwd`]) {
        for (const put of [(at: string) => symlinkSync(target, at), (at: string) => writeFileSync(at, "theirs")]) {
          const at = join(root, path)
          renameSync(at, `${root}.away`)
          put(at)
          const findings = yield* reported(root)
          assert.isTrue(
            findings.length > 0 && findings.every(({ kind, path: at }) => kind === "refused" && at === path),
            path
          )
          assert.deepStrictEqual(tree(target), {})
          rmSync(at)
          renameSync(`${root}.away`, at)
          yield* exportAll({ root, uid })
          assert.deepStrictEqual(tree(root), fresh, path)
        }
      }
    })
  )

  it.scoped("FI-88: what is not Daybook's is found and left alone", () =>
    Effect.gen(function* () {
      const { folder, fresh, house } = yield* Exported
      const root = yield* exported
      const foreign = [`${folder}/notes.txt`, `${folder}/context/mine`, `${house}/index/extra`, `${house}/other`]
      for (const path of foreign) mkdirSync(join(root, path))
      assert.deepStrictEqual(
        (yield* found(root)).map(({ kind, path }) => `${kind} ${path}`).toSorted(),
        foreign.map((path) => `foreign ${path}`).toSorted()
      )
      yield* exportAll({ root, uid })
      for (const path of foreign) rmSync(join(root, path), { recursive: true })
      assert.deepStrictEqual(tree(root), fresh)
    })
  )

  /** Gives the record the stamps of the folder's files as they are now; `sums`: and their contents. */
  const recordEdits = (root: string, folder: string, { sums }: { readonly sums: boolean }) =>
    Effect.gen(function* () {
      const files = SafeFiles.make({ root })
      const ledger = yield* Ledger.make(files)
      const records = yield* Effect.forEach(
        yield* ledger.files(folder),
        Effect.fnUntraced(function* ([name, record]) {
          const path = `${folder}/${name}`
          const stamp = (yield* files.stamp(path))?.text ?? ""
          return [name, { ...record, ...(sums ? yield* files.sum(path) : {}), stamp }] as const
        })
      )
      yield* ledger.keep(folder, new Map(records))
    }).pipe(Effect.scoped)

  /** Writes over the beginning of the session's files and of its index, so that the record does not show it. */
  const editUnseen = Effect.fnUntraced(function* (
    root: string,
    options: { readonly sums: boolean; readonly only?: string }
  ) {
    const { folder, house } = yield* Exported
    // An index is made of what the record knows: contents that are recorded otherwise are replaced at once.
    const folders = options.sums ? [folder] : [folder, `${house}/index`]
    const paths = (yield* files).filter((path) => folders.some((at) => path.startsWith(`${at}/${options.only ?? ""}`)))
    for (const path of paths) writeFileSync(join(root, path), "x", { flag: "r+" })
    for (const at of folders) yield* recordEdits(root, at, options)
    const edited = tree(root)
    assert.deepStrictEqual(yield* reported(root), [])
    assert.deepStrictEqual(tree(root), edited)
    return paths
  })

  const rebuilt = (root: string, sessionID?: string) =>
    Effect.scoped(Effect.flatMap(exporterAt({ root, uid }), (exporter) => exporter.rebuild(sessionID)))

  it.scoped("FI-89: a rebuild replaces what Daybook wrote otherwise before, and keeps nothing of it aside", () =>
    Effect.gen(function* () {
      const { fresh } = yield* Exported
      const root = yield* exported
      yield* editUnseen(root, { sums: true, only: "context/pack" })
      yield* rebuilt(root)
      assert.deepStrictEqual(tree(root), fresh)
      yield* editUnseen(root, { sums: true })
      yield* rebuilt(root)
      assert.deepStrictEqual(tree(root, { asides: false }), fresh)
      // Daybook never wrote bytes under the hash of others.
      const asides = Object.keys(tree(root)).filter((path) => path.includes(".aside."))
      assert.deepStrictEqual(asides.map(shape), [
        "home/7/agent/build/session/<session>/context/dedup/blob/<blob>.aside.1"
      ])
    })
  )

  for (const [what, one] of [
    ["of one session", true],
    ["of all", false]
  ] as const) {
    it.scoped(`FI-89: a rebuild ${what} compares every byte, where an edit hides behind its stamp too`, () =>
      Effect.gen(function* () {
        const { fresh, sessionID } = yield* Exported
        const root = yield* exported
        const paths = yield* editUnseen(root, { sums: false })
        yield* rebuilt(root, one ? sessionID : undefined)
        assert.deepStrictEqual(tree(root, { asides: false }), fresh)
        for (const path of paths) assert.isTrue(existsSync(join(root, `${path}.aside.1`)), path)
        assert.deepStrictEqual(yield* found(root), [])
      })
    )
  }
})
