/** Splitting texts into messages. Spec: DI-20..DI-25 in specs/discord.md. */
import { assert, describe, it } from "@effect/vitest"
import { FastCheck } from "effect"
import { most, publishable, publishableSoFar, split } from "../../packages/discord/src/post/Text.ts"
import { cases } from "../support/Cases.ts"

const line = FastCheck.oneof(
  { weight: 3, arbitrary: FastCheck.lorem({ maxCount: 12 }) },
  FastCheck.constantFrom(
    "",
    "```",
    "```ts",
    "````md",
    "````",
    "~~~",
    "  ```",
    "- item",
    "> quote",
    "@everyone",
    "a``b```c"
  ),
  FastCheck.constantFrom("x".repeat(500), "wörd ".repeat(90), "🎉".repeat(300), "y".repeat(5_000), "z".repeat(1_999))
)
const text = FastCheck.array(line, { maxLength: 60 }).map((lines) => lines.join("\n"))

/** What a reader reads: without fences, space and invisible characters. */
const letters = (texts: ReadonlyArray<string>): string =>
  texts
    .join("\n")
    .replaceAll("\u200b", "")
    .split("\n")
    .filter((each) => !/^\s*(?:`{3,}|~{3,})[\w+#.-]*\s*$/.test(each))
    .join("")
    .replaceAll(/\s/g, "")

describe("Split", () => {
  it.prop(
    "DI-20: a text in messages is complete and in order, and each has at most 2,000 characters, one of them visible",
    [text],
    ([given]) => {
      const messages = split(given)
      for (const message of messages) {
        assert.isAtMost(message.length, most)
        assert.notStrictEqual(message.replaceAll(/[`~\s\u200b]/g, "") === "" && message.length > 12, true)
      }
      assert.strictEqual(letters(messages), letters([given]))
    },
    { fastCheck: { numRuns: cases(300) } }
  )

  it.prop(
    "DI-21: every message closes the blocks of code that it opens",
    [text],
    ([given]) => {
      for (const message of split(given)) assert.strictEqual(message.split("```").length % 2, 1, message)
    },
    { fastCheck: { numRuns: cases(300) } }
  )

  it.prop(
    "DI-22: no message ends or begins within a character",
    [FastCheck.array(FastCheck.constantFrom("🎉", "a", " "), { minLength: 900, maxLength: 4_000 })],
    ([parts]) => {
      for (const message of split(parts.join(""), 100)) assert.notMatch(message, /\p{Surrogate}/u)
    },
    { fastCheck: { numRuns: cases(30) } }
  )

  it("DI-20: a text that fits stays whole, and a longer one is cut between paragraphs", () => {
    assert.deepStrictEqual(split("one\n\ntwo"), ["one\n\ntwo"])
    const [a, b] = ["a".repeat(1_200), "b".repeat(1_200)]
    assert.deepStrictEqual(split(`${a}\n\n${b}\n\nend`), [a, `${b}\n\nend`])
  })

  it("DI-21: a block that is cut is closed, and opened again with its language", () => {
    const lines = Array.from({ length: 300 }, (_, i) => `const x${i} = ${i}`)
    const messages = split(`Look:\n\`\`\`ts\n${lines.join("\n")}\n\`\`\`\nDone.`)
    assert.isAbove(messages.length, 1)
    for (const message of messages.slice(1)) assert.match(message, /^```ts\nconst/)
    assert.match(messages[0] ?? "", /^Look:\n```ts\nconst x0 = 0\n[^]*\n```$/)
    assert.match(messages.at(-1) ?? "", /\n```\nDone\.$/)
  })

  it("DI-23: a block within a block is shown as text of the outer one", () => {
    assert.deepStrictEqual(split("````md\n```js\nx\n```\n````"), ["```md\n`\u200b``js\nx\n`\u200b``\n```"])
  })
})

describe("Publishable", () => {
  it("DI-24: secrets and control characters are not published, whole or while the text grows", () => {
    const key = `sk-${"a1B2".repeat(10)}`
    assert.notInclude(publishable(`key: ${key}\u0000`, []), key)
    assert.notInclude(publishable("the value is hunter2hunter2", ["hunter2hunter2"]), "hunter2")
    const pem = "-----BEGIN RSA PRIVATE KEY-----\nMIIabc\n-----END RSA PRIVATE KEY-----\nafter\n"
    for (let length = 0; length <= pem.length; length++) {
      assert.notInclude(publishableSoFar(pem.slice(0, length), []), "MII")
    }
    assert.include(publishableSoFar(pem, []), "after")
    assert.strictEqual(publishableSoFar("done\nsk-12", []), "done\n")
  })
})
