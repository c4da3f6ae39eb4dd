import { assert, describe, it } from "@effect/vitest"
import { Struct } from "effect"
import { Answer, type PermissionRequest } from "@daybook/core/permission/PermissionAsker"
import * as Identifiers from "@daybook/log/domain/Identifiers"
import * as Ask from "../../packages/cli/src/screen/Ask.ts"
import { themeOf } from "../../packages/cli/src/screen/Theme.ts"

const theme = themeOf({ NO_COLOR: "1" }, "dark")
const size = { columns: 80, rows: 24 }

const request: PermissionRequest = {
  sessionID: Identifiers.SessionID.make("ses_a"),
  callID: "call_1",
  tool: "bash",
  agent: "build",
  location: { directory: "/work" },
  permission: "bash",
  resources: ["rm -rf x"],
  title: "rm -rf x",
  subject: { type: "command", command: "rm -rf x", folder: ".", warnings: [] },
  notes: [],
  always: ["rm *"]
}
const once = { ...request, always: [] }
const keys: Ask.Mode = { type: "keys" }

describe("questions on the screen", () => {
  it("SC-521: a key counts only a moment after the question was drawn, and after the last other key", () => {
    assert.isFalse(Ask.listens({ at: 1_000, lastKey: 0 }, 1_299))
    assert.isTrue(Ask.listens({ at: 1_000, lastKey: 0 }, 1_300))
    assert.isFalse(Ask.listens({ at: 1_000, lastKey: 1_200 }, 1_499))
    assert.isTrue(Ask.listens({ at: 1_000, lastKey: 1_200 }, 1_500))
  })

  it("SC-520: each key of a permission is its answer, and any other key is none", () => {
    const reply = (key: string, of = request) => Ask.onKey(of, keys, key, 1)
    assert.deepStrictEqual(reply("y"), { type: "answer", answer: Answer.Once() })
    assert.deepStrictEqual(reply("s"), { type: "answer", answer: Answer.Session() })
    assert.deepStrictEqual(reply("a"), { type: "mode", mode: { type: "always" } })
    assert.deepStrictEqual(reply("n"), { type: "answer", answer: Answer.Decline() })
    assert.deepStrictEqual(reply("\u001b"), { type: "answer", answer: Answer.Decline() })
    for (const key of ["\r", " ", "x", "1"]) assert.isUndefined(reply(key))
  })

  it("SC-571: every key that answers is named, also on 40 columns", () => {
    for (const columns of [40, 60, 80, 120]) {
      const words = Ask.permissionLines(request, keys, { columns, rows: 30 }, theme, true).at(-1) ?? ""
      for (const key of ["y", "s", "a", "v", "c", "n"]) assert.include(words, `[${key}]`)
      assert.isAtMost(words.length, columns)
    }
  })

  it("SC-520: what cannot be saved is not offered, and its key means nothing", () => {
    assert.isUndefined(Ask.onKey(once, keys, "a", 1))
    assert.isUndefined(Ask.onKey(once, keys, "s", 1))
    const lines = Ask.permissionLines(once, keys, size, theme, true).join("\n")
    assert.notInclude(lines, "always")
    assert.include(lines, "rm -rf x")
  })

  it("SC-523: words correct the call; none go back; a pattern is saved in place of the shown one", () => {
    assert.deepStrictEqual(Ask.onText({ type: "words" }, "use trash"), {
      type: "answer",
      answer: Answer.Correct({ message: "use trash" })
    })
    assert.deepStrictEqual(Ask.onText({ type: "words" }, " "), { type: "mode", mode: keys })
    assert.deepStrictEqual(Ask.onText({ type: "always" }, ""), { type: "answer", answer: Answer.Always() })
    assert.deepStrictEqual(Ask.onText({ type: "always" }, "rm x*"), {
      type: "answer",
      answer: Answer.AlwaysFor({ resources: ["rm x*"] })
    })
  })

  it("SC-520: all questions of a call are answered in order, and numbers are their options", () => {
    const pending = {
      sessionID: Identifiers.SessionID.make("ses_a"),
      messageID: Identifiers.MessageID.make("msg_a"),
      callID: "call_1",
      askedAt: 0,
      questions: [{ question: "Which?", options: [{ label: "red" }, { label: "blue" }] }, { question: "How many?" }]
    }
    const first = Ask.answered({ pending, answers: [] }, "2")
    assert.deepStrictEqual(first, { pending, answers: ["blue"] })
    assert.include(Ask.questionLines({ pending, answers: ["blue"] }, size, theme, true).join("\n"), "How many?")
    assert.deepStrictEqual(Ask.answered({ pending, answers: ["blue"] }, "7"), ["blue", "7"])
  })

  it("SC-524: a list is searched by words in any order, and the bar stays in it", () => {
    const list: Ask.List = {
      title: "t",
      filter: "",
      at: 0,
      choices: [
        { value: "1", label: "Fix the tests" },
        { value: "2", label: "Write the guide", about: "docs" },
        { value: "3", label: "Tests of the guide" }
      ]
    }
    const typed = Array.from("guide test").reduce(Ask.onListKey, list)
    assert.deepStrictEqual(Ask.matching(typed).map(Struct.get("value")), ["3"])
    assert.strictEqual(Ask.chosen(Ask.onListKey(list, "\u001b[A"))?.value, "3")
    assert.strictEqual(Ask.chosen(Ask.onListKey(Ask.onListKey(list, "\u001b[B"), "w"))?.value, "2")
    assert.isUndefined(Ask.chosen(Array.from("nothing").reduce(Ask.onListKey, list)))
  })
})
