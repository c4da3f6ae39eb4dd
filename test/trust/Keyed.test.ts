/** Calls that come while one is under way. */
import { assert, it } from "@effect/vitest"
import { sharedCalls } from "../../packages/core/src/support/Keyed.ts"

/** Calls whose results the test gives, in the order of their beginnings. */
const setup = () => {
  const begun: Array<{ readonly key: string; readonly end: (value: number) => void; readonly fail: () => void }> = []
  const call = sharedCalls(
    (key: string) =>
      new Promise<number>((resolve, reject) => begun.push({ key, end: resolve, fail: () => reject(new Error("no")) }))
  )
  return { begun, call }
}

it("TR-60: queries that come while one is under way share the next, which begins when that one has ended", async () => {
  const { begun, call } = setup()
  const first = call("a")
  const [second, third] = [call("a"), call("a")]
  assert.lengthOf(begun, 1)
  begun[0]?.end(1)
  assert.strictEqual(await first, 1)
  begun[1]?.end(2)
  assert.deepStrictEqual([await second, await third, begun.length], [2, 2, 2])
})

it("TR-60: queries of other projects do not wait", () => {
  const { begun, call } = setup()
  void call("a")
  void call("b")
  assert.deepStrictEqual(
    begun.map(({ key }) => key),
    ["a", "b"]
  )
})

it("TR-60: a query that fails does not fail the next one", async () => {
  const { begun, call } = setup()
  const failed = call("a").catch(() => "failed")
  const next = call("a")
  begun[0]?.fail()
  assert.strictEqual(await failed, "failed")
  begun[1]?.end(2)
  assert.strictEqual(await next, 2)
})
