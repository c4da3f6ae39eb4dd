/** Tests the nonces of posts. Spec: specs/discord.md. */
import { assert, describe, it } from "@effect/vitest"
import { FastCheck } from "effect"
import { nonceOf } from "@daybook/discord"
import { cases } from "../support/Cases.ts"

const key = FastCheck.record({ sessionID: FastCheck.string(), event: FastCheck.string(), chunk: FastCheck.nat(50) })

describe("Nonces", () => {
  it.prop(
    "DI-10: a nonce has at most 25 characters, and two posts have the same nonce only if they are the same post",
    [key, key],
    ([one, other]) => {
      assert.isAtMost(nonceOf(one).length, 25)
      assert.strictEqual(nonceOf(one) === nonceOf(other), JSON.stringify(one) === JSON.stringify(other))
      assert.strictEqual(nonceOf({ ...one }), nonceOf(one))
      assert.notStrictEqual(nonceOf(one), nonceOf({ ...one, event: `${one.event}0` }))
      assert.notStrictEqual(nonceOf(one), nonceOf({ ...one, chunk: one.chunk + 1 }))
      assert.notStrictEqual(nonceOf(one), nonceOf({ ...one, sessionID: `${one.sessionID}0` }))
    },
    { fastCheck: { numRuns: cases(100) } }
  )
})
