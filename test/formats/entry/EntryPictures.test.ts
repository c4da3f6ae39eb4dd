/** Tests the pictures of entry logs. Spec: FM-27 in specs/formats.md. */
import { join } from "node:path"
import * as FileSystem from "@effect/platform/FileSystem"
import { NodeFileSystem } from "@effect/platform-node"
import { assert, it } from "@effect/vitest"
import { Chunk, Effect, Option, Stream } from "effect"
import { hashOf, refOf } from "../../../packages/formats/src/blob/BlobStore.ts"
import * as EntryReader from "../../../packages/formats/src/entry/EntryReader.ts"
import { chain, fileOf, header, user } from "../support/Entries.ts"

const image = (data: string) => ({ type: "image", data, mimeType: "image/png" })
const media = (data: string) => ({ type: "media" as const, mime: "image/png", data })
const missing = (hash: string) => ({ type: "text" as const, text: `[the picture ${hash} is missing]` })
const [there, other] = [hashOf(Buffer.from("hi")), hashOf(Buffer.from("other"))]
const records = chain(user([image(refOf(there)), image(refOf(other)), image("aGk=")]))
const shown = [media("aGk="), missing(other), media("aGk=")]

it.layer(NodeFileSystem.layer)("EntryPictures", (it) => {
  it.effect("FM-27: a picture of a blob is shown, a missing one is reported; the record keeps the reference", () =>
    Effect.gen(function* () {
      const pictures = (hash: string) => Effect.succeed(hash === there ? Option.some(Buffer.from("hi")) : Option.none())
      const read = EntryReader.fromBytes({ pictures })(Stream.make(Buffer.from(fileOf(header, ...records))))
      const [head, problem, item] = Chunk.toReadonlyArray(yield* Stream.runCollect(read))
      assert.strictEqual(head?._tag, "Head")
      assert.deepInclude(problem, { _tag: "Problem", kind: "missing-picture" })
      assert.deepInclude(item, { content: shown, record: records[0] ?? {} })
    })
  )

  it.scoped(
    "FM-27: the blobs of a file are those beside its folder of sessions, and only if their bytes are right",
    () =>
      Effect.gen(function* () {
        const files = yield* FileSystem.FileSystem
        const agent = yield* files.makeTempDirectoryScoped()
        for (const folder of ["sessions/--work--", "blobs"])
          yield* files.makeDirectory(join(agent, folder), { recursive: true })
        yield* files.writeFileString(join(agent, "blobs", there), "hi")
        yield* files.writeFileString(join(agent, "blobs", other), "damaged")
        const path = join(agent, "sessions/--work--/log.jsonl")
        yield* files.writeFileString(path, fileOf(header, ...records))
        const pieces = yield* Stream.runCollect(EntryReader.fromPath(path))
        assert.deepInclude(Chunk.unsafeLast(pieces), { content: shown })
      })
  )
})
