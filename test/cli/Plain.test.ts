import { assert, describe, it } from "@effect/vitest"
import { oneLine } from "../../packages/cli/src/render/Plain.ts"

describe("Plain", () => {
  it("CL-31: a line is one line, safe, and cut by the cells that it takes, not within a character", () => {
    assert.strictEqual(oneLine("a\n  b\tc "), "a b c")
    assert.strictEqual(oneLine("👍👍👍👍", 5), "👍👍…")
    assert.strictEqual(oneLine("x\u001b]0;title\u0007", 40), "x␛]0;title␇")
    assert.strictEqual(oneLine("abc", 3), "abc")
  })
})
