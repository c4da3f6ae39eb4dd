/** Tests the reader of Codex's rollouts on healthy ones. Spec: FM-150..FM-165 in specs/formats.md. */
import { assert, describe, it } from "@effect/vitest"
import { Struct } from "effect"
import * as CodexReader from "../../packages/formats/src/codex/CodexReader.ts"
import type { Json } from "./support/ClaudeLogs.ts"
import {
  bareRollout,
  call,
  clock,
  document,
  documentOf,
  environment,
  message,
  output,
  reasoning,
  rollout,
  threadID
} from "./support/CodexLogs.ts"
import {
  assertTree,
  briefs,
  headOf,
  itemsOf,
  kindsOf,
  pathBriefs,
  pathOf,
  piecesOf,
  spentOf
} from "./support/Pieces.ts"

const read = (log: Iterable<Json>, name?: string) => piecesOf(CodexReader.read({ name }), log)

const answersOf = (log: Iterable<Json>) => itemsOf(read(log)).flatMap((item) => (item._tag === "Answer" ? [item] : []))

/** A rollout with these records after its header and a turn. */
const after = (make: (at: ReturnType<typeof clock>) => ReadonlyArray<Json>): ReadonlyArray<Json> => {
  const at = clock()
  return [at.meta(), at.turn("gpt-5.5"), ...make(at)]
}

describe("the reader of Codex's rollouts", () => {
  it("FM-150: events that repeat response items add nothing, and context that Codex added is a note", () => {
    const pieces = read(rollout(2, 8))
    assertTree(pieces)
    assert.deepStrictEqual(kindsOf(pieces), [])
    assert.deepStrictEqual(briefs(pieces), [
      `Note: ${environment}`,
      "ModelChange: openai/gpt-5.5",
      "User: Prompt 0: look at the file",
      'Answer: reasoning Think about 0 | shell({"command":["bash","-lc","cat 0"]})',
      "Result call_0 shell: Exit code: 0\nOutput:\n0 0 ",
      "Answer: text Answer 0: done",
      "User: Prompt 1: look at the file",
      'Answer: reasoning Think about 1 | shell({"command":["bash","-lc","cat 1"]})',
      "Result call_1 shell: Exit code: 0\nOutput:\n1 1 ",
      "Answer: text Answer 1: done"
    ])
    assert.deepStrictEqual(pathBriefs(pieces), briefs(pieces))
  })

  it("FM-131: each record but the header has one item with the record as it was read", () => {
    const log = [...rollout(3)]
    const pieces = read(log)
    assert.deepStrictEqual(headOf(pieces)?.record, log[0])
    assert.deepStrictEqual(itemsOf(pieces).map(Struct.get("record")), log.slice(1))
  })

  it("FM-150: a bare rollout from before September 2025 is read, with the folder that its first message names", () => {
    const pieces = read(bareRollout)
    assertTree(pieces)
    assert.deepInclude(headOf(pieces), {
      id: threadID,
      cwd: "/work/old",
      createdAt: Date.parse("2025-07-01T12:00:00Z")
    })
    assert.deepStrictEqual(briefs(pieces).slice(1), [
      "User: Which files are here?",
      'Answer: reasoning List them | local_shell({"type":"exec","command":["ls"]})',
      'Result call_1 local_shell: {"output":"a.ts\\n","metadata":{"exit_code":0,"duration_seconds":0.1}}',
      'Answer: text One: a.ts. | shell({"command":["false"]})',
      "Result call_2 shell failed: it failed",
      "Answer: text It failed."
    ])
  })

  const events = [
    {
      form: "user_message",
      say: (at: ReturnType<typeof clock>, text: string) => at.event("user_message", { message: text, images: [] })
    },
    {
      form: "item_completed",
      say: (at: ReturnType<typeof clock>, text: string) =>
        at.event("item_completed", { item: { type: "UserMessage", id: "u", content: [{ type: "text", text }] } })
    }
  ]
  for (const { form, say } of events) {
    it(`FM-154: prompts that only events of the type ${form} have are prompts, also if they are the same`, () => {
      const pieces = read(
        after((at) => [
          say(at, "go on"),
          at.item(message("assistant", "one")),
          say(at, "go on"),
          say(at, "go on"),
          at.item(message("assistant", "two"))
        ])
      )
      assertTree(pieces)
      assert.deepStrictEqual(pathBriefs(pieces).slice(1), [
        "User: go on",
        "Answer: text one",
        "User: go on",
        "User: go on",
        "Answer: text two"
      ])
    })

    it(`FM-154: an item and an event of the type ${form} with the same text are one prompt, in either order`, () => {
      const item = (at: ReturnType<typeof clock>, text: string) => at.item(message("user", text))
      const log = after((at) => [
        item(at, environment),
        item(at, "again"),
        say(at, "again"),
        say(at, "again"),
        item(at, "again"),
        at.item(message("assistant", "done")),
        item(at, "again"),
        at.item(message("assistant", "done")),
        say(at, "again")
      ])
      const pieces = read(log)
      assert.deepStrictEqual(pathBriefs(pieces).slice(1), [
        `Note: ${environment}`,
        "User: again",
        "User: again",
        "Answer: text done",
        "User: again",
        "Answer: text done",
        "User: again"
      ])
      assert.strictEqual(itemsOf(pieces).length, log.length - 1)
    })
  }

  it("FM-154: an event lacks the marks around a picture, and repeats the prompt nevertheless", () => {
    const picture = "data:image/png;base64,AA=="
    const parts = [
      { type: "input_text", text: "see" },
      { type: "input_text", text: "<image name=[Image #1]>" },
      { type: "input_image", image_url: picture },
      { type: "input_text", text: "</image>" }
    ]
    const prompts = (log: ReadonlyArray<Json>) => briefs(read(log)).filter((brief) => brief.startsWith("User: "))
    const said = { message: "see", images: [picture], local_images: ["/work/a.png"] }
    assert.deepStrictEqual(
      prompts(
        after(({ event, item }) => [item({ ...message("user", ""), content: parts }), event("user_message", said)])
      ),
      ["User: see | <image name=[Image #1]> | (image/png) | </image>"]
    )
    assert.deepStrictEqual(prompts(after(({ event }) => [event("user_message", said)])), ["User: see | (image/png)"])
  })

  it("FM-154: what Codex said in place of the person is no prompt, and an event of another item shows nothing", () => {
    const pieces = read(
      after(({ event }) => [
        event("user_message", { message: environment, kind: "environment_context" }),
        event("user_message", { message: "" }),
        event("item_completed", { item: { type: "AgentMessage", content: [{ type: "Text", text: "done" }] } }),
        event("item_completed")
      ])
    )
    assert.deepStrictEqual(briefs(pieces).slice(1), [`Note: ${environment}`])
  })

  it("FM-159: a roll-back goes back to before prompts that only events have", () => {
    const pieces = read(
      after(({ event, item }) => [
        event("user_message", { message: "one" }),
        item(message("assistant", "first")),
        event("user_message", { message: "two" }),
        event("thread_rolled_back", { num_turns: 1 }),
        event("user_message", { message: "better" })
      ])
    )
    assert.deepStrictEqual(pathBriefs(pieces).slice(1), ["User: one", "Answer: text first", "User: better"])
  })

  const layouts = [undefined, 2, "\t"].map((layout) => JSON.stringify(document, undefined, layout))
  it("FM-155: a rollout that is one object is read item by item, however it is laid out and divided", () => {
    const odd = JSON.stringify(document).replaceAll('[{"', '[{\n  "').replaceAll("},{", "\n    },\n    {")
    for (const text of [...layouts, odd, odd.replaceAll(/\n +/g, "\n")]) {
      for (const chunkBytes of [1, 7, 64 * 1024]) {
        const pieces = piecesOf(CodexReader.read(), Buffer.from(text), chunkBytes)
        assertTree(pieces)
        assert.deepStrictEqual(kindsOf(pieces), [])
        assert.deepInclude(headOf(pieces), { id: threadID, createdAt: Date.parse("2025-04-20T08:00:00Z") })
        assert.deepStrictEqual(pathBriefs(pieces), [
          "User: Which files {are} here?",
          'Answer: reasoning List "them" | shell({"command":["ls","{"]})',
          'Result call_1 shell: {"output":"a.ts\\n","metadata":{"exit_code":0,"duration_seconds":0.1}}',
          "Answer: text One:\na.ts.",
          "Note: The context is almost full.",
          "User: Thanks"
        ])
        assert.deepStrictEqual(
          [headOf(pieces)?.record, ...itemsOf(pieces).map(({ record }) => record)],
          [document["session"], ...(document["items"] as ReadonlyArray<Json>)]
        )
        for (const { place, record } of itemsOf(pieces)) {
          const first = JSON.stringify(record).slice(0, 2)
          assert.strictEqual(text.slice(place.offset).replace(/\s+/g, "").slice(0, 2), first)
          assert.strictEqual(text.slice(0, place.offset).split("\n").length, place.line)
        }
      }
    }
  })

  it("FM-155: an item above the limit is reported and not held; those around it are read", () => {
    const log = Buffer.from(
      JSON.stringify(documentOf([message("user", "x".repeat(5_000)), message("user", "short")]), undefined, 2)
    )
    const pieces = piecesOf(CodexReader.read({ maxLineBytes: 1_000 }), log, 100)
    assert.deepStrictEqual(kindsOf(pieces), ["line-too-long"])
    assert.deepStrictEqual(briefs(pieces), ["User: short"])
  })

  it("FM-156: repeated counts of tokens add nothing; cached and reasoning tokens are counted apart", () => {
    assert.deepStrictEqual(spentOf(read(rollout(3))), {
      input: 6 * 60,
      output: 6 * 20,
      reasoning: 6 * 5,
      cacheRead: 6 * 40,
      cacheWrite: 0,
      cost: 0
    })
  })

  it("FM-156: usage that was counted after the result belongs to the answer before it", () => {
    const [first, second] = answersOf(
      after(({ item, tokens }) => [
        item(message("user", "go")),
        item(call("c", "shell", {})),
        item(output("c", "ok")),
        tokens({ input: 10, output: 1 }),
        item(message("assistant", "done")),
        tokens({ input: 30, output: 4 }, { input: 20, output: 3 })
      ])
    )
    assert.deepInclude(first?.spent, { input: 10, output: 1 })
    assert.deepInclude(second?.spent, { input: 20, output: 3 })
  })

  it("FM-156: a count that falls is a new count, of which the last request counts", () => {
    const spent = spentOf(
      read(
        after(({ item, tokens }) => [
          item(message("assistant", "one")),
          tokens({ input: 100, output: 10 }),
          item(message("assistant", "two")),
          tokens({ input: 50, output: 5 }, { input: 20, output: 2 })
        ])
      )
    )
    assert.deepInclude(spent, { input: 120, output: 12 })
  })

  it("FM-159: a roll-back goes back to before that many prompts", () => {
    const pieces = read(
      after(({ event, item }) => [
        item(message("user", "one")),
        item(message("assistant", "first")),
        item(message("user", "two")),
        item(message("assistant", "second")),
        item(message("user", "three")),
        event("thread_rolled_back", { num_turns: 2 }),
        item(message("user", "two, better"))
      ])
    )
    assertTree(pieces)
    assert.deepStrictEqual(pathBriefs(pieces).slice(1), ["User: one", "Answer: text first", "User: two, better"])
  })

  it("FM-158: a compaction shows the prompts and the summary that its new history holds", () => {
    const history = [message("developer", "rules"), message("user", environment), message("user", "one")]
    const pieces = read(
      after(({ item, line }) => [
        item(message("user", "one")),
        line("compacted", {
          message: "Summary.",
          replacement_history: [...history, message("user", "The summary: Summary.")]
        }),
        line("compacted", { message: "Alone." }),
        line("compacted", {
          message: "",
          replacement_history: [message("user", "two"), { type: "compaction", encrypted_content: "x" }]
        })
      ])
    )
    assert.deepStrictEqual(briefs(pieces).slice(2), [
      "Compaction: one\n\nThe summary: Summary.",
      "Compaction: Alone.",
      "Compaction: two"
    ])
    assert.deepStrictEqual(kindsOf(pieces), ["encrypted-summary"])
  })

  it("FM-157: a fork names the session that it came from; the history it copied is its own", () => {
    const at = clock()
    const log = [
      at.meta({ forked_from_id: "01970000-0000-7000-8000-00000000000f" }),
      at.meta({ id: "01970000-0000-7000-8000-00000000000f" }),
      at.item(message("user", "copied"))
    ]
    const pieces = read(log)
    assert.deepInclude(headOf(pieces), { id: threadID, parent: "01970000-0000-7000-8000-00000000000f" })
    assert.strictEqual(itemsOf(pieces).length, 2)
    const spawned = { subagent: { thread_spawn: { parent_thread_id: "parent", depth: 1 } } }
    assert.deepInclude(headOf(read([clock().meta({ source: spawned })])), { parent: "parent" })
  })

  it("FM-157: without a readable header, the file's name says which session it is", () => {
    const log = [...rollout(1)].slice(1)
    const pieces = read(log, `rollout-2026-02-01T10-00-00-${threadID}`)
    assert.deepInclude(headOf(pieces), {
      id: threadID,
      createdAt: Date.parse("2026-02-01T10:00:00Z"),
      cwd: "/work/shop"
    })
    assert.strictEqual(itemsOf(pieces).length, log.length)
    assert.deepStrictEqual(kindsOf(read(log, "odd name")), ["not-a-session"])
  })

  it("FM-151: a person's shell command is a command with its exit code", () => {
    const words =
      "<user_shell_command>\n<command>\nfalse\n</command>\n<result>\nExit code: 1\nDuration: 0.1 seconds\nOutput:\nno\n</result>\n</user_shell_command>"
    const pieces = read(after(({ item }) => [item(message("user", words))]))
    assert.deepStrictEqual(briefs(pieces).slice(1), ["Command: false -> no"])
    assert.deepInclude(itemsOf(pieces).at(-1), { exitCode: 1 })
  })

  it("FM-151: texts that Codex adds as messages of the user or developer are notes", () => {
    const words = [
      "# AGENTS.md instructions for /work\n\nBe brief.",
      "<user_instructions>\nx\n</user_instructions>",
      "<turn_aborted>\n"
    ]
    for (const text of words) {
      assert.deepStrictEqual(briefs(read(after(({ item }) => [item(message("user", text))]))).slice(1), [
        `Note: ${text}`
      ])
    }
    const pieces = read(after(({ item }) => [item(message("developer", "be careful"))]))
    assert.deepStrictEqual(briefs(pieces).slice(1), ["Note: be careful"])
  })

  it("FM-160: an aborted turn marks its answer", () => {
    const [answer] = answersOf(
      after(({ event, item }) => [item(message("assistant", "half")), event("turn_aborted", { reason: "interrupted" })])
    )
    assert.strictEqual(answer?.aborted, true)
  })

  it("FM-153: calls of all kinds are calls; those that the provider ran have their result", () => {
    const pieces = read(
      after(({ item }) => [
        item(reasoning("why")),
        item({ type: "custom_tool_call", call_id: "p", name: "apply_patch", input: "*** Begin Patch" }),
        item({
          type: "custom_tool_call_output",
          call_id: "p",
          output: '{"output":"Success","metadata":{"exit_code":1}}'
        }),
        item({ type: "web_search_call", id: "ws", status: "completed", action: { type: "search", query: "q" } }),
        item({ type: "image_generation_call", id: "ig", status: "failed", result: "iVBORw0=" }),
        item({ type: "tool_search_call", call_id: "ts", execution: "client", arguments: { query: "x" } }),
        item({ type: "tool_search_output", call_id: "ts", tools: [{ name: "y" }] }),
        item({ ...call("f", "noop", null), arguments: "not JSON" }),
        item(
          output("f", [
            { type: "input_text", text: "see" },
            { type: "input_image", image_url: "data:image/png;base64,AA==" }
          ])
        ),
        item({ type: "ghost_snapshot", ghost_commit: { id: "abc" } })
      ])
    )
    assertTree(pieces)
    assert.deepStrictEqual(kindsOf(pieces), [])
    assert.deepStrictEqual(briefs(pieces).slice(1), [
      'Answer: reasoning why | apply_patch({"input":"*** Begin Patch"})',
      'Result p apply_patch failed: {"output":"Success","metadata":{"exit_code":1}}',
      'Answer: web_search({"type":"search","query":"q"}) | image_generation({}) | tool_search({"query":"x"})',
      "Result ws web_search: ",
      "Result ig image_generation failed: (image/png)",
      'Result ts tool_search: {"name":"y"}',
      'Answer: noop({"input":"not JSON"})',
      "Result f noop: see | (image/png)"
    ])
  })

  it("FM-152: an output is a text, items or an object; success or an exit code say whether it failed", () => {
    const failed = (given: unknown) =>
      itemsOf(read(after(({ item }) => [item(call("c", "shell", {})), item(output("c", given))]))).flatMap((item) =>
        item._tag === "Result" ? [item.failed] : []
      )
    const json = (code: number) => JSON.stringify({ output: "x", metadata: { exit_code: code } })
    for (const given of ["Exit code: 2\nOutput:\n", json(1), { content: "x", success: false }]) {
      assert.deepStrictEqual(failed(given), [true], JSON.stringify(given))
    }
    for (const given of ["Exit code: 0\nOutput:\n", json(0), { content: "x" }, "{", "Exit code: none", [], null]) {
      assert.deepStrictEqual(failed(given), [false], JSON.stringify(given))
    }
  })

  it("FM-161: a name that a person gave the thread is its title", () => {
    const log = after(({ event }) => [event("thread_name_updated", { thread_id: threadID, thread_name: "Shop" })])
    assert.deepStrictEqual(briefs(read(log)).slice(1), ["Title: Shop"])
  })

  it("FM-150: records of unknown types and events stay in the line and show nothing", () => {
    const log = after(({ event, item, line }) => [
      item(message("user", "go")),
      line("world_state", { full: true }),
      item({ type: "future_item", text: "x" }),
      event("future_event"),
      item(message("assistant", "done"))
    ])
    const pieces = read(log)
    assert.strictEqual(pathOf(pieces).length, log.length - 1)
    assert.deepStrictEqual(briefs(pieces).slice(1), ["User: go", "Answer: text done"])
  })
})
