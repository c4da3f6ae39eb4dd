/** Every stored form can be read for ever, and what is written reads back as itself. */
import { assert, it } from "@effect/vitest"
import { Either, FastCheck as fc, Option } from "effect"
import { MessageID } from "../../packages/log/src/domain/Identifiers.ts"
import * as Registry from "../../packages/log/src/events/Registry.ts"
import { type Draft, durableDefinitions, liveDefinitions } from "../../packages/log/src/events/SessionEvents.ts"
import { forAll } from "../support/Cases.ts"
import { draftOf } from "../support/PlausibleLogs.ts"

const decode = (stored: string, text: string) =>
  Either.getOrThrow(Option.getOrThrow(Registry.decode(stored, JSON.parse(text))))

for (const { type, version } of durableDefinitions) {
  it(`EV-D4: ${type} reads back as what was written, and is written the same again`, () => {
    forAll([draftOf(type)], 24, (draft) => {
      const written = Either.getOrThrow(Registry.encode(draft))
      assert.strictEqual(written.stored, `${type}.${version}`)
      const read = decode(written.stored, written.text)
      assert.deepStrictEqual(read, { type, version, data: written.data })
      const again = Either.getOrThrow(Registry.encode({ type: read.type, data: read.data } as Draft))
      assert.strictEqual(again.text, written.text)
    })
  })
}

for (const { type, version } of durableDefinitions) {
  it(`EV-D4: ${type} conforms to its schema in any order of its fields, and with another field it does not`, () => {
    const conforms = Registry.codecOf(`${type}.${version}`)?.conforms ?? (() => false)
    forAll([draftOf(type), fc.nat()], 8, (draft, turn) => {
      const { data } = Either.getOrThrow(Registry.encode(draft))
      const fields = Object.entries(data)
      const from = fields.length === 0 ? 0 : turn % fields.length
      const turned = [...fields.slice(from), ...fields.slice(0, from)]
      // False means unknown: schemas of any JSON are left to the decoder.
      assert.strictEqual(conforms(Object.fromEntries(turned)), conforms(data))
      for (const more of [
        [...turned, ["other", 1]],
        [["other", 1], ...turned]
      ]) {
        assert.isFalse(conforms(Object.fromEntries(more)))
      }
      const fewer = Object.fromEntries(turned.slice(1))
      const decoded = Option.getOrThrow(Registry.decode(`${type}.${version}`, fewer))
      if (conforms(data)) assert.strictEqual(conforms(fewer), Either.isRight(decoded))
    })
  })
}

it("EV-D2: the stored names are these; one is added when a version is raised, and none is ever taken away", () => {
  const names = durableDefinitions.map(({ type, version }) => `${type}.${version}`)
  assert.deepStrictEqual([...Registry.storedNames()].sort(), [...names, "session.next.compaction.ended.1"].sort())
  assert.deepStrictEqual(
    durableDefinitions.filter(({ version }) => version > 1).map(({ type, version }) => `${type}.${version}`),
    ["session.next.step.ended.2", "session.next.step.failed.2", "session.next.compaction.ended.2"]
  )
  assert.strictEqual(names.length, 58)
  assert.strictEqual(new Set(names).size, 58)
})

it("EV-D1: live types have no stored name, and cannot be encoded", () => {
  for (const { type } of liveDefinitions) {
    assert.isFalse(Registry.storedNames().some((name) => name.startsWith(`${type}.`)))
    // A caller without types could try.
    assert.isTrue(Either.isLeft(Registry.encode({ type, data: {} } as unknown as Draft)))
  }
})

it("EV-D3: version 1 of compaction.ended is read as today's, with or without recent context", () => {
  const stored = "session.next.compaction.ended.1"
  const messageID = MessageID.make("msg_c")
  const full = decode(stored, JSON.stringify({ messageID, text: "summary", include: "recent" }))
  assert.deepStrictEqual(full, {
    type: "session.next.compaction.ended",
    version: 2,
    data: { messageID, reason: "auto", text: "summary", recent: "recent" }
  })
  const bare = decode(stored, JSON.stringify({ messageID, text: "summary" }))
  assert.deepInclude(bare.data, { recent: "" })
})

it("EV-D2: an unknown name, and a known type at an unknown version, are unknown, not broken", () => {
  for (const name of ["session.next.later.1", "session.next.renamed.99", "session.next.renamed", "renamed.1", ""]) {
    assert.isUndefined(Registry.codecOf(name))
    assert.isTrue(Option.isNone(Registry.decode(name, {})))
  }
})

it("EV-D2: a known name with a payload that does not fit is broken, and says which field", () => {
  const broken = Option.getOrThrow(Registry.decode("session.next.renamed.1", { title: 7 }))
  assert.isTrue(Either.isLeft(broken) && broken.left.message.includes("title"))
})

it("EV-D4: fields that the schema does not have are not stored", () => {
  const loose = { extra: 1, text: "x", textID: "t", assistantMessageID: MessageID.make("msg_a") }
  const written = Either.getOrThrow(Registry.encode({ type: "session.next.text.ended", data: loose }))
  assert.deepStrictEqual(JSON.parse(written.text), { assistantMessageID: "msg_a", textID: "t", text: "x" })
})

it("EV-D2: a stored name is a type, a dot and a version", () => {
  assert.deepStrictEqual(Registry.splitStored("session.next.step.ended.2"), {
    type: "session.next.step.ended",
    version: 2
  })
})
