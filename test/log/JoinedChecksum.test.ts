/**
 * Rows that are verified together. Method: random rows get the checksums that an append gives them, some are changed,
 * and the count must stop where the verification of each row alone does.
 */
import { assert, it } from "@effect/vitest"
import { FastCheck as fc } from "effect"
import { sumOf as sum } from "../../packages/log/src/log/EventRow.ts"
import { forAll } from "../support/Cases.ts"
import { countSound } from "../../packages/log/src/log/Page.ts"

const payload = fc.oneof(
  fc.string({ maxLength: 40 }),
  fc.string({ unit: "grapheme", maxLength: 40 }),
  fc.string({ unit: fc.constantFrom("a", "é", "語", "😀"), maxLength: 3 }).map((text) => text.repeat(3000)),
  fc.constant("x".repeat(70_000))
)

const row = fc.record({ hash: fc.integer(), payload })

const summed = (rows: ReadonlyArray<{ readonly hash: number; readonly payload: string }>) => ({
  hashes: rows.map(({ hash }) => hash),
  payloads: rows.map(({ payload }) => payload),
  checksums: rows.map(({ hash, payload }) => sum(hash, payload))
})

it("LG-63: rows that no one changed are sound together, whatever their number, length and characters", () => {
  forAll([fc.array(row, { maxLength: 60 })], 16, (rows) => {
    assert.strictEqual(countSound(summed(rows)), rows.length)
  })
})

it("LG-63: the count stops before the first row whose payload, hash or checksum was changed", () => {
  const change = fc.record({
    at: fc.nat(),
    bit: fc.nat(31),
    column: fc.constantFrom("hash", "payload", "checksum")
  })
  forAll(
    [fc.array(row, { minLength: 1, maxLength: 60 }), fc.array(change, { minLength: 1, maxLength: 3 })],
    40,
    (rows, changes) => {
      const { checksums, hashes, payloads } = summed(rows)
      for (const { at: anywhere, bit, column } of changes) {
        const at = anywhere % rows.length
        if (column === "hash") hashes[at] = (hashes[at] ?? 0) ^ (1 << bit)
        else if (column === "checksum") checksums[at] = ((checksums[at] ?? 0) ^ (1 << bit)) >>> 0
        else payloads[at] = `${payloads[at]}~`
      }
      const alone = rows.findIndex((_, at) => sum(hashes[at] ?? 0, payloads[at] ?? "") !== checksums[at])
      assert.strictEqual(countSound({ checksums, hashes, payloads }), alone < 0 ? rows.length : alone)
    }
  )
})

it("LG-63: two neighbours that exchanged their payloads and checksums are both found", () => {
  const { checksums, hashes, payloads } = summed([
    { hash: 1, payload: "ab" },
    { hash: 2, payload: "cd" },
    { hash: 3, payload: "ef" }
  ])
  const swapped = <A>([a, b, c]: ReadonlyArray<A>) => [a, c, b].flatMap((value) => (value === undefined ? [] : [value]))
  assert.strictEqual(countSound({ hashes, checksums: swapped(checksums), payloads: swapped(payloads) }), 1)
})
