/** Tests the writing of entry logs. Spec: FM-50, FM-51 in specs/formats.md. */
import { assert, it } from "@effect/vitest"
import { Chunk, Effect, Stream } from "effect"
import * as EntryReader from "../../../packages/formats/src/entry/EntryReader.ts"
import * as MigrateFile from "../../../packages/formats/src/entry/MigrateFile.ts"
import { forAll } from "../../support/Cases.ts"
import { header } from "../support/Entries.ts"
import * as EntryLogs from "../support/EntryLogs.ts"

const read = (content: string) =>
  Stream.make(Buffer.from(content)).pipe(
    EntryReader.fromBytes(),
    Stream.runCollect,
    Effect.map(Chunk.toReadonlyArray),
    Effect.runSync
  )

const rewritten = (content: string): string => {
  const pieces = read(content)
  const head = pieces.find((piece) => piece._tag === "Head")
  if (head === undefined) return ""
  const records = pieces.flatMap((piece) => ("record" in piece && piece._tag !== "Head" ? [piece.record] : []))
  const lines = Stream.runCollect(MigrateFile.lines(head)(Stream.fromIterable(records)))
  return [...Effect.runSync(lines)].join("")
}

it("FM-50: a healthy log of version 3 in compact JSON is written with the same bytes", () => {
  forAll([EntryLogs.logs], 16, (options) => {
    const content = EntryLogs.file({ ...options, version: 3 })
    assert.strictEqual(rewritten(content), content)
  })
})

it("FM-50: what is written is read as the same conversation, and written again with the same bytes", () => {
  forAll([EntryLogs.logs, EntryLogs.damages], 24, (options, damages) => {
    const content = EntryLogs.damaged(Buffer.from(EntryLogs.file(options)), damages)
    const once = Effect.runSync(Effect.either(Effect.try(() => rewritten(content.toString()))))
    if (once._tag === "Right") assert.strictEqual(rewritten(once.right), once.right)
  })
})

it("FM-51: names, numbers and texts that JSON writes in several ways get one form", () => {
  const line =
    '{ "type":"x", "id":"a","parentId":null,"timestamp":1,"n":1.0,"e":1e3,"t":"\\u00e9\\/","2":1,"1":2,"__proto__":{"x":1}}'
  const written = rewritten(`${JSON.stringify(header)}\r\n${line}`).split("\n")
  assert.strictEqual(
    written[1],
    '{"1":2,"2":1,"type":"x","id":"a","parentId":null,"timestamp":1,"n":1,"e":1000,"t":"é/","__proto__":{"x":1}}'
  )
})
