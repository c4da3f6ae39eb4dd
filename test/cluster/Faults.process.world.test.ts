/** The fault harness (`support/Faults.ts`), with few faults. DAYBOOK_SEED chooses. */
import { assert, beforeAll, it } from "@effect/vitest"
import { Effect } from "effect"
import { describe } from "vitest"
import { build } from "../cli/support/Bundle.ts"
import { lacks } from "../support/Parts.ts"
import { survives } from "./support/Faults.ts"

beforeAll(() => void build())

const seed = Number(process.env["DAYBOOK_SEED"] ?? Math.floor(Math.random() * 2 ** 31))

describe.skipIf(lacks("postgres"))("nodes under faults", () => {
  it.live(
    "CU-50: each acknowledged prompt runs once",
    () =>
      Effect.gen(function* () {
        const { problems } = yield* survives({
          seed,
          nodes: 3,
          clients: 3,
          prompts: 10,
          faults: { kill: 2, end: 1, crash: 1, cut: 2, held: 2, frozen: 1 }
        })
        assert.deepStrictEqual(problems, [])
      }),
    200_000
  )
})
