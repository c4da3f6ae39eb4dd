/** A program whose young generation grows; it collects and prints the sizes before and after, and ends by itself. */
import { getHeapSpaceStatistics } from "node:v8"
import { Effect } from "effect"
import { collect } from "../../../packages/log/src/support/Garbage.ts"

const youngGeneration = () =>
  getHeapSpaceStatistics().find(({ space_name: name }) => name === "new_space")?.space_size ?? Number.NaN

// What survives collections makes V8 enlarge the young generation.
let alive: Array<{ readonly number: number }> = []
for (let number = 0; number < 1_500_000; number++) {
  if (number % 200_000 === 0) alive = []
  alive.push({ number })
}
const before = youngGeneration()
alive = []
Effect.runPromise(collect).then(() => console.log(JSON.stringify({ before, after: youngGeneration() })))
