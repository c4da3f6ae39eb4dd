/**
 * Tests the reading of compressed logs. Method: a rollout that zstd compressed is read whole and damaged; frames with stored
 * blocks are cut, so that it is known which lines are left. Spec: FM-198, FM-199 in specs/formats.md.
 */
import { join } from "node:path"
import { FileSystem } from "@effect/platform/FileSystem"
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { assert, it } from "@effect/vitest"
import { Chunk, Effect, FastCheck as fc, Stream } from "effect"
import * as LogSource from "../../../packages/formats/src/import/LogSource.ts"
import { decompressed } from "../../../packages/formats/src/lines/LogFile.ts"
import * as JsonLines from "../../../packages/formats/src/lines/JsonLines.ts"
import { cases, forAll } from "../../support/Cases.ts"
import { blockHeadBytes, compressed, frameHeadBytes, frameOf, text } from "../support/CompressedLogs.ts"

/** The bytes in chunks of a size, decompressed. */
const read = (bytes: Buffer, chunkBytes = bytes.length) => {
  const chunks = Array.from({ length: Math.ceil(bytes.length / chunkBytes) }, (_, at) =>
    bytes.subarray(at * chunkBytes, (at + 1) * chunkBytes)
  )
  return decompressed(Stream.fromIterable(chunks))
}
const textOf = (stream: Stream.Stream<Uint8Array>) =>
  Buffer.concat(Chunk.toReadonlyArray(Effect.runSync(Stream.runCollect(stream)))).toString()
const piecesOf = (stream: Stream.Stream<Uint8Array>) =>
  Chunk.toReadonlyArray(Effect.runSync(Stream.runCollect(stream.pipe(JsonLines.read({ isRecord: () => true })))))

it("FM-198: compressed text is read whole, in whatever chunks it arrives", () => {
  // The first four bytes arrive together: a file has them in its first chunk.
  fc.assert(
    fc.property(fc.integer({ min: 4, max: 2_000 }), (chunkBytes) => textOf(read(compressed, chunkBytes)) === text),
    { numRuns: cases(20) }
  )
})

it("FM-198: frames that follow each other are one text", () => {
  assert.strictEqual(
    textOf(read(Buffer.concat([frameOf(["a\n", "b"]), frameOf(["c\n"]), compressed]))),
    `a\nbc\n${text}`
  )
})

it("FM-198: any other bytes are passed as they are", () => {
  fc.assert(
    fc.property(fc.string({ minLength: 1 }), (any) => textOf(read(Buffer.from(any), 3)) === any),
    { numRuns: cases(20) }
  )
})

it.layer(NodeFileSystem.layer)("a compressed rollout", (it) => {
  it.scoped("FM-198: is detected and read as its text is, and has its name", () =>
    Effect.gen(function* () {
      const files = yield* FileSystem
      const folder = yield* files.makeTempDirectoryScoped()
      // Without the header only the name tells the id.
      const items = text.slice(text.indexOf("\n") + 1).split("\n")
      const name = join(folder, "rollout-2026-02-01T10-00-00-01970000-0000-7000-8000-00000000000a.jsonl")
      yield* files.writeFileString(name, items.join("\n"))
      yield* files.writeFile(`${name}.zst`, frameOf(items.map((line) => `${line}\n`)))
      const piecesOf = (path: string) => Effect.map(Stream.runCollect(LogSource.open(path)), Chunk.toReadonlyArray)
      assert.strictEqual(yield* LogSource.dialectOf(`${name}.zst`), "codex")
      const pieces = yield* piecesOf(`${name}.zst`)
      assert.deepInclude(pieces[0], { _tag: "Head", id: "01970000-0000-7000-8000-00000000000a" })
      assert.deepStrictEqual(
        pieces.filter(({ _tag }) => _tag !== "Problem"),
        (yield* piecesOf(name)).filter(({ _tag }) => _tag !== "Problem")
      )
    })
  )
})

it("FM-199: wherever the file ends, the lines of its whole blocks are read and the end is reported", () => {
  const lines = Array.from({ length: 12 }, (_, n) => `${JSON.stringify({ n, text: "word ".repeat(n) })}\n`)
  const whole = frameOf(lines)
  forAll([fc.integer({ min: frameHeadBytes, max: whole.length - 1 })], 60, (bytes) => {
    let end = frameHeadBytes
    const left = lines.filter((line) => (end += blockHeadBytes + line.length) <= bytes)
    const pieces = piecesOf(read(whole.subarray(0, bytes), 7))
    assert.deepStrictEqual(
      pieces.filter(({ _tag }) => _tag === "LogRecord").map((piece) => ("text" in piece ? `${piece.text}\n` : "")),
      left
    )
    assert.deepInclude(pieces.at(-1), { _tag: "Problem", kind: "torn-line" })
  })
})

it("FM-199: whatever byte is changed, reading ends without an exception", () => {
  const damage = fc.array(fc.tuple(fc.nat(compressed.length - 1), fc.nat(255)), { minLength: 1, maxLength: 3 })
  forAll([damage], 40, (changes) => {
    const bytes = Buffer.from(compressed)
    for (const [at, byte] of changes) bytes[at] = byte
    assert.isAbove(piecesOf(read(bytes)).length, 0)
  })
})
