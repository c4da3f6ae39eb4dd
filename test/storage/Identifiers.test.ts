/** Which identifiers are accepted, and how new ones are made. */
import { assert, it } from "@effect/vitest"
import { Effect, FastCheck as fc, Schema, TestClock } from "effect"
import {
  ActivityID,
  EventID,
  Identifiers,
  layer,
  MessageID,
  PartID,
  SessionID
} from "../../packages/log/src/domain/Identifiers.ts"
import { forAll } from "../support/Cases.ts"

const kinds = { ses: SessionID, msg: MessageID, evt: EventID, prt: PartID, act: ActivityID } as const

it("ST-1: an identifier is its prefix and 1 to 96 safe characters; nothing else is accepted", () => {
  for (const [prefix, schema] of Object.entries(kinds)) {
    const accepts = (value: unknown) => Schema.is(schema)(value)
    for (const suffix of ["a", "A-z.0_9", "..", "x".repeat(96)]) assert.isTrue(accepts(`${prefix}_${suffix}`), suffix)
    const refused = ["", "x".repeat(97), "a/b", "a\\b", "a b", "a\n", "é", "a\u0000", "a:b", "a%2fb"]
    for (const suffix of refused) assert.isFalse(accepts(`${prefix}_${suffix}`), JSON.stringify(suffix))
    for (const value of [prefix, `x${prefix}_a`, `${prefix.toUpperCase()}_a`, 7, null]) assert.isFalse(accepts(value))
  }
})

it("ST-1: whatever is accepted is one plain component of a path", () => {
  forAll([fc.fullUnicodeString()], 40, (text) => {
    const id = `ses_${text}`
    if (!Schema.is(SessionID)(id)) return
    assert.match(id, /^[A-Za-z0-9._-]+$/)
    assert.notInclude([".", ".."], id)
  })
})

it("ST-1: a refusal says what was expected", () => {
  const refused = Schema.decodeUnknownEither(SessionID)("../etc")
  assert.include(String(refused), "expected ses_ followed by 1-96")
})

it.effect("ST-1: generated identifiers are accepted, unique, and in the order in which they were made", () =>
  Effect.gen(function* () {
    const identifiers = yield* Identifiers
    const make = Effect.replicateEffect(identifiers.message, 500)
    const first = yield* make
    yield* TestClock.adjust("1 second")
    const ids = [...first, ...(yield* make)]
    assert.isTrue(ids.every(Schema.is(MessageID)))
    assert.strictEqual(new Set(ids).size, 1000)
    assert.deepStrictEqual([...ids].sort(), ids)
    // A clock that steps back does not turn the order around.
    yield* TestClock.setTime(0)
    const later = yield* identifiers.message
    assert.isAbove(later.localeCompare(ids.at(-1) ?? ""), 0)
  }).pipe(Effect.provide(layer))
)
