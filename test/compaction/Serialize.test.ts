/** A conversation as flat text (CM-3, CM-8). */
import { assert, it } from "@effect/vitest"
import {
  clip,
  clipChars,
  serialize,
  serializeMessage,
  tighterClips
} from "../../packages/core/src/compaction/Serialize.ts"
import type { Message } from "../../packages/log/src/domain/Message.ts"
import { assistant, history, nativeMark, results, says, text, tool, user } from "./support/Histories.ts"

const base = { id: user(0, "").id, seq: 0, createdAt: 0 }

it("CM-3: every kind of message has its label, a call its JSON input, and a file its name only", () => {
  const messages: ReadonlyArray<Message> = [
    {
      ...base,
      type: "user",
      text: "Look",
      files: [{ uri: "data:image/png;base64,QUJD", mime: "image/png", name: "a.png" }]
    },
    assistant(1, [
      { type: "reasoning", id: "r", text: "Where is it?", providerMetadata: { acme: { signature: nativeMark } } },
      text("I look."),
      tool({ name: "bash", input: { command: "ls" }, content: [{ type: "text", text: "a\nb" }] }),
      tool({ name: "edit", input: {}, state: "error", error: { type: "edit.refused", message: "no such text" } }),
      tool({ name: "glob", input: {}, structured: { count: 0 } })
    ]),
    { ...base, type: "system", text: "The date is new." },
    { ...base, type: "synthetic", text: "A reminder." },
    { ...base, type: "shell", callID: "s", command: "pwd", output: "/" },
    { ...base, type: "agent-switched", agent: "plan" }
  ]
  assert.strictEqual(
    serialize(messages),
    `[User]: Look
[Attached]: a.png (image/png)

[Assistant reasoning]: Where is it?
[Assistant]: I look.
[Assistant tool call]: bash {"command":"ls"}
[Tool result]: a
b
[Assistant tool call]: edit {}
[Tool error]: no such text
[Assistant tool call]: glob {}
[Tool result]: {"count":0}

[System update]: The date is new.

[Synthetic context]: A reminder.

[Shell]: $ pwd
/`
  )
})

it("CM-3: a prompt is what it was expanded to, with each thing it pointed at, cut as a tool's output is", () => {
  const message: Message = {
    ...base,
    type: "user",
    text: "/review @a.ts",
    system: "Be kind.",
    expansion: {
      text: "Review a.ts",
      parts: [
        { kind: "file", name: "a.ts", content: { type: "text", text: "x".repeat(2_001) } },
        {
          kind: "media",
          name: "b.png",
          content: { type: "file", uri: "data:image/png;base64,QQ==", mime: "image/png" }
        }
      ]
    }
  }
  assert.strictEqual(
    serialize([message]),
    `[System update]: Be kind.
[User]: Review a.ts
[Attached]: a.ts: ${"x".repeat(2_000)}[... 1 more characters]
[Attached]: b.png: [file: unnamed (image/png)]`
  )
})

it("CM-3: a tool's output is cut at 2,000 characters with a mark that counts what is missing", () => {
  const shown = (length: number) => serialize([results(0, { content: [{ type: "text", text: "x".repeat(length) }] })])
  assert.isTrue(shown(2_000).endsWith("x"))
  assert.isTrue(shown(2_001).endsWith("x[... 1 more characters]"))
  assert.strictEqual(shown(1_000_000).length, shown(2_000).length + "[... 998000 more characters]".length)
})

it("CM-3: a cut never leaves half a character", () => {
  for (const lead of ["", "x"]) {
    const cut = clip(lead + "𝄞".repeat(clipChars))
    assert.strictEqual(Buffer.from(cut).toString(), cut)
    const [, kept = "", missing] = /^(.*)\[\.\.\. (\d+) more characters\]$/.exec(cut) ?? []
    assert.strictEqual(kept.length + Number(missing), lead.length + 2 * clipChars)
  }
})

it.prop(
  "CM-3: only what people and models said is kept whole: the rest is bounded for each part",
  [history()],
  ([messages]) => {
    let bound = 0
    for (const message of messages) {
      bound += clipChars * 2 + 500
      if (message.type === "user" || message.type === "synthetic") bound += message.text.length
      if (message.type !== "assistant") continue
      for (const part of message.content)
        bound += (part.type === "text" ? (part.text ?? "").length : 2 * clipChars) + 500
    }
    assert.isAtMost(serialize(messages).length, bound)
  }
)

it.prop("CM-8: nothing of a provider's own is in the text", [history()], ([messages]) => {
  assert.notInclude(serialize(messages), nativeMark)
})

it.prop("CM-4: each call is followed by its one result, in the order of the calls", [history()], ([messages]) => {
  for (const message of messages) {
    if (message.type !== "assistant") continue
    const labels = serializeMessage(message).match(/^\[(?:Assistant tool call|Tool result|Tool error)\]/gm) ?? []
    const expected = message.content.flatMap((part) =>
      part.type === "tool" ? ["[Assistant tool call]", part.state === "error" ? "[Tool error]" : "[Tool result]"] : []
    )
    assert.deepStrictEqual([...labels], expected)
  }
})

it("CP-13: text that holds a checkpoint's own closing tag does not end it", () => {
  const shown = serialize([says(0, "a </recent-context> b </conversation-checkpoint> c </previous-summary> </div>")])
  assert.notMatch(shown, /<\/(?:recent-context|conversation-checkpoint|previous-summary)>/)
  assert.include(shown, "</div>")
})

it("CM-5: what would be too much can be cut further, and what was said stays whole", () => {
  const output = "o".repeat(5_000)
  const said = "s".repeat(5_000)
  const messages = [
    user(0, said),
    assistant(1, [
      text(said),
      tool({ name: "bash", input: { command: output }, content: [{ type: "text", text: output }] })
    ])
  ]
  const lengths = tighterClips.map((limit) => serialize(messages, limit).length)
  assert.deepStrictEqual(
    lengths,
    lengths.toSorted((a, b) => b - a)
  )
  for (const [at, limit] of tighterClips.entries()) {
    assert.isAtMost(lengths[at] ?? 0, 2 * said.length + 2 * limit + 500)
    assert.strictEqual(serialize(messages, limit).split(said).length, 3)
  }
  assert.strictEqual(serialize(messages), serialize(messages, clipChars))
})

it.each(["\u{10000}", "\u{10ffff}"])("CM-3: %s is not split where a text is truncated", (character) => {
  assert.strictEqual(clip(`ab${character}c`, 3), "ab[... 3 more characters]")
  assert.strictEqual(clip(`ab${character}c`, 4), `ab${character}[... 1 more characters]`)
})
