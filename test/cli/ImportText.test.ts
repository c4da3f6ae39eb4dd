/** What an import shows while it runs. */
import { assert, it } from "@effect/vitest"
import { barText } from "../../packages/cli/src/render/ImportText.ts"

it("CL-224: the bar shows the share and the size of all logs, and the log that is read", () => {
  const bars = [0, 500_000, 1_000_000, 2_000_000].map((done) => barText(done, 1_000_000, "/logs/one.jsonl"))
  assert.deepStrictEqual(
    bars.map((bar) => [bar.split("#").length - 1, /(\d+) %/.exec(bar)?.[1]]),
    [
      [0, "0"],
      [12, "50"],
      [24, "100"],
      [24, "100"]
    ]
  )
  for (const bar of bars) assert.match(bar, /% of 1(\.0)? ?MB {2}\/logs\/one\.jsonl$/)
  assert.include(barText(0, 0, "x"), "100 %")
})
