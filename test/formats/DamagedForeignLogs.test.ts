/**
 * Tests the readers of Claude Code's logs and Codex's rollouts on damaged ones.
 *
 * Method: a healthy log is cut, or one of its bytes is changed, removed or added, at any place; or any field of any record
 * gets any value. Reading must end without an exception, keep the tree whole, and keep each record whose line is intact.
 * Spec: FM-130, FM-131, FM-145 in specs/formats.md.
 */
import { assert, describe, it } from "@effect/vitest"
import { FastCheck as fc, Schema } from "effect"
import * as ClaudeReader from "../../packages/formats/src/claude/ClaudeReader.ts"
import * as CodexReader from "../../packages/formats/src/codex/CodexReader.ts"
import { Piece } from "../../packages/formats/src/conversation/Conversation.ts"
import { forAll } from "../support/Cases.ts"
import { assistant, bytes, call, type Json, result, session, text, user, uuid } from "./support/ClaudeLogs.ts"
import { bareRollout, call as codexCall, clock, document, documentOf, output, rollout } from "./support/CodexLogs.ts"
import { assertTree, briefs, headOf, itemsOf, kindsOf, pathBriefs, piecesOf } from "./support/Pieces.ts"

const isPiece = Schema.is(Piece)

const dialects = [
  { name: "Claude Code", read: ClaudeReader.read(), log: [...session(3, 40)] },
  { name: "Codex", read: CodexReader.read(), log: [...rollout(3, 40)] },
  { name: "Codex, bare", read: CodexReader.read(), log: bareRollout }
]

type Damage = { readonly at: number; readonly byte: number; readonly kind: "cut" | "change" | "remove" | "add" }

const damage: fc.Arbitrary<Damage> = fc.record({
  at: fc.nat(),
  byte: fc.oneof(fc.nat(255), fc.constantFrom(0, 10, 34, 92, 123, 125)),
  kind: fc.constantFrom("cut", "change", "remove", "add")
})

const damaged = (log: Buffer, { at: given, byte, kind }: Damage): Buffer => {
  const at = given % log.length
  if (kind === "cut") return log.subarray(0, at)
  const kept = kind === "add" ? at : at + 1
  return Buffer.concat([
    log.subarray(0, at),
    kind === "remove" ? Buffer.alloc(0) : Buffer.from([byte]),
    log.subarray(kept)
  ])
}

/** The lines of a log as values; undefined where a line is no JSON object. */
const linesOf = (log: Buffer): ReadonlyArray<string> => log.toString("utf8").split("\n")

describe.each(dialects)("a damaged log of $name", ({ log, read }) => {
  const whole = bytes(log)

  it("FM-130: at any cut and with any changed byte, reading ends and keeps each record whose line is intact", () => {
    const healthy = new Set(linesOf(whole))
    forAll(
      [fc.array(damage, { minLength: 1, maxLength: 3 }), fc.integer({ min: 1, max: 4_096 })],
      10,
      (damages, size) => {
        const given = damages.reduce((bytes, next) => (bytes.length === 0 ? bytes : damaged(bytes, next)), whole)
        const pieces = piecesOf(read, given, size)
        assertTree(pieces)
        if (headOf(pieces) === undefined) return
        const found = new Set([headOf(pieces), ...itemsOf(pieces)].map((piece) => JSON.stringify(piece?.record)))
        for (const line of linesOf(given)) if (line !== "" && healthy.has(line)) assert.include(found, line)
      }
    )
  })

  it("FM-131: with any value in any field, reading ends and each record keeps its item", () => {
    const value = fc.oneof(
      fc.jsonValue({ maxDepth: 2 }),
      fc.constantFrom(null, -1, 1e308, "__proto__", "constructor", [], {}, [[]], { type: "text" }, [null, 1, "x"])
    )
    const mutation = fc.record({ record: fc.nat(), field: fc.nat(), value, deep: fc.boolean() })
    forAll([fc.array(mutation, { minLength: 1, maxLength: 6 })], 10, (mutations) => {
      const records = log.map((record) => structuredClone(record) as Record<string, unknown>)
      for (const { deep, field, record: at, value } of mutations) {
        const record = records[at % records.length] ?? {}
        const inner = Object.values(record).find(
          (part) => typeof part === "object" && part !== null && !Array.isArray(part)
        )
        const target = deep && inner !== undefined ? (inner as Record<string, unknown>) : record
        const name = Object.keys(target)[field % Math.max(1, Object.keys(target).length)] ?? "type"
        target[name] = value
      }
      const pieces = piecesOf(read, records)
      assertTree(pieces)
      for (const piece of pieces) assert.isTrue(isPiece(JSON.parse(JSON.stringify(piece))), JSON.stringify(piece))
      const texts = new Set([headOf(pieces), ...itemsOf(pieces)].map((piece) => JSON.stringify(piece?.record)))
      if (headOf(pieces) !== undefined) for (const record of records) assert.include(texts, JSON.stringify(record))
    })
  })
})

describe("a damaged rollout that is one object", () => {
  it("FM-155: at any cut and with any changed byte, reading ends and keeps each item whose lines are intact", () => {
    const indented = (value: Json) => JSON.stringify(value, undefined, 2).replaceAll("\n", "\n    ")
    const items = [...(document["items"] as ReadonlyArray<Json>), ...(document["items"] as ReadonlyArray<Json>)]
    const records = items.map((value, index) => ({ ...value, id: `item_${index}` }))
    const text = JSON.stringify(documentOf(records), undefined, 2)
    const start = text.indexOf('"items"')
    forAll(
      [fc.array(damage, { minLength: 1, maxLength: 3 }), fc.integer({ min: 1, max: 4_096 })],
      40,
      (damages, size) => {
        const given = damages.reduce<Buffer>(
          (bytes, next) =>
            bytes.length <= start ? bytes : damaged(bytes, { ...next, at: start + (next.at % (bytes.length - start)) }),
          Buffer.from(text)
        )
        const pieces = piecesOf(CodexReader.read(), given, size)
        assertTree(pieces)
        const found = new Set(itemsOf(pieces).map(({ record }) => JSON.stringify(record)))
        const left = given.toString("utf8")
        for (const record of records)
          if (left.includes(`\n    ${indented(record)}`)) assert.include(found, JSON.stringify(record))
      }
    )
  })

  it("FM-155: a cut item is the problem torn-line", () => {
    const text = JSON.stringify(document, undefined, 2)
    const pieces = piecesOf(CodexReader.read(), Buffer.from(text.slice(0, text.indexOf("One:"))))
    assert.deepStrictEqual(kindsOf(pieces), ["torn-line"])
    assert.strictEqual(briefs(pieces).length, 3)
  })
})

describe("records of Claude Code that do not fit together", () => {
  const read = (log: Iterable<Json>) => piecesOf(ClaudeReader.read(), log)

  it("FM-145: after a lost record, the conversation goes on at the record before it", () => {
    const log = [...session(2, 8)]
    const pieces = read(log.filter((_, index) => index !== 7))
    assert.deepStrictEqual(kindsOf(pieces), ["missing-parent"])
    assert.strictEqual(pathBriefs(pieces).length, briefs(pieces).length)
  })

  it("FM-145: a second record with a uuid shows nothing, and what follows it stays in the line", () => {
    const again = user(1, null, "first")
    const pieces = read([again, again, user(2, 1, "second")])
    assertTree(pieces)
    assert.deepStrictEqual(kindsOf(pieces), ["duplicate-id"])
    assert.deepStrictEqual(pathBriefs(pieces), ["User: first", "User: second"])
  })

  it("FM-145: a record that is its own parent, and a circle, end in a line", () => {
    const pieces = read([user(1, 1, "self"), user(2, 3, "later"), user(3, 2, "circle")])
    assertTree(pieces)
    assert.deepStrictEqual(pathBriefs(pieces), ["User: self", "User: later", "User: circle"])
  })

  it("FM-132: a record without a readable message is a problem and shows nothing", () => {
    const pieces = read([user(1, null, "go"), { ...user(2, 1, "x"), message: "lost" }, user(3, 2, { odd: true })])
    assert.deepStrictEqual(kindsOf(pieces), ["unreadable-record", "unreadable-record"])
    assert.deepStrictEqual(briefs(pieces), ["User: go"])
  })

  it("FM-133: an answer waits for its next line for 512 items, and its parts are complete after that", () => {
    const lines = (count: number): ReadonlyArray<Json> => [
      user(1, null, "go"),
      {
        ...user(2, 1, []),
        type: "assistant",
        message: { id: "m", content: [text("one")], usage: { output_tokens: 1 } }
      },
      ...Array.from({ length: count }, (_, index) => user(index + 10, 2, "note", { isMeta: true })).map((record) => ({
        ...record,
        type: "progress"
      })),
      {
        ...user(3, 2, []),
        type: "assistant",
        message: { id: "m", content: [text("two")], usage: { output_tokens: 5 } }
      }
    ]
    assert.deepStrictEqual(briefs(read(lines(100))), ["User: go", "Answer: text one | text two"])
    assert.deepStrictEqual(briefs(read(lines(600))), ["User: go", "Answer: text one", "Answer: text two"])
    assert.deepStrictEqual(
      itemsOf(read(lines(600))).flatMap((item) => (item._tag === "Answer" ? [item.spent?.output] : [])),
      [1, 4]
    )
  })

  it("FM-130: a record with 20,000 blocks is read in one pass over them", () => {
    const ids = Array.from({ length: 20_000 }, (_, index) => `t${index}`)
    const blocks = ids.map((id) => call(id, "Read", {}))
    const pieces = read([
      user(1, null, "go"),
      assistant(2, 1, "m", blocks),
      assistant(3, 2, "m", blocks),
      user(4, 3, [...ids.map((id) => result(id, "x")), text("and now")])
    ])
    assertTree(pieces)
    assert.strictEqual(itemsOf(pieces).length, 20_004)
    assert.strictEqual(pathBriefs(pieces).at(-1), "User: and now")
    assert.strictEqual(itemsOf(pieces).at(-1)?.key.length, uuid(4).length + "#20001".length)
  })

  it("FM-131: own fields named after those of prototypes, and absurd counts, do no harm", () => {
    const odd = JSON.parse('{"__proto__":{"type":"user"},"constructor":{"name":"x"},"toString":1}') as Json
    const usage = { input_tokens: 1e308, output_tokens: -1, cache_read_input_tokens: "9" }
    const pieces = read([
      user(1, null, "go", odd),
      { ...assistant(2, 1, "m", [call("t", "__proto__", odd)]), ...odd },
      { ...user(3, 2, []), type: "assistant", message: { id: "n", content: [text("x")], usage } }
    ])
    assert.deepStrictEqual(briefs(pieces), ["User: go", `Answer: __proto__(${JSON.stringify(odd)})`, "Answer: text x"])
    assert.isUndefined(itemsOf(pieces).find((item) => item._tag === "Answer" && item.spent !== undefined))
    for (const piece of pieces) assert.isTrue(isPiece(piece))
  })

  it("FM-130: a log without a session is a problem, and an empty one too", () => {
    assert.deepStrictEqual(kindsOf(read([{ type: "summary", summary: "x", leafUuid: uuid(1) }])), ["not-a-session"])
    assert.deepStrictEqual(kindsOf(read([])), ["not-a-session"])
  })
})

describe("rollouts with arguments that are too deep", () => {
  it("FM-153: arguments that nest too deeply stay a text, as the limit of a line says", () => {
    const { item, meta } = clock()
    const deep = "[".repeat(200_000) + "]".repeat(200_000)
    const pieces = piecesOf(CodexReader.read(), [
      meta(),
      item({ ...codexCall("c", "shell", {}), arguments: `{"a":${deep}}` }),
      item(output("c", `{"output":${deep},"metadata":{"exit_code":0}}`))
    ])
    const [answer] = itemsOf(pieces).flatMap((found) => (found._tag === "Answer" ? [found] : []))
    assert.deepStrictEqual(answer?.parts, [{ type: "call", id: "c", name: "shell", input: { input: `{"a":${deep}}` } }])
  })
})
