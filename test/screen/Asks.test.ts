import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { Answer, PermissionAsker, type PermissionRequest } from "@daybook/core/permission/PermissionAsker"
import * as Identifiers from "@daybook/log/domain/Identifiers"
import * as Asks from "../../packages/cli/src/screen/Asks.ts"

const request = (callID: string): PermissionRequest => ({
  sessionID: Identifiers.SessionID.make("ses_a"),
  callID,
  tool: "read",
  agent: "build",
  location: { directory: "/work" },
  permission: "read",
  resources: ["x"],
  title: "x",
  subject: { type: "read", path: "x" },
  notes: [],
  always: []
})

const asking = (asks: Asks.Asks, callID: string) =>
  Effect.flatMap(PermissionAsker, ({ ask }) => ask(request(callID))).pipe(Effect.provide(asks.layer), Effect.fork)

const open = (asks: Asks.Asks) => asks.pending().map((pending) => pending.request.callID)

describe("permissions of the screen", () => {
  it.effect("SC-520: each call waits for its own answer, the oldest first", () =>
    Effect.gen(function* () {
      const asks = Asks.make()
      const [one, two] = [yield* asking(asks, "one"), yield* asking(asks, "two")]
      yield* Effect.yieldNow()
      assert.deepStrictEqual(open(asks), ["one", "two"])
      asks.pending()[0]?.answer(Answer.Once())
      asks.pending()[0]?.answer(Answer.Decline())
      assert.deepStrictEqual([yield* Fiber.join(one), yield* Fiber.join(two)], [Answer.Once(), Answer.Decline()])
      assert.deepStrictEqual(open(asks), [])
    })
  )

  it.effect("SC-520: a question whose call ends goes away, and the screen notices", () =>
    Effect.gen(function* () {
      const asks = Asks.make()
      let changes = 0
      asks.watch(() => changes++)
      const one = yield* asking(asks, "one")
      yield* Effect.yieldNow()
      assert.strictEqual(changes, 1)
      yield* Fiber.interrupt(one)
      assert.deepStrictEqual([open(asks), changes], [[], 2])
    })
  )

  it.effect("SC-512: after the screen has gone nobody answers", () =>
    Effect.gen(function* () {
      const asks = Asks.make()
      const one = yield* asking(asks, "one")
      yield* Effect.yieldNow()
      asks.close()
      const two = yield* asking(asks, "two")
      assert.deepStrictEqual(
        [yield* Fiber.join(one), yield* Fiber.join(two)],
        [Answer.Unavailable(), Answer.Unavailable()]
      )
    })
  )

  it("SC-526: a server's questions come and go with its list; one answered here does not come back", () => {
    const asks = Asks.make()
    const answers: Array<Answer> = []
    const served = (ask: string) => ({
      ask,
      request: request(ask),
      answer: (answer: Answer) => void answers.push(answer)
    })
    asks.served([served("one"), served("two")])
    asks.served([served("two"), served("three")])
    assert.deepStrictEqual(open(asks), ["two", "three"])
    asks.pending()[0]?.answer(Answer.Once())
    asks.served([served("two"), served("three")])
    assert.deepStrictEqual([open(asks), answers], [["three"], [Answer.Once()]])
    asks.close()
    assert.deepStrictEqual([open(asks), answers.length], [[], 1])
  })

  it("SC-526: an answer is the server's decision; without one none is sent", () => {
    assert.deepStrictEqual(Asks.decisionOf(Answer.AlwaysFor({ resources: ["a*"] })), {
      decision: "always",
      resources: ["a*"]
    })
    assert.deepStrictEqual(Asks.decisionOf(Answer.Correct({ message: "no" })), { decision: "correct", message: "no" })
    assert.isUndefined(Asks.decisionOf(Answer.Unavailable()))
  })
})
