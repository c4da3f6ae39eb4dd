/**
 * The faults of test/cluster/Faults.process.world.test.ts, many times, three at once. DAYBOOK_SEED chooses; DAYBOOK_RUNS says how
 * many faults of each kind, as `20` or `kill=50,end=10`.
 */
import { assert, beforeAll, it } from "@effect/vitest"
import { Effect, Random } from "effect"
import { describe } from "vitest"
import { build } from "../cli/support/Bundle.ts"
import { kinds, survives } from "../cluster/support/Faults.ts"
import { lacks } from "../support/Parts.ts"

beforeAll(() => void build())

/** How many of each kind this text says. */
const faultsIn = (text: string) => {
  const counts = new Map(text.split(",").map((each) => [each.split("=")[0], Number(each.split("=")[1])]))
  return Object.fromEntries(kinds.map((kind) => [kind, /^\d+$/.test(text) ? Number(text) : (counts.get(kind) ?? 0)]))
}

describe.skipIf(lacks("postgres") || lacks("faketime"))("nodes under many faults", () => {
  it.live(
    "CU-50, CU-51, CU-57: each acknowledged prompt runs once and each client hears each event once, over many faults",
    () =>
      Effect.gen(function* () {
        const seed = Number(process.env["DAYBOOK_SEED"] ?? (yield* Random.nextIntBetween(0, 2 ** 31)))
        const faults = faultsIn(process.env["DAYBOOK_RUNS"] ?? "20")
        assert.deepStrictEqual(yield* survives({ seed, nodes: 5, clients: 6, faults, atOnce: 3 }), [])
      })
  )
})
