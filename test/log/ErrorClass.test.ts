/** The classes of errors: their names, fields and sentences. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { ErrorClass } from "../../packages/log/src/support/ErrorClass.ts"

class Busy extends ErrorClass<Busy>("test")("Busy")(
  { room: Schema.String, until: Schema.Int },
  ({ room, until }) => `${room} is busy until ${until}`
) {}

class Gone extends ErrorClass<Gone>("test")("Gone")({ message: Schema.String }) {}

describe("the class of an error", () => {
  it("says its sentence, which no form of it stores", () => {
    const busy = new Busy({ room: "attic", until: 7 })
    assert.strictEqual(busy.message, "attic is busy until 7")
    assert.strictEqual(String(busy), "Busy: attic is busy until 7")
    assert.deepStrictEqual(Schema.encodeSync(Busy)(busy), { _tag: "Busy", room: "attic", until: 7 })
    assert.strictEqual(
      Schema.decodeSync(Busy)({ _tag: "Busy", room: "cellar", until: 8 }).message,
      "cellar is busy until 8"
    )
  })

  it("has the message of its field without a sentence", () => {
    assert.strictEqual(new Gone({ message: "it is gone" }).message, "it is gone")
  })

  it.effect("is caught by its tag", () =>
    Effect.gen(function* () {
      const room = yield* Effect.catchTag(new Busy({ room: "attic", until: 7 }), "Busy", ({ room }) =>
        Effect.succeed(room)
      )
      assert.strictEqual(room, "attic")
    })
  )
})
