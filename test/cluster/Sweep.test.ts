/** The sweep's choice of sessions. What a sweep does between nodes: Placement.world.test.ts. */
import { assert, it } from "@effect/vitest"
import { describe } from "vitest"
import { turn } from "../../packages/cluster/src/Cluster.ts"
import { session } from "../support/Logs.ts"

describe("the sweep of a node", () => {
  it("CU-3: sweeps wake at most 100 sessions each, and together every one, also if the first still wait", () => {
    const ids = Array.from({ length: 250 }, session).toSorted()
    const first = turn(ids, undefined)
    const second = turn(ids, first.at(-1))
    const third = turn(ids, second.at(-1))
    assert.deepStrictEqual(
      [first, second, third].map(({ length }) => length),
      [100, 100, 100]
    )
    assert.strictEqual(new Set([...first, ...second, ...third]).size, ids.length)
  })

  it("CU-3: a sweep whose last session no longer waits goes on after it", () => {
    const ids = Array.from({ length: 3 }, session).toSorted()
    const gone = ids[1]
    const left = ids.filter((id) => id !== gone)
    assert.deepStrictEqual(turn(left, gone), left.toReversed())
  })
})
