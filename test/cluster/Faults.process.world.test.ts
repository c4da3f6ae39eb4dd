/** The fault harness (`support/Faults.ts`), with few faults. DAYBOOK_SEED chooses them. */
import { assert, beforeAll, it } from "@effect/vitest"
import { Effect, Random } from "effect"
import { describe } from "vitest"
import { build } from "../cli/support/Bundle.ts"
import { lacks } from "../support/Parts.ts"
import { type Plan, survives } from "./support/Faults.ts"

beforeAll(() => void build())

/** What is wrong after these faults. */
const problemsAfter = (faults: Plan["faults"]) =>
  Effect.gen(function* () {
    const seed = Number(process.env["DAYBOOK_SEED"] ?? (yield* Random.nextIntBetween(0, 2 ** 31)))
    return yield* survives({ seed, nodes: 3, clients: 3, faults, atOnce: 2 })
  })

describe.skipIf(lacks("postgres"))("nodes under faults", () => {
  it.live(
    "CU-50, CU-51: each acknowledged prompt runs once, and each client hears each event once, whatever breaks",
    () =>
      Effect.gen(function* () {
        const problems = yield* problemsAfter({ kill: 2, frozen: 1, crash: 1, cut: 2, held: 1 })
        assert.deepStrictEqual(problems, [])
      }),
    240_000
  )

  it.live(
    "CU-52, CU-55: all nodes end with SIGTERM and begin again, one after the other, and no turn is cut off",
    () => Effect.map(problemsAfter({ end: 1 }), (problems) => assert.deepStrictEqual(problems, [])),
    240_000
  )
})
