/** What a prompt came to is stored with it, and the model is shown that, whatever became of the files. */
import { rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Context, Effect, Schema } from "effect"
import { expandedParts } from "../../packages/core/src/prompt/PromptParts.ts"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import { type Prompt, Prompt as PromptSchema } from "../../packages/log/src/domain/Values.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import { resultsIn } from "../runner/support/Runs.ts"
import { allUserTexts } from "../support/Harness.ts"
import { callParts, calls, says, ScriptedModel, type SeenRequest } from "../support/ScriptedModel.ts"
import { makeDesk, png } from "./support/Expanding.ts"

const prompt = (value: unknown): Prompt => Schema.decodeUnknownSync(PromptSchema)(value)

/** The files of the user's messages, as they would go over the wire. */
const media = ({ prompt: { content } }: SeenRequest) =>
  content.flatMap((message) =>
    message.role === "user" ? message.content.flatMap((part) => (part.type === "file" ? [part] : [])) : []
  )

it.scoped("IN-4: a retry after the file changed returns the same receipt, with what was there at first", () =>
  Effect.gen(function* () {
    const desk = yield* makeDesk()
    desk.write("a.txt", "first")
    const { id: sessionID } = yield* desk.session()
    const sessions = Context.get(desk.runtime, Sessions)
    const admit = sessions.prompt({ id: "msg_a", sessionID, prompt: { text: "see @a.txt" }, resume: false })
    const first = yield* admit
    writeFileSync(join(desk.project, "a.txt"), "second")
    assert.deepStrictEqual(yield* admit, first)
    rmSync(join(desk.project, "a.txt"))
    assert.deepStrictEqual(yield* admit, first)
    assert.include(JSON.stringify(first.prompt.expansion), "first")
  })
)

it.scoped(
  "PX-19: the model is shown what was admitted, failures and media too, turn after turn, when the files are gone",
  () =>
    Effect.gen(function* () {
      const desk = yield* makeDesk()
      desk.write("a.txt", "as it was\n")
      desk.write("p.png", png)
      const { id: sessionID } = yield* desk.session()
      const [sessions, model] = [Context.get(desk.runtime, Sessions), Context.get(desk.runtime, ScriptedModel)]
      const uri = `data:image/jpeg;base64,${png.toString("base64")}`
      yield* sessions.prompt({
        sessionID,
        prompt: { text: "see @a.txt, @p.png and @gone.txt", files: [{ uri, mime: "image/jpeg", name: "pasted" }] },
        resume: false
      })
      rmSync(join(desk.project, "a.txt"))
      rmSync(join(desk.project, "p.png"))
      yield* model.answer(says("one"))
      yield* sessions.resume(sessionID)
      const first = yield* model.request
      yield* model.answer(says("two"))
      yield* sessions.prompt({ sessionID, prompt: { text: "and now?" }, resume: false })
      yield* sessions.resume(sessionID)
      const second = yield* model.request
      const texts = allUserTexts(first)
      assert.deepStrictEqual(texts, [
        "see @a.txt, @p.png and @gone.txt",
        '<file path="a.txt">\nas it was\n</file>',
        '<media name="p.png" type="image/png"/>',
        '<unresolved mention="@gone.txt">\ncannot read "gone.txt": it does not exist (ENOENT)\n</unresolved>',
        '<media name="pasted" type="image/png"/>'
      ])
      const bytes = media(first).map(({ data, mediaType }) => [mediaType, data])
      assert.deepStrictEqual(bytes, [
        ["image/png", png.toString("base64")],
        ["image/png", png.toString("base64")]
      ])
      assert.deepStrictEqual(allUserTexts(second).slice(0, texts.length), texts)
      assert.deepStrictEqual(media(second), media(first))
    }).pipe(Effect.scoped)
)

it.scoped("PX-19: a prompt's own data is in the log once", () =>
  Effect.gen(function* () {
    const desk = yield* makeDesk()
    const { id: sessionID } = yield* desk.session()
    const picture = Buffer.concat([png, Buffer.alloc(300_000)]).toString("base64")
    const files = [{ uri: `data:image/png;base64,${picture}`, mime: "image/png" }]
    yield* Context.get(desk.runtime, Sessions).prompt({ sessionID, prompt: { text: "", files }, resume: false })
    const { events } = yield* Context.get(desk.runtime, EventLog).read({ sessionID })
    assert.isBelow(JSON.stringify(events).length, picture.length + 5_000)
  })
)

it.scoped("PX-21: `read` reads and lists inside a reference, and nothing writes there", () =>
  Effect.gen(function* () {
    const desk = yield* makeDesk(({ outside }) => ({
      references: { manual: outside },
      agents: [{ name: "build", permissions: [{ permission: "*", resource: "*", verdict: "allow" }] }]
    }))
    desk.writeOutside("one.md", "one\ntwo\n")
    const { id: sessionID } = yield* desk.session()
    const [sessions, model] = [Context.get(desk.runtime, Sessions), Context.get(desk.runtime, ScriptedModel)]
    yield* model.answer(
      calls(
        callParts("c1", "read", { path: "manual:one.md", offset: 2 }),
        callParts("c2", "read", { path: "manual:" }),
        callParts("c3", "read", { path: "manual:../secret" }),
        callParts("c4", "write", { path: "manual:new.md", content: "x" }),
        callParts("c5", "grep", { pattern: "two", path: "manual:." }),
        callParts("c6", "glob", { pattern: "*.md", path: "manual:." }),
        callParts("c7", "read", { path: "manual:./one.md" })
      )
    )
    yield* model.answer(says("done"))
    yield* sessions.prompt({ sessionID, prompt: { text: "go" }, resume: false })
    yield* sessions.resume(sessionID)
    yield* model.request
    const results = new Map(resultsIn(yield* model.request))
    assert.strictEqual(results.get("c1"), "two\n")
    assert.strictEqual(results.get("c2"), "one.md\n")
    assert.include(String(results.get("c3")), "leads out of the reference")
    assert.include(String(results.get("c4")), "can only be read")
    assert.include(String(results.get("c5")), "one.md")
    assert.strictEqual(results.get("c6"), "manual:./one.md")
    assert.strictEqual(results.get("c7"), "one\ntwo\n")
  })
)

it("PX-27, PX-19: nothing in a part ends its frame, and names stay within their quotes", () => {
  const parts = expandedParts(
    prompt({
      text: "t",
      expansion: {
        parts: [
          {
            kind: "file",
            name: 'a"><x>\n&.txt#L3-4',
            content: { type: "text", text: "</file>\n</FILE >\n<file> </filed>" }
          },
          { kind: "directory", name: "d", content: { type: "text", text: "" } },
          { kind: "failure", name: "n", content: { type: "text", text: "</unresolved>" } }
        ]
      }
    })
  )
  assert.deepStrictEqual(parts, [
    { type: "text", text: "t" },
    {
      type: "text",
      text: '<file path="a&#34;&#62;&#60;x&#62;&#10;&#38;.txt" lines="3-4">\n&lt;/file>\n&lt;/FILE >\n<file> </filed>\n</file>'
    },
    { type: "text", text: '<directory path="d">\n\n</directory>' },
    { type: "text", text: '<unresolved mention="n">\n&lt;/unresolved>\n</unresolved>' }
  ])
})

it("PX-19: a template's text takes the place of the words; with parts, a blank text is left out", () => {
  const part = { kind: "agent", name: "x", content: { type: "text", text: "guide" } }
  assert.deepStrictEqual(expandedParts(prompt({ text: "/t", expansion: { text: "body", parts: [] } })), [
    { type: "text", text: "body" }
  ])
  for (const text of ["", "\n\n", "\u00a0\u200b\ufeff\u0085\t"]) {
    assert.deepStrictEqual(expandedParts(prompt({ text, expansion: { parts: [part] } })), [
      { type: "text", text: '<agent name="x">\nguide\n</agent>' }
    ])
    assert.deepStrictEqual(expandedParts(prompt({ text })), [{ type: "text", text: "[The message is empty.]" }])
  }
})
