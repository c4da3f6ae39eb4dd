/** Tests the migration of records. Spec: FM-20..FM-23 in specs/formats.md. */
import { assert, describe, it } from "@effect/vitest"
import { Chunk, Effect, Predicate, Stream } from "effect"
import * as EntryReader from "../../../packages/formats/src/entry/EntryReader.ts"
import { forAll } from "../../support/Cases.ts"
import { isHeader, isTitleSlot } from "../../../packages/formats/src/entry/Entry.ts"
import { migrate } from "../../../packages/formats/src/entry/EntryReader.ts"
import { fileOf, type Json, message, startedAt, user } from "../support/Entries.ts"
import * as EntryLogs from "../support/EntryLogs.ts"

const header1 = { type: "session", id: "s1", timestamp: startedAt, cwd: "/w", branchedFrom: "old", extra: [1] } as const
const timed = (body: Json): Json => ({ ...body, timestamp: startedAt })
const compaction1 = (firstKeptEntryIndex: unknown): Json =>
  timed({ type: "compaction", summary: "s", tokensBefore: 1, firstKeptEntryIndex })

const pieces = (content: string, options?: EntryReader.Options) =>
  Stream.make(Buffer.from(content)).pipe(
    EntryReader.fromBytes(options),
    Stream.runCollect,
    Effect.map(Chunk.toReadonlyArray),
    Effect.runSync
  )
const items = (content: string, options?: EntryReader.Options) =>
  pieces(content, options).flatMap((piece) => (piece._tag === "Problem" || piece._tag === "Head" ? [] : [piece]))
const kept = (content: string, options?: EntryReader.Options) =>
  items(content, options).flatMap((item) => (item._tag === "Compaction" ? [item.firstKept] : []))

describe("Migration", () => {
  it("FM-20: entries of version 1 get new ids and a chain in file order; other fields stay in their order", () => {
    const [header, first, second] = migrate(header1, [
      timed({ ...user("a"), id: "own", parentId: "x", more: { y: 1 } }),
      timed(user("b"))
    ])
    assert.deepStrictEqual(header, { ...header1, version: 3 })
    assert.match(String(first?.["id"]), /^[0-9a-f]{8}$/)
    assert.deepStrictEqual(Object.keys(first ?? {}), ["type", "message", "id", "parentId", "more", "timestamp"])
    assert.deepStrictEqual(first, { ...timed(user("a")), id: first?.["id"], parentId: null, more: { y: 1 } })
    assert.deepStrictEqual(second, { ...timed(user("b")), id: second?.["id"], parentId: first?.["id"] })
  })

  it("FM-20: ids are unique in a log of any length, and the same each time", () => {
    const ids = () =>
      migrate(
        header1,
        Array.from({ length: 100_000 }, () => timed(user("a")))
      )
        .slice(1)
        .map(({ id }) => id)
    const once = ids()
    assert.strictEqual(new Set(once).size, 100_000)
    assert.deepStrictEqual(ids(), once)
  })

  it("FM-21: an index becomes the id of its entry, the header being 0; a target that is no earlier entry keeps nothing", () => {
    const records = [timed(user("a")), timed(user("b")), ...[1, 2, 0, 9, -1, 1.5].map(compaction1)]
    const [, a, b, ...compactions] = migrate(header1, records)
    const targets = compactions.map(({ firstKeptEntryId }) => firstKeptEntryId)
    assert.deepStrictEqual(targets, [a?.["id"], b?.["id"], undefined, undefined, undefined, undefined])
    for (const compaction of compactions) assert.notProperty(compaction, "firstKeptEntryIndex")
  })

  it("FM-21: an index that names no entry is reported", () => {
    const found = pieces(fileOf(header1, timed(user("a")), compaction1(0), compaction1(1))).flatMap((piece) =>
      piece._tag === "Problem" ? [[piece.kind, piece.place.line]] : []
    )
    assert.deepStrictEqual(found, [["nothing-kept", 3]])
  })

  it("FM-22: damaged lines count as a record, glued records count each; in compat mode only what parses counts", () => {
    const [a, b, c] = ["a", "b", "c"].map((text) => timed(user(text)))
    const damaged = fileOf(header1, "{bad", a ?? {}, `${JSON.stringify(b)}${JSON.stringify(c)}`, compaction1(4))
    const keyOf = (content: string, text: string, options?: EntryReader.Options) =>
      items(content, options).find((item) => item._tag === "User" && JSON.stringify(item.content).includes(`"${text}"`))
        ?.key
    assert.deepStrictEqual(kept(damaged), [keyOf(damaged, "c") ?? "?"])
    const compat = fileOf(header1, "{bad", a ?? {}, b ?? {}, compaction1(2))
    assert.deepStrictEqual(kept(compat, { mode: "compat" }), [keyOf(compat, "b", { mode: "compat" }) ?? "?"])
    const before = fileOf("garbage", header1, a ?? {}, b ?? {}, compaction1(1))
    assert.deepStrictEqual(kept(before), [keyOf(before, "a") ?? "?"])
  })

  it("FM-23: the role hookMessage becomes custom, also in version 2; nothing else changes", () => {
    const header = { ...header1, version: 2 }
    const hook = {
      ...timed(message({ role: "hookMessage", customType: "h", content: "x", z: 1 })),
      id: "a",
      parentId: null
    }
    const other = { ...timed(message({ role: "hookMessages" })), id: "b", parentId: "a" }
    assert.deepStrictEqual(migrate(header, [hook, other]), [
      { ...header, version: 3 },
      { ...hook, message: { role: "custom", customType: "h", content: "x", z: 1 } },
      other
    ])
  })

  it("FM-23: a second migration changes nothing, and the reader yields the migrated records", () => {
    forAll([EntryLogs.logs], 16, (options) => {
      const [header, ...records] = [...EntryLogs.records(options)].filter((record) => !isTitleSlot(record))
      if (!isHeader(header)) return assert.fail("the first record is the header")
      const [migrated, ...entries] = migrate(header, records)
      if (!isHeader(migrated)) return assert.fail("the header stays a header")
      assert.deepStrictEqual(migrate(migrated, entries), [migrated, ...entries])
      const content = EntryLogs.file(options)
      const read = pieces(content).flatMap((piece) => (Predicate.hasProperty(piece, "record") ? [piece.record] : []))
      assert.deepStrictEqual(
        read.map((record) => JSON.stringify(record)),
        [migrated, ...entries].map((record) => JSON.stringify(record))
      )
    })
  })
})
