/** What an import shows while it runs. */
import { assert, it } from "@effect/vitest"
import { barText, folderText } from "../../packages/cli/src/commands/import.ts"

it("CL-222: folders are listed in columns", () => {
  const lines = [folderText("Codex archive", "/a", 1, 1_600), folderText("pi", "/b", 12_000, 2_600_000)]
  assert.strictEqual(new Set(lines.map((line) => line.indexOf("/"))).size, 1)
  assert.match(lines.join(""), /^Codex archive +1 log +1\.6 KB {2}\/a\npi +12000 logs +2\.6 MB {2}\/b\n$/)
})

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
