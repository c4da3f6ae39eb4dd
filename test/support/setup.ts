/**
 * Runs before each test file. `it.layer` of `@effect/vitest` replaces `effect` and `scoped` on the `it` that all files of a
 * worker share; this file restores them.
 *
 * All properties of a run get one seed. The quick suite always has the same seed, so that a commit that passed passes again;
 * `npm run test:long` draws one. `DAYBOOK_SEED` sets it, `DAYBOOK_SHRINK=1` searches for a smaller counterexample.
 */
import { effect, flakyTest, it, layer, live, prop, scoped, scopedLive } from "@effect/vitest"
import { FastCheck } from "effect"
import { afterEach, expect } from "vitest"
import { cases } from "./Cases.ts"
import { useMemory } from "./MemoryFolder.ts"

useMemory(expect.getState().testPath)

Object.assign(it, { effect, flakyTest, layer, live, prop, scoped, scopedLive })

const given = process.env["DAYBOOK_SEED"] ?? "20260101"
const seed = given === "random" ? Math.floor(Math.random() * 2 ** 31) : Number(given)

FastCheck.configureGlobal({
  seed,
  numRuns: cases(40),
  // Shrinking repeats slow cases until the test times out, and then nothing is reported.
  endOnFailure: process.env["DAYBOOK_SHRINK"] !== "1",
  // A case that hangs is a counterexample, reported before the test's own time limit.
  timeout: 25_000
})

afterEach(({ task }) => {
  if (task.result?.state === "fail") console.log(`${task.name}\n  repeat with DAYBOOK_SEED=${seed}`)
})
