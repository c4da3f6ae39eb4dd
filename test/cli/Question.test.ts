import { assert, describe, it } from "@effect/vitest"
import { Effect, TestClock } from "effect"
import { answerOf, questionText } from "../../packages/cli/src/terminal/QuestionPrompt.ts"
import { read } from "../../packages/cli/src/terminal/Question.ts"

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

  /** A keyboard whose keys the test presses, and what was written. */
  const place = () => {
    let take: ((typed: string | undefined) => void) | undefined
    const written: Array<string> = []
    const modes: Array<string> = []
    return {
      written,
      modes,
      press: (keys: string | undefined) =>
        Effect.zipRight(
          Effect.yieldNow(),
          Effect.sync(() => take?.(keys))
        ),
      at: {
        marksPastes: false,
        write: (text: string) => void written.push(text),
        keyboard: {
          listen: (mode: "unseen" | "lines", given: (typed: string | undefined) => void) => {
            modes.push(mode)
            take = given
            return () => {
              take = undefined
            }
          }
        }
      }
    }
  }

  it.effect(
    "CL-153: keys are ignored until none came for a moment, and only then the question says how to answer",
    () =>
      Effect.gen(function* () {
        const { at, press, written } = place()
        const asked = yield* Effect.fork(read(at, { shown: "May I?\n", prompt: "[y/n] " }))
        for (let presses = 0; presses < 5; presses++) {
          yield* press("y\n")
          yield* TestClock.adjust("299 millis")
        }
        assert.deepStrictEqual(written, ["May I?\n"])
        yield* TestClock.adjust("600 millis")
        assert.deepStrictEqual(written, ["May I?\n", "[y/n] "])
        yield* press("no\n")
        yield* TestClock.adjust("30 millis")
        assert.strictEqual(yield* asked, "no")
      })
  )

  it.effect.each([
    ["lines in one piece", "y\ny\n", ""],
    ["a line and what follows at once", "y\n", "more"],
    ["a line and another at once", "y\n", "y\n"],
    ["a line that a pasted text begins with", "\u001b[200~y\n", ""]
  ] as const)("CL-154: %s is no answer, and the question is asked again", ([, line, rest]) =>
    Effect.gen(function* () {
      const { at, press, written } = place()
      const asked = yield* Effect.fork(read(at, { prompt: "[y/n] " }))
      yield* TestClock.adjust("300 millis")
      yield* press(line)
      if (rest !== "") yield* press(rest)
      yield* TestClock.adjust("30 millis")
      assert.deepStrictEqual(written.length, 2)
      yield* TestClock.adjust("600 millis")
      assert.deepStrictEqual(written.at(-1), "[y/n] ")
      yield* press("\u001b[200~no\u001b[201~\n")
      yield* TestClock.adjust("30 millis")
      assert.strictEqual(yield* asked, "no")
    })
  )

  it.effect("CL-36: the end of the input is nobody", () =>
    Effect.gen(function* () {
      const { at, press } = place()
      const asked = yield* Effect.fork(read(at, { prompt: "[y/n] " }))
      yield* TestClock.adjust("300 millis")
      yield* press(undefined)
      assert.isUndefined(yield* asked)
    })
  )
})
