import { assert, it } from "@effect/vitest"
import { Arbitrary, Effect, Either, FastCheck as fc, Schema } from "effect"
import { SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { type InvalidInput, validate } from "../../packages/log/src/domain/InvalidInput.ts"
import { Delivery, Location, ModelRef, PromptInput } from "../../packages/log/src/domain/Values.ts"
import { CreateOptions } from "../../packages/core/src/session/SessionOptions.ts"

/** A value of a schema, changed in one place: a field that it does not have, a field without a value, or another value. */
const changed = (value: unknown): fc.Arbitrary<unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value)
    ? fc.oneof(
        fc.constant(value),
        fc.constant({ ...value, unheardOf: 1 }),
        fc
          .tuple(fc.constantFrom(...Object.keys(value), "text"), fc.constantFrom(undefined, null, 1, "", "x", [], {}))
          .map(([key, other]) => ({ ...value, [key]: other }))
      )
    : fc.oneof(fc.constant(value), fc.constantFrom(undefined, null, 1, "", "x", [], {}))

interface Outcomes {
  readonly decoded: Either.Either<unknown, unknown>
  readonly checked: Effect.Effect<Either.Either<unknown, InvalidInput>>
}

/** What the schema makes of a value, and what the check makes of it. */
const both = <A, I>(schema: Schema.Schema<A, I>) =>
  Arbitrary.make(schema)
    .chain(changed)
    .map((value): Outcomes => ({
      decoded: Schema.decodeUnknownEither(schema)(value),
      checked: Effect.either(validate("argument", schema, value))
    }))

it.effect.prop(
  "IB-8: an argument passes exactly as its schema decodes it, and is refused exactly if its schema refuses it",
  [fc.oneof(both(PromptInput), both(Delivery), both(SessionID), both(Location), both(ModelRef), both(CreateOptions))],
  ([{ checked, decoded }]) =>
    Effect.gen(function* () {
      const found = yield* checked
      assert.strictEqual(found._tag, decoded._tag)
      if (Either.isRight(found)) assert.deepStrictEqual(found, decoded)
      // The field is the argument, or a path below it.
      else assert.match(found.left.field, /^argument(?:\.|$)/)
    }),
  { fastCheck: { numRuns: 150 } }
)
