/** The contract of `SessionStorage` as tests: each test uses a folder of its own, so that they share a storage. */
import { assert, it } from "@effect/vitest"
import { Effect, Either, FastCheck as fc, type Layer, Option, Stream } from "effect"
import { cases } from "../../support/Cases.ts"
import { SessionStorage } from "../../../packages/formats/src/storage/SessionStorage.ts"

export interface StoredIn<E> {
  readonly name: string
  readonly layer: Layer.Layer<SessionStorage, E>
  /** A folder that exists or can be created. */
  readonly root: string
}

let folders = 0

const written = (path: string, ...lines: ReadonlyArray<string>) =>
  Effect.scoped(
    Effect.gen(function* () {
      const writer = yield* (yield* SessionStorage).openWriter(path)
      for (const line of lines) yield* writer.writeLine(line)
      yield* writer.fsync
    })
  )

/** Registers every test of the contract. */
export const storageContract = <E>({ layer, name, root }: StoredIn<E>): void =>
  it.layer(layer)(`session storage, ${name}`, (it) => {
    const folder = Effect.gen(function* () {
      const storage = yield* SessionStorage
      const path = `${root}/case-${process.pid}-${++folders}/inner`
      yield* storage.ensureDir(path)
      return { storage, path }
    })

    it.effect("FM-70: a folder is created with its parents, and creating it again changes nothing", () =>
      Effect.gen(function* () {
        const { path, storage } = yield* folder
        yield* storage.writeText(`${path}/a`, "text")
        yield* storage.ensureDir(path)
        assert.isTrue(yield* storage.exists(path))
        assert.strictEqual(yield* storage.readText(`${path}/a`), "text")
        assert.isFalse(yield* storage.exists(`${path}/b`))
      })
    )

    it.effect("FM-71: what is missing is a typed error with its path; a missing folder has no files", () =>
      Effect.gen(function* () {
        const { path, storage } = yield* folder
        const file = `${path}/missing`
        const errors = yield* Effect.all(
          [
            storage.stat(file),
            storage.readText(file),
            Effect.flatMap(storage.readStarts([file], 10), ([start]) => start ?? Effect.void),
            Stream.runDrain(storage.readBytes(file)),
            storage.rename(file, `${path}/other`)
          ].map((read) => Effect.flip(Effect.asVoid(read)))
        )
        for (const error of errors) assert.deepInclude({ ...error }, { _tag: "FileMissing", path: file })
        assert.deepStrictEqual(yield* storage.listFiles(file), [])
        assert.deepStrictEqual(yield* storage.listDirs(file), [])
        yield* storage.unlink(file)
        assert.strictEqual((yield* Effect.flip(storage.writeText(`${file}/a`, "text")))._tag, "StorageFailed")
        assert.strictEqual((yield* Effect.flip(Effect.scoped(storage.openWriter(`${file}/a`))))._tag, "StorageFailed")
      })
    )

    it.effect("FM-71: folders and files are listed apart, sorted, without hidden ones", () =>
      Effect.gen(function* () {
        const { path, storage } = yield* folder
        for (const file of ["b.jsonl", "a.jsonl", ".hidden"]) yield* storage.writeText(`${path}/${file}`, "")
        for (const dir of ["d2", "d1"]) yield* storage.ensureDir(`${path}/${dir}`)
        assert.deepStrictEqual(yield* storage.listFiles(path), ["a.jsonl", "b.jsonl"])
        assert.deepStrictEqual(yield* storage.listDirs(path), ["d1", "d2"])
      })
    )

    it.effect("FM-71: a prefix holds whole characters of at most so many bytes", () =>
      Effect.gen(function* () {
        const { path, storage } = yield* folder
        yield* storage.writeText(`${path}/text`, "aé€😀z")
        for (const [bytes, text] of [
          [0, ""],
          [1, "a"],
          [2, "a"],
          [3, "aé"],
          [5, "aé"],
          [6, "aé€"],
          [9, "aé€"],
          [10, "aé€😀"],
          [4096, "aé€😀z"]
        ] as const) {
          const start = { text, ...(yield* storage.stat(`${path}/text`)) }
          const read = yield* storage.readStarts([`${path}/text`, `${path}/text`], bytes)
          assert.deepStrictEqual(read, [Either.right(start), Either.right(start)], `${bytes} bytes`)
        }
        assert.strictEqual((yield* storage.stat(`${path}/text`)).sizeBytes, 11)
      })
    )

    it.effect("FM-72: a text or lines replace the whole file", () =>
      Effect.gen(function* () {
        const { path, storage } = yield* folder
        const file = `${path}/text`
        yield* storage.writeText(file, "a long first text")
        yield* storage.writeText(file, "second")
        assert.strictEqual(yield* storage.readText(file), "second")
        yield* storage.writeLines(file, ["one", "", "three"])
        assert.strictEqual(yield* storage.readText(file), "one\n\nthree\n")
        yield* storage.writeLines(file, [])
        assert.strictEqual(yield* storage.readText(file), "")
        assert.deepStrictEqual(yield* storage.listFiles(path), ["text"])
      })
    )

    it.effect("FM-73: lines arrive in order, each with a newline, whatever they hold", () =>
      Effect.gen(function* () {
        const { path, storage } = yield* folder
        const line = fc.string({ unit: "grapheme" }).map((text) => JSON.stringify(text))
        let file = 0
        yield* Effect.promise(() =>
          fc.assert(
            fc.asyncProperty(fc.array(line), fc.array(line), (first, second) =>
              Effect.runPromise(
                Effect.gen(function* () {
                  const name = `${path}/${++file}`
                  yield* written(name, ...first)
                  yield* written(name, ...second)
                  const bytes = yield* Stream.runFold(
                    storage.readBytes(name),
                    "",
                    (text, piece) => text + Buffer.from(piece)
                  )
                  assert.strictEqual(bytes, [...first, ...second].map((text) => `${text}\n`).join(""))
                }).pipe(Effect.provideService(SessionStorage, storage))
              )
            ),
            { numRuns: cases(8) }
          )
        )
      })
    )

    it.effect("FM-73: a record never shares a line with one that a crash left without a newline", () =>
      Effect.gen(function* () {
        const { path, storage } = yield* folder
        yield* storage.writeText(`${path}/log`, '{"whole":1}\n{"torn":')
        yield* written(`${path}/log`, '{"next":2}', '{"last":3}')
        assert.strictEqual(yield* storage.readText(`${path}/log`), '{"whole":1}\n{"torn":\n{"next":2}\n{"last":3}\n')
      })
    )

    it.scoped("FM-73: a writer without an error reports none", () =>
      Effect.gen(function* () {
        const { path, storage } = yield* folder
        const writer = yield* storage.openWriter(`${path}/log`)
        yield* writer.writeLine("{}")
        assert.isTrue(Option.isNone(yield* writer.error))
      })
    )

    it.effect("FM-74: one scope at a time holds the lock of a file; the next one gets it when the first ends", () =>
      Effect.gen(function* () {
        const { path, storage } = yield* folder
        const file = `${path}/log.jsonl`
        const second = yield* Effect.scoped(
          Effect.zipRight(storage.lock(file), Effect.flip(Effect.scoped(storage.lock(file))))
        )
        assert.deepInclude({ ...second }, { _tag: "SessionLocked", path: file })
        yield* Effect.scoped(storage.lock(file))
        yield* Effect.scoped(Effect.zipRight(storage.lock(file), storage.lock(`${path}/other.jsonl`)))
        assert.deepStrictEqual(yield* storage.listFiles(path), [])
      })
    )

    it.effect("FM-76: a folder moves with its files", () =>
      Effect.gen(function* () {
        const { path, storage } = yield* folder
        yield* storage.ensureDir(`${path}/from/deep`)
        yield* storage.writeText(`${path}/from/deep/file`, "text")
        yield* storage.rename(`${path}/from`, `${path}/to`)
        assert.strictEqual(yield* storage.readText(`${path}/to/deep/file`), "text")
        assert.isFalse(yield* storage.exists(`${path}/from`))
        yield* storage.rename(`${path}/to/deep/file`, `${path}/file`)
        yield* storage.unlink(`${path}/file`)
        assert.isFalse(yield* storage.exists(`${path}/file`))
      })
    )
  })
