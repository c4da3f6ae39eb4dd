/** What a summary is asked with, and what it has to look like (CM-5, CM-6). */
import { assert, it } from "@effect/vitest"
import { FastCheck as fc } from "effect"
import { defaultSettings, limitsOf } from "../../packages/core/src/compaction/Limits.ts"
import {
  askAgain,
  cleanSummary,
  missingHeadings,
  summaryFits,
  summaryPrompt,
  withFiles
} from "../../packages/core/src/compaction/Summary.ts"

const headings = [
  "## Goal",
  "## Constraints & Preferences",
  "## Progress",
  "### Done",
  "### In Progress",
  "### Blocked",
  "## Key Decisions",
  "## Next Steps",
  "## Critical Context",
  "## Relevant Files"
]
const whole = headings.map((heading) => `${heading}\n(none)`).join("\n\n")
const files = { read: { paths: ["a.ts"], leftOut: 0 }, modified: { paths: ["b.ts"], leftOut: 0 } }

it("CM-6: every section is asked for, in order, whether a summary is new, continued or corrected", () => {
  const previous = { summary: "before", recent: "lately" }
  for (const prompt of [summaryPrompt("now"), summaryPrompt("now", previous), askAgain(["Goal"])]) {
    const places = headings.map((heading) => prompt.indexOf(`\n${heading}\n`))
    assert.notInclude(places, -1)
    assert.deepStrictEqual(
      places,
      places.toSorted((a, b) => a - b)
    )
  }
})

it("CM-6: a first summary is asked of the conversation alone, a later one of the last, its recent context and what is new", () => {
  const prompt = summaryPrompt("[User]: now", { summary: withFiles("the past", files), recent: "[User]: lately" })
  assert.include(prompt, "<previous-summary>\nthe past\n</previous-summary>")
  assert.include(prompt, "<previous-recent>\n[User]: lately\n</previous-recent>")
  assert.include(prompt, "<conversation>\n[User]: now\n</conversation>")
  assert.isBelow(prompt.indexOf("the past"), prompt.indexOf("lately"))
  assert.isBelow(prompt.indexOf("lately"), prompt.indexOf("[User]: now"))
  // The lists of files are made anew, not summarized.
  assert.notInclude(prompt, "read-files")
  const first = summaryPrompt("[User]: now")
  assert.include(first, "<conversation>\n[User]: now\n</conversation>")
  assert.notInclude(first, "previous-")
})

it.prop(
  "CM-6: exactly the sections that are missing are named in the one correction",
  [fc.subarray(headings)],
  ([present]) => {
    const missing = missingHeadings(present.map((heading) => `${heading}\n(none)`).join("\n"))
    const titles = headings
      .filter((heading) => !present.includes(heading))
      .map((heading) => heading.replace(/^#+ /, ""))
    assert.deepStrictEqual([...missing], titles)
    for (const title of titles) assert.include(askAgain(missing), `"${title}"`)
  }
)

it("CM-6: a section is recognized at any level, in any case, with the word for its sign; a mention is none", () => {
  assert.deepStrictEqual([...missingHeadings(whole.replace("## Constraints &", "# **constraints and"))], [])
  assert.deepStrictEqual([...missingHeadings(whole.replace("## Goal", "The Goal"))], ["Goal"])
})

it("CM-7: an answer of nothing, or of file lists alone, is no summary", () => {
  assert.strictEqual(cleanSummary(" \n"), "")
  assert.strictEqual(cleanSummary(withFiles("", files)), "")
  assert.strictEqual(cleanSummary(`\n${withFiles(whole, files)}\n`), whole)
})

it("CP-13: neither a summary nor what it is made of ends the block around it", () => {
  const summary = cleanSummary("a </summary> b </conversation-checkpoint> c")
  assert.notInclude(summary, "</summary>")
  assert.notInclude(summary, "</conversation-checkpoint>")
  const prompt = summaryPrompt("x </conversation> y", { summary: "</previous-summary>", recent: "</previous-recent>" })
  for (const tag of ["conversation", "previous-summary", "previous-recent"]) {
    assert.strictEqual(prompt.split(`</${tag}>`).length, 2)
  }
})

it("CM-5: a question that leaves no room for its answer is not asked", () => {
  const limits = limitsOf({ contextTokens: 40_000, outputTokens: 0 }, defaultSettings)
  const room = 4 * (limits.window - limits.summary)
  const prompt = summaryPrompt("x".repeat(10_000))
  assert.isTrue(summaryFits(prompt.padEnd(room), limits))
  assert.isFalse(summaryFits(prompt.padEnd(room + 4), limits))
  const unknown = limitsOf({ contextTokens: 0, outputTokens: 0 }, defaultSettings)
  assert.isTrue(summaryFits(summaryPrompt("x".repeat(4_000_000)), unknown))
})
