import { assert, describe, it } from "@effect/vitest"
import { answerOf, questionText } from "../../packages/cli/src/render/QuestionText.ts"

const one = { question: "Which?", options: [{ label: "SQLite" }, { label: "Files", description: "plain\nones" }] }
const several = { ...one, multiple: true }

describe("questions at a terminal", () => {
  it("CL-81: a question shows its numbered options, a line each, and obeys nobody", () => {
    assert.strictEqual(
      questionText({ ...one, header: "Store\u001b[2J" }),
      "Store␛[2J: Which?\n  [1] SQLite\n  [2] Files  plain ones\n"
    )
    assert.include(questionText(several), "(several: their numbers with commas)")
  })

  it.each([
    [one, "2", "Files"],
    [one, " 1 ", "SQLite"],
    [several, "1, 2", "SQLite\nFiles"],
    [one, "1,2", "1,2"],
    [one, "3", "3"],
    [one, "0", "0"],
    [{ question: "How many?" }, "2", "2"],
    [one, " neither, a queue ", "neither, a queue"],
    [one, "", ""]
  ])("CL-81: of %j, %j is the answer %j", (item, typed, answer) => {
    assert.strictEqual(answerOf(item, typed), answer)
  })
})
