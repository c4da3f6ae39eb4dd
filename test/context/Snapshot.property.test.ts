/** How a snapshot's changes are stored: complete, and without a text that the event or the log already holds. */
import { assert, it } from "@effect/vitest"
import { FastCheck as fc } from "effect"
import { advance, difference, sameSnapshot, type Snapshot } from "../../packages/log/src/domain/Snapshot.ts"
import { forAll } from "../support/Cases.ts"

const long = (name: string) => `${name}: ${"all of it, ".repeat(12)}${name}`
const words = fc.constantFrom("", "short", "null", "\ud800", ...["a", "b", "c", "\ud83d"].map(long))
const value = fc.oneof(
  words,
  fc.constant(null),
  fc.jsonValue({ maxDepth: 2 }),
  fc.array(fc.record({ path: fc.constantFrom("x", "y"), text: words }), { maxLength: 3 }),
  fc.dictionary(fc.constantFrom("__proto__", "0", "text", "deep"), words, { maxKeys: 3 })
)
const told = fc.record({ value, removed: words }, { requiredKeys: ["value"] })
const snapshot: fc.Arbitrary<Snapshot> = fc.dictionary(fc.constantFrom("area/a", "area/b", "area/c", "agent/d"), told)
const text = fc.array(words, { maxLength: 4 }).map((texts) => texts.join("\n\n"))

/** As the log stores it. */
const stored = <A>(data: A): A => JSON.parse(JSON.stringify(data)) as A

it("CX-52: any snapshot follows from the one before and the stored change, whatever the event's text", () => {
  forAll([snapshot, fc.array(fc.tuple(snapshot, text), { minLength: 1, maxLength: 4 })], 120, (first, changes) => {
    let [now, before] = [stored(first), stored(first)]
    for (const [next, text] of changes) {
      now = advance(now, stored(difference(before, stored(next), text)), text)
      assert.deepStrictEqual(now, stored(next))
      assert.isTrue(sameSnapshot(now, stored(next)))
      before = stored(next)
    }
  })
})

it("CX-52: a change holds no long text of its event or of the snapshot before", () => {
  const before = { "area/files": { value: [{ path: "a", text: long("a") }] }, "area/gone": { value: long("gone") } }
  const next = {
    "area/files": {
      value: [
        { path: "a", text: long("a") },
        { path: "b", text: long("b") }
      ]
    },
    "area/new": { value: { text: "short" } }
  }
  const change = difference(before, next, `To these is added:\n${long("b")}`)
  assert.deepStrictEqual(change, {
    told: {
      "area/files": {
        value: [
          { path: "a", text: null },
          { path: "b", text: null }
        ]
      },
      "area/new": { value: { text: "short" } }
    },
    quotes: [
      { at: ["area/files", 0, "text"], was: ["area/files", 0, "text"] },
      { at: ["area/files", 1, "text"], from: 19, to: 19 + long("b").length }
    ],
    gone: ["area/gone"]
  })
  assert.deepStrictEqual(difference(next, next, "nothing"), { told: {} })
})
