/** The sweep's choice of sessions. What a sweep does between nodes: Placement.world.test.ts. */
import { assert, it } from "@effect/vitest"
import { describe } from "vitest"
import * as Sweep from "../../packages/cluster/src/Sweep.ts"
import { session } from "../support/Logs.ts"

describe("the sweep of a node", () => {
  it("CU-3: sweeps wake at most 100 sessions each, and together every one, also if the first still wait", () => {
    const ids = Array.from({ length: 250 }, session).toSorted()
    const first = Sweep.turn(ids, undefined)
    const second = Sweep.turn(ids, first.at(-1))
    const third = Sweep.turn(ids, second.at(-1))
    assert.deepStrictEqual(
      [first, second, third].map(({ length }) => length),
      [Sweep.page, Sweep.page, Sweep.page]
    )
    assert.strictEqual(new Set([...first, ...second, ...third]).size, ids.length)
  })

  it("CU-3: a sweep whose last session no longer waits goes on after it", () => {
    const ids = Array.from({ length: 3 }, session).toSorted()
    const gone = ids[1]
    const left = ids.filter((id) => id !== gone)
    assert.deepStrictEqual(Sweep.turn(left, gone), left.toReversed())
  })
})
