import { assert, it } from "@effect/vitest"
import { Either, FastCheck as fc } from "effect"
import { apply, difference, type Json } from "../../../packages/formats/src/export/Difference.ts"
import { cases, forAll } from "../../support/Cases.ts"

const key = fc.constantFrom("a", "b", "c", "text", "__proto__", "constructor", "2", "1", "")
const text = fc.oneof(fc.string(), fc.string({ minLength: 48, maxLength: 120 }), fc.constant("long ".repeat(20)))

const value = fc.letrec<{ json: Json }>((tie) => ({
  json: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    fc.oneof(text, fc.double({ noNaN: true, noDefaultInfinity: true }), fc.boolean(), fc.constant(null)),
    fc.array(tie("json"), { maxLength: 4 }),
    fc.array(fc.tuple(key, tie("json")), { maxLength: 5 }).map((fields) => Object.fromEntries(fields))
  )
})).json

/** As a log holds it: no value but those of JSON, keys in the order of JSON. */
const asRead = (given: Json): Json => JSON.parse(JSON.stringify(given))

const roundTrip = (before: Json, after: Json) => {
  const found = difference(before, after)
  if (found === undefined) return before
  return Either.getOrThrow(apply(before, JSON.parse(JSON.stringify(found))))
}

it("IM-21: the difference, applied to the first value, gives the second one, byte for byte", () => {
  forAll([value, value], 200, (before, after) => {
    const [first, second] = [asRead(before), asRead(after)]
    assert.strictEqual(JSON.stringify(roundTrip(first, second)), JSON.stringify(second))
  })
})

it("IM-21: equal values have no difference; the order of fields is one", () => {
  fc.assert(
    fc.property(value, (given) => assert.strictEqual(difference(asRead(given), asRead(given)), undefined)),
    { numRuns: cases(40) }
  )
  assert.notStrictEqual(difference({ a: 1, b: 2 }, { b: 2, a: 1 }), undefined)
})

it("IM-21: a long text of the first value is not repeated, in whatever form the second one has it", () => {
  const long = "All work and no play makes Jack a dull boy. ".repeat(50)
  const before = { role: "user", content: [{ type: "text", text: long }] }
  for (const after of [
    { role: "user", content: long },
    { role: "user", content: [{ type: "text", text: long.slice(10, 500) }] },
    { content: { nested: [`before ${long} after`] } }
  ]) {
    const found = JSON.stringify(difference(before, after))
    assert.isBelow(found.length, 200)
    assert.deepStrictEqual<unknown>(roundTrip(before, after), after)
  }
})

it("IM-21: a stored difference that is none has a reason, and no effect", () => {
  for (const stored of [{ size: -1 }, { new: [["x", 1]] }, 5, null, { text: [[1]] }]) {
    assert.isTrue(Either.isLeft(apply({}, stored)), JSON.stringify(stored))
  }
})
