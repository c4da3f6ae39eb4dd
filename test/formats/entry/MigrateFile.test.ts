/** Tests the migration of files in place, on a real disk. Spec: FM-24..FM-26 in specs/formats.md. */
import { join } from "node:path"
import * as FileSystem from "@effect/platform/FileSystem"
import { NodeFileSystem } from "@effect/platform-node"
import { assert, it } from "@effect/vitest"
import { Effect, Layer, Option, Stream } from "effect"
import * as EntryReader from "../../../packages/formats/src/entry/EntryReader.ts"
import { migrateFile } from "../../../packages/formats/src/entry/MigrateFile.ts"
import * as FileSessionStorage from "../../../packages/formats/src/storage/FileSessionStorage.ts"
import { SessionStorage } from "../../../packages/formats/src/storage/SessionStorage.ts"
import { fileOf } from "../support/Entries.ts"
import * as EntryLogs from "../support/EntryLogs.ts"

const content = (version: 1 | 2 | 3) => EntryLogs.file({ dialect: "pi", version, entries: 40, size: 0.02 })

const placed = Effect.fnUntraced(function* (text: string) {
  const files = yield* FileSystem.FileSystem
  const folder = yield* files.makeTempDirectoryScoped()
  const path = join(folder, "log.jsonl")
  yield* files.writeFileString(path, text, { mode: 0o640 })
  return { files, folder, path }
})

const records = (path: string) =>
  EntryReader.fromPath(path).pipe(
    Stream.filterMap((piece) => ("record" in piece ? Option.some(JSON.stringify(piece.record)) : Option.none())),
    Stream.runCollect,
    Effect.map((chunk) => [...chunk])
  )

it.layer(Layer.mergeAll(NodeFileSystem.layer, FileSessionStorage.layer))("migrateFile", (it) => {
  it.scoped("FM-24: the file has the migrated records and its permissions, the original stays beside it", () =>
    Effect.forEach([1, 2] as const, (version) =>
      Effect.gen(function* () {
        const original = content(version)
        const { files, folder, path } = yield* placed(original)
        const before = yield* records(path)
        const result = yield* migrateFile(path)
        assert.deepStrictEqual(result, { version, backup: `${path}.v${version}.bak`, problems: 0 })
        assert.strictEqual(yield* files.readFileString(`${path}.v${version}.bak`), original)
        assert.deepStrictEqual((yield* files.readFileString(path)).trimEnd().split("\n"), before)
        assert.strictEqual((yield* files.stat(path)).mode & 0o777, 0o640)
        assert.deepStrictEqual((yield* files.readDirectory(folder)).length, 2)
      })
    )
  )

  it.scoped("FM-24: a file of version 3 is not touched, nor is one that is not a log or is too new", () =>
    Effect.gen(function* () {
      for (const text of [content(3), "hello\n", fileOf({ type: "session", id: "a", version: 9 })]) {
        const { files, folder, path } = yield* placed(text)
        yield* Effect.either(migrateFile(path))
        assert.strictEqual(yield* files.readFileString(path), text)
        assert.deepStrictEqual(yield* files.readDirectory(folder), ["log.jsonl"])
      }
    })
  )

  it.scoped(
    "FM-25: damaged bytes stay in the original only, and are counted; a second original gets a name of its own",
    () =>
      Effect.gen(function* () {
        const [header, ...lines] = content(2).trimEnd().split("\n")
        const { files, path } = yield* placed([header, "{torn", ...lines, ""].join("\n"))
        yield* files.writeFileString(`${path}.v2.bak`, "another")
        const result = yield* migrateFile(path)
        assert.deepStrictEqual(result, { version: 2, backup: `${path}.v2.2.bak`, problems: 1 })
        assert.strictEqual(yield* files.readFileString(`${path}.v2.bak`), "another")
        assert.include(yield* files.readFileString(`${path}.v2.2.bak`), "{torn")
        assert.notInclude(yield* files.readFileString(path), "{torn")
      })
  )

  it.scoped("FM-26: a file that another writer has locked is not touched", () =>
    Effect.gen(function* () {
      const { files, path } = yield* placed(content(1))
      yield* Effect.flatMap(SessionStorage, (storage) => storage.lock(path))
      const error = yield* Effect.flip(migrateFile(path))
      assert.strictEqual(error._tag, "SessionLocked")
      assert.strictEqual(yield* files.readFileString(path), content(1))
    })
  )

  it.scoped("FM-26: a file that grows during the migration is not replaced", () =>
    Effect.gen(function* () {
      const { files, folder, path } = yield* placed(content(1))
      // The program that uses the log appends while the migrated file is created.
      const growing = FileSystem.FileSystem.of({
        ...files,
        open: (name, options) =>
          Effect.zipRight(
            name.endsWith(".tmp") ? files.writeFileString(path, "{}\n", { flag: "a" }) : Effect.void,
            files.open(name, options)
          )
      })
      const error = yield* Effect.flip(Effect.provideService(migrateFile(path), FileSystem.FileSystem, growing))
      assert.strictEqual(error._tag, "LogChanged")
      assert.strictEqual(yield* files.readFileString(path), `${content(1)}{}\n`)
      assert.deepStrictEqual(yield* files.readDirectory(folder), ["log.jsonl"])
    })
  )
})
