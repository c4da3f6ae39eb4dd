/** Pictures as blobs: moved out, verified, put back, swept. Spec: FM-81..FM-86 in specs/formats.md. */
import { readdirSync, readFileSync, renameSync, statSync, truncateSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Duration, Effect, FastCheck as fc, Layer, Option, TestClock } from "effect"
import {
  BlobHash,
  BlobStore,
  hashOf,
  layerFiles,
  layerMemory,
  makeOnDisk,
  parseRef,
  refOf
} from "../../../packages/formats/src/blob/BlobStore.ts"
import * as BlobUse from "../../../packages/formats/src/blob/BlobUse.ts"
import { blobsOf, blobThreshold, externalize, internalize } from "../../../packages/formats/src/blob/BlobUse.ts"
import * as FileSessionStorage from "../../../packages/formats/src/storage/FileSessionStorage.ts"
import { temporaryFolder } from "../../support/Database.ts"
import { forAll } from "../../support/Cases.ts"

/** Base64 of so many characters, a multiple of four. */
const base64 = (length: number, byte = 7) => Buffer.alloc((length / 4) * 3, byte).toString("base64")
const picture = (data: string) => ({ type: "image", data, mimeType: "image/png" })
const message = (...content: ReadonlyArray<unknown>) => ({ type: "message", message: { role: "user", content } })

it("FM-81: a picture of 1,024 base64 characters or more becomes the blob of its bytes, a smaller one stays", () => {
  const [small, large] = [picture(base64(blobThreshold - 4)), picture(base64(blobThreshold))]
  const { blobs, value } = externalize(message(small, { type: "text", text: "and" }, large))
  const bytes = Buffer.from(large.data, "base64")
  assert.deepStrictEqual([...blobs], [[hashOf(bytes), bytes]])
  assert.deepStrictEqual(value, message(small, { type: "text", text: "and" }, picture(refOf(hashOf(bytes)))))
})

it("FM-81: a data URL in image_url becomes the blob of the URL, at any depth and size", () => {
  const url = "data:image/png;base64,AAAA"
  const entry = message({ nested: [{ image_url: url }, { image_url: "https://example.org/a.png" }] })
  const { blobs, value } = externalize(entry)
  assert.deepStrictEqual([...blobs.values()].map(String), [url])
  assert.deepStrictEqual(
    value,
    message({ nested: [{ image_url: refOf(hashOf(Buffer.from(url))) }, { image_url: "https://example.org/a.png" }] })
  )
})

it("FM-81: base64 that would come back otherwise, and pictures outside of content, stay in the line", () => {
  const unpadded = base64(2000).slice(0, -1)
  const others = { files: [{ image: picture(base64(2000)) }], details: { data: base64(2000) } }
  for (const entry of [message(picture(unpadded)), message(picture(base64(2000, 255).replaceAll("/", "_"))), others]) {
    assert.strictEqual(externalize(entry).value, entry)
  }
})

const placed = fc.oneof(
  fc
    .uint8Array({ minLength: 700, maxLength: 900 })
    .map((bytes) => ({ content: [picture(Buffer.from(bytes).toString("base64"))] })),
  fc.string().map((text) => ({ image_url: `data:image/gif;base64,${Buffer.from(text).toString("base64")}` })),
  fc.jsonValue()
)

it("FM-83: moving pictures out and back gives the same entry, in the same bytes", () => {
  forAll([fc.array(placed)], 24, (parts) => {
    const entry = message(...parts, { content: parts })
    const { blobs, value } = externalize(entry)
    assert.deepStrictEqual(blobsOf(value), new Set(blobs.keys()))
    assert.strictEqual(JSON.stringify(internalize(value, blobs)), JSON.stringify(entry))
    assert.strictEqual(externalize(value).value, value)
  })
})

it("FM-82: only the exact form of a reference names a blob", () => {
  const hash = hashOf(Buffer.from("a"))
  assert.strictEqual(parseRef(refOf(hash)), hash)
  for (const text of [`${refOf(hash)} `, `blob:sha256:${hash.toUpperCase()}`, "blob:sha256:../../etc/passwd", hash]) {
    assert.isUndefined(parseRef(text))
  }
})

const contract = (name: string, layer: Layer.Layer<BlobStore>) =>
  it.layer(layer)(`blob store, ${name}`, (it) => {
    it.effect("FM-82: stored bytes come back under their SHA-256; storing them again stores nothing", () =>
      Effect.gen(function* () {
        const [store, bytes] = [yield* BlobStore, Buffer.from("some bytes")]
        const hash = yield* store.put(bytes)
        assert.strictEqual(hash, hashOf(bytes))
        assert.strictEqual(yield* store.put(bytes), hash)
        assert.deepStrictEqual(Buffer.from(Option.getOrThrow(yield* store.get(hash))), bytes)
        assert.deepStrictEqual(yield* store.list, [hash])
        assert.isTrue(Option.isNone(yield* store.get(hashOf(Buffer.from("others")))))
      })
    )

    it.effect("FM-85: a sweep deletes old blobs that are not in use, and no others", () =>
      Effect.gen(function* () {
        const store = yield* BlobStore
        const [used, unused] = [yield* store.put(Buffer.from("used")), yield* store.put(Buffer.from("unused"))]
        const again = yield* store.put(Buffer.from("stored again"))
        yield* TestClock.adjust("2 hours")
        yield* store.put(Buffer.from("stored again"))
        const fresh = yield* store.put(Buffer.from("fresh"))
        const swept = yield* store.sweep(new Set([used]), Duration.hours(1))
        const left = yield* store.list
        assert.includeMembers([...left], [used, again, fresh])
        assert.notInclude(left, unused)
        assert.strictEqual(swept.kept, left.length)
        assert.isTrue(Option.isNone(yield* store.get(unused)))
      })
    )
  })

contract("in memory", layerMemory)
contract(
  "on disk",
  Layer.unwrapScoped(Effect.map(temporaryFolder, (folder) => layerFiles(join(folder, "agent/blobs"))))
)

const onDisk = Effect.map(temporaryFolder, (folder) => ({ folder, store: makeOnDisk(folder) }))

it.scoped("FM-82: a blob's file holds the decoded bytes under the digest, private, and nothing else is left", () =>
  Effect.gen(function* () {
    const { folder, store } = yield* onDisk
    const hash = yield* store.put(Buffer.from("bytes"))
    assert.deepStrictEqual(readdirSync(folder), [hash])
    assert.strictEqual(readFileSync(join(folder, hash), "utf8"), "bytes")
    assert.strictEqual(statSync(join(folder, hash)).mode & 0o777, 0o600)
  })
)

it.scoped("FM-84: changed bytes are an error, and a blob that was cut off is stored again", () =>
  Effect.gen(function* () {
    const { folder, store } = yield* onDisk
    const hash = yield* store.put(Buffer.from("bytes"))
    writeFileSync(join(folder, hash), "bytez")
    assert.deepInclude({ ...(yield* Effect.flip(store.get(hash))) }, { _tag: "BlobDamaged", hash })
    truncateSync(join(folder, hash), 2)
    yield* store.put(Buffer.from("bytes"))
    assert.strictEqual(String(Option.getOrThrow(yield* store.get(hash))), "bytes")
  })
)

it.scoped("FM-84: a missing or damaged blob leaves its reference, the others come back", () =>
  Effect.gen(function* () {
    const { folder, store } = yield* onDisk
    const entries = [base64(2000, 1), base64(2000, 2), base64(2000, 3)].map(picture)
    const stored = yield* BlobUse.moveOut(message(...entries)).pipe(Effect.provideService(BlobStore, store))
    const [first, second] = entries.map(({ data }) => hashOf(Buffer.from(data, "base64")))
    if (first === undefined || second === undefined) return assert.fail()
    renameSync(join(folder, first), join(folder, "elsewhere"))
    writeFileSync(join(folder, second), "damaged")
    const back = yield* BlobUse.moveIn(stored).pipe(Effect.provideService(BlobStore, store))
    assert.deepStrictEqual(back.entry, message(picture(refOf(first)), picture(refOf(second)), entries[2]))
    assert.sameMembers([...back.missing], [first, second])
  })
)

it.scoped("FM-85: a sweep that was killed halfway loses no blob that is in use", () =>
  Effect.gen(function* () {
    const { folder, store } = yield* onDisk
    const hash = yield* store.put(Buffer.from("bytes"))
    renameSync(join(folder, hash), join(folder, `.${hash}.swept`))
    assert.deepStrictEqual(yield* store.sweep(new Set([hash]), Duration.zero), { deleted: 0, deletedBytes: 0, kept: 1 })
    assert.deepStrictEqual(yield* store.list, [hash])
  })
)

it.scoped("FM-86: a reference anywhere in a log keeps its blob, also across the pieces of a large file", () =>
  Effect.gen(function* () {
    const { folder, store } = yield* onDisk
    const layers = Layer.merge(FileSessionStorage.layer, Layer.succeed(BlobStore, store))
    const hashes: Array<BlobHash> = []
    for (let n = 0; n < 40; n++) hashes.push(yield* store.put(Buffer.from(`blob ${n}`)))
    // So dense that the pieces of the file end within references.
    const text = hashes.map((hash) => `{"é":"${refOf(hash)}"}\n`).join("")
    const unused = yield* store.put(Buffer.from("unused"))
    yield* TestClock.adjust("2 hours")
    const log = join(folder, "log.jsonl")
    writeFileSync(log, text.repeat(400))
    const counts = yield* Effect.provide(BlobUse.references([log]), layers)
    assert.deepStrictEqual(counts, new Map(hashes.map((hash) => [hash, 400])))
    const failed = yield* Effect.flip(Effect.provide(BlobUse.sweep([log, join(folder, "gone.jsonl")]), layers))
    assert.strictEqual(failed._tag, "FileMissing")
    assert.isTrue(Option.isSome(yield* store.get(unused)))
    assert.deepStrictEqual(yield* Effect.provide(BlobUse.sweep([log]), layers), {
      deleted: 1,
      deletedBytes: 6,
      kept: 40
    })
    assert.deepStrictEqual(yield* store.list, hashes.toSorted())
  })
)
