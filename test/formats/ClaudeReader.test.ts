/** Tests the reader of Claude Code's logs on healthy ones. Spec: FM-130..FM-149 in specs/formats.md. */
import { assert, describe, it } from "@effect/vitest"
import { Struct } from "effect"
import * as ClaudeReader from "../../packages/formats/src/claude/ClaudeReader.ts"
import {
  assistant,
  attachment,
  call,
  type Json,
  result,
  session,
  sessionID,
  system,
  text,
  thinking,
  user,
  uuid
} from "./support/ClaudeLogs.ts"
import {
  assertTree,
  brief,
  briefs,
  headOf,
  itemsOf,
  kindsOf,
  pathBriefs,
  pathOf,
  piecesOf,
  shownOf,
  spentOf
} from "./support/Pieces.ts"
import { besides } from "./support/GrowingLogs.ts"

const read = (log: Iterable<Json>, name?: string) => piecesOf(ClaudeReader.read({ name }), log)

const answersOf = (log: Iterable<Json>) => itemsOf(read(log)).flatMap((item) => (item._tag === "Answer" ? [item] : []))

describe("the reader of Claude Code's logs", () => {
  it("FM-133: the lines of an API message are one answer, and results of parallel calls follow it in one line", () => {
    const pieces = read(session(2, 8))
    assertTree(pieces)
    assert.deepStrictEqual(kindsOf(pieces), [])
    assert.deepStrictEqual(briefs(pieces).slice(0, 6), [
      "User: Prompt 0: look at both files",
      'Answer: reasoning Think about 0 | Read({"file_path":"/work/shop/a0.ts"}) | Bash({"command":"ls 0"})',
      "Result toolu_0a Read: 0 0 ",
      "Result toolu_0b Bash: a.ts\nb.ts",
      "Answer: text Answer 0: done",
      "Title: Two files"
    ])
    assert.deepStrictEqual(pathBriefs(pieces), briefs(pieces))
  })

  it("FM-133: further lines of a message follow its answer, also if they name what the answer follows", () => {
    const pieces = read(besides)
    assertTree(pieces)
    assert.deepStrictEqual(pathBriefs(pieces), [
      "User: go",
      'Answer: reasoning Think | text I look. | Bash({"command":"ls"})',
      "Result a Bash: a.ts"
    ])
  })

  it("FM-131: each record has one item with the record as it was read", () => {
    const log = [...session(3)]
    assert.deepStrictEqual(itemsOf(read(log)).map(Struct.get("record")), log)
  })

  it("FM-138: each API message counts once, with the output of its last line, also if it occurs again", () => {
    const usage = { input: 2, cacheRead: 10, cacheWrite: 1 }
    const log = [
      user(1, null, "hi"),
      assistant(2, 1, "m", [thinking("x")], { usage: { ...usage, output: 1 } }),
      assistant(3, 2, "m", [text("y")], { usage: { ...usage, output: 9 } }),
      user(4, 3, "again"),
      assistant(5, 4, "m", [text("a copy")], { usage: { ...usage, output: 9 } })
    ]
    assert.deepStrictEqual(spentOf(read(log)), {
      input: 2,
      output: 9,
      reasoning: 0,
      cacheRead: 10,
      cacheWrite: 1,
      cost: 0
    })
  })

  it("FM-138: the cost that versions of 2025 wrote to each line of a message counts once", () => {
    const log = [
      user(1, null, "hi"),
      assistant(2, 1, "m", [text("x")], { costUSD: 0.5 }),
      assistant(3, 2, "m", [text("y")], { costUSD: 0.5 }),
      assistant(4, 3, "n", [text("z")], { costUSD: 0.25 })
    ]
    assert.strictEqual(spentOf(read(log)).cost, 0.75)
  })

  it("FM-137: after a prompt was edited, the answers to both versions hang at what preceded the prompt", () => {
    const log = [
      user(1, null, "first"),
      assistant(2, 1, "a", [text("one")]),
      system(3, 2, "turn_duration"),
      user(4, 3, "second"),
      assistant(5, 4, "b", [text("two")]),
      user(6, 3, "second, edited"),
      assistant(7, 6, "c", [text("three")])
    ]
    const pieces = read(log)
    assertTree(pieces)
    assert.deepStrictEqual(pathBriefs(pieces), [
      "User: first",
      "Answer: text one",
      "User: second, edited",
      "Answer: text three"
    ])
  })

  it("FM-143: a compact boundary with its summary is a compaction that keeps the preserved records", () => {
    const log = [
      user(1, null, "first"),
      assistant(2, 1, "a", [text("one")]),
      user(3, 2, "second"),
      assistant(4, 3, "b", [text("two")]),
      system(5, null, "compact_boundary", {
        logicalParentUuid: uuid(4),
        compactMetadata: {
          trigger: "auto",
          preTokens: 9_000,
          preservedSegment: { headUuid: uuid(3), tailUuid: uuid(4) }
        }
      }),
      user(6, 5, "The summary", { isCompactSummary: true, isVisibleInTranscriptOnly: true }),
      user(7, 6, "third")
    ]
    const pieces = read(log)
    const compaction = itemsOf(pieces).find(({ _tag }) => _tag === "Compaction")
    assert.deepInclude(compaction, { summary: "The summary", firstKept: uuid(3), tokensBefore: 9_000 })
    assert.strictEqual(pathOf(pieces).length, log.length)
  })

  it("FM-143: a summary of an old version without a boundary follows the record before it", () => {
    const log = [user(1, null, "first"), user(2, null, "The summary", { isCompactSummary: true }), user(3, 2, "next")]
    const pieces = read(log)
    assert.deepStrictEqual(pathBriefs(pieces), ["User: first", "Compaction: The summary", "User: next"])
    assert.deepInclude(itemsOf(pieces)[1], { firstKept: null })
  })

  it("FM-136: a command joins its output; a slash command without output was a prompt", () => {
    const slash = (name: string, args: string) =>
      `<command-message>${name} is running</command-message>\n<command-name>/${name}</command-name>\n<command-args>${args}</command-args>`
    const log = [
      user(1, null, "<local-command-caveat>Caveat: not for you</local-command-caveat>", { isMeta: true }),
      user(2, 1, slash("model", "opus")),
      { type: "mode", mode: "normal", sessionId: sessionID },
      user(3, 2, "<local-command-stdout>Set model to opus</local-command-stdout>"),
      user(4, 3, "<bash-input>git status</bash-input>"),
      user(5, 4, "<bash-stdout>clean</bash-stdout><bash-stderr>warning</bash-stderr>"),
      user(6, 5, slash("review", "this file")),
      user(7, 6, [text("Review what the arguments name: this file")], { isMeta: true }),
      assistant(8, 7, "a", [text("fine")]),
      system(9, 8, "local_command", { content: "<command-name>/clear</command-name>" }),
      system(10, 9, "local_command", { content: "<local-command-stdout>cleared</local-command-stdout>" })
    ]
    const pieces = read(log)
    assert.deepStrictEqual(pathBriefs(pieces), [
      "Note: <local-command-caveat>Caveat: not for you</local-command-caveat>",
      "Command: /model opus -> Set model to opus",
      "Command: git status -> clean\nwarning",
      "User: /review this file",
      "Note: Review what the arguments name: this file",
      "Answer: text fine",
      "Command: /clear -> cleared"
    ])
    assert.deepInclude(shownOf(pieces).at(-1), { hidden: true })
  })

  it("FM-136: texts that Claude Code adds as user messages are notes", () => {
    for (const words of [
      "<task-notification><status>completed</status></task-notification>",
      "<system-reminder>be careful</system-reminder>",
      "Caveat: The messages below were generated by the user while running local commands."
    ]) {
      assert.deepStrictEqual(briefs(read([user(1, null, words)])), [`Note: ${words}`])
    }
    assert.deepStrictEqual(briefs(read([user(1, null, "<system-reminders> are odd")])), [
      "User: <system-reminders> are odd"
    ])
  })

  it("FM-140: an interruption marks the answer that it cut", () => {
    const [cut, kept] = answersOf([
      user(1, null, "go"),
      assistant(2, 1, "a", [call("t", "Bash", { command: "sleep 9" })]),
      user(3, 2, [result("t", "The user rejected it", { is_error: true })]),
      user(4, 3, [text("[Request interrupted by user for tool use]")]),
      user(5, 4, "go on"),
      assistant(6, 5, "b", [text("done")])
    ])
    assert.strictEqual(cut?.aborted, true)
    assert.isUndefined(kept?.aborted)
  })

  it("FM-140: an error of the API is the error of an answer without parts, and spends nothing", () => {
    const failed = assistant(2, 1, "x", [text("API Error: 529 overloaded")], {
      isApiErrorMessage: true,
      usage: { input: 4, output: 4 }
    })
    const [answer] = answersOf([user(1, null, "go"), failed])
    assert.deepInclude(answer, { parts: [], error: "API Error: 529 overloaded" })
    assert.isUndefined(answer?.spent)
  })

  it("FM-144: a side chain in a session's file shows nothing, and its usage is that of the subagent's result", () => {
    const aside = (record: Json) => ({ ...record, isSidechain: true })
    const log = [
      user(1, null, "go"),
      assistant(2, 1, "a", [call("t", "Task", { prompt: "look" })], { usage: { output: 3 } }),
      aside(user(3, null, "look")),
      aside(assistant(4, 3, "s", [text("seen")], { usage: { input: 7, output: 2 } })),
      user(5, 2, [result("t", [text("seen")])]),
      assistant(6, 5, "b", [text("done")])
    ]
    const pieces = read(log)
    assertTree(pieces)
    assert.deepStrictEqual(pathBriefs(pieces), [
      "User: go",
      'Answer: Task({"prompt":"look"})',
      "Result t Task: seen",
      "Answer: text done"
    ])
    assert.deepInclude(spentOf(pieces), { input: 7, output: 5 })
    assert.strictEqual(pathOf(pieces).length, log.length)
  })

  it("FM-144: a subagent's own file is a session that names its parent", () => {
    const aside = (record: Json) => ({ ...record, isSidechain: true, agentId: "a5daa093f1efc566c" })
    const log = [aside(user(1, null, "look")), aside(assistant(2, 1, "s", [text("seen")]))]
    const pieces = read(log, "agent-a5daa093f1efc566c")
    assert.deepInclude(headOf(pieces), { id: `${sessionID}/a5daa093f1efc566c`, parent: sessionID })
    assert.deepStrictEqual(briefs(pieces), ["User: look", "Answer: text seen"])
  })

  it("FM-139: a file is named after its session; the session of its first records is the one it continues", () => {
    const name = "99999999-6a1b-4c2d-8e3f-001122334455"
    const pieces = read([user(1, null, "go")], name)
    assert.deepInclude(headOf(pieces), { id: name, parent: sessionID, cwd: "/work/shop" })
    assert.deepInclude(headOf(read([user(1, null, "go")], sessionID)), { id: sessionID })
    assert.notProperty(headOf(read([user(1, null, "go")], sessionID)), "parent")
    assert.deepInclude(headOf(read([user(1, null, "go")], "copy of a session")), { id: sessionID })
  })

  it("FM-141: a prompt that waited while the model worked is a prompt; changed files and hooks are notes", () => {
    const log = [
      user(1, null, "go"),
      attachment(2, 1, { type: "queued_command", prompt: [text("and zip it")], commandMode: "prompt" }),
      attachment(3, 2, { type: "queued_command", prompt: "<task-notification>x", commandMode: "task-notification" }),
      attachment(4, 3, { type: "edited_text_file", filename: "/a.ts", snippet: "1 x" }),
      attachment(5, 4, { type: "file", filename: "/b.ts", content: { type: "text", file: { content: "let b" } } }),
      attachment(6, 5, { type: "hook_additional_context", content: ["mind the gap"] }),
      attachment(7, 6, { type: "skill_listing", content: "- one", skillCount: 1 })
    ]
    assert.deepStrictEqual(briefs(read(log)), [
      "User: go",
      "User: and zip it",
      "Note: <task-notification>x",
      "Note: /a.ts was changed:\n1 x",
      "Note: /b.ts:\nlet b",
      "Note: mind the gap"
    ])
  })

  it("FM-142: a repeated title counts once, a person's title stays, and a summary of another session is none", () => {
    const log = [
      { type: "summary", summary: "Another session", leafUuid: uuid(77) },
      user(1, null, "go"),
      { type: "summary", summary: "This session", leafUuid: uuid(1) },
      { type: "ai-title", aiTitle: "Made", sessionId: sessionID },
      { type: "ai-title", aiTitle: "Made", sessionId: sessionID },
      { type: "custom-title", customTitle: "Chosen", sessionId: sessionID },
      { type: "ai-title", aiTitle: "Made again", sessionId: sessionID }
    ]
    assert.deepStrictEqual(briefs(read(log)), ["User: go", "Title: This session", "Title: Made", "Title: Chosen"])
  })

  it("FM-134: pictures, documents and blocks of unknown types stay in prompts and results", () => {
    const image = { type: "image", source: { type: "base64", media_type: "image/png", data: "iVBORw0=" } }
    const log = [
      user(1, null, [
        text("see"),
        image,
        { type: "document", source: { type: "url", url: "https://example.com/a.pdf" } }
      ]),
      assistant(2, 1, "a", [call("t", "Read", {}), call("u", "Odd", "no object")]),
      user(3, 2, [result("t", [image, { type: "tool_reference", tool_name: "X" }]), result("u", undefined)])
    ]
    assert.deepStrictEqual(briefs(read(log)), [
      "User: see | (image/png) | https://example.com/a.pdf",
      'Answer: Read({}) | Odd({"input":"no object"})',
      'Result t Read: (image/png) | {"type":"tool_reference","tool_name":"X"}',
      "Result u Odd: "
    ])
  })

  it("FM-135: a tool that the provider ran has its result from the same message", () => {
    const found = [{ type: "web_search_result", title: "T", url: "https://example.com" }]
    const pieces = read([
      user(1, null, "search"),
      assistant(2, 1, "a", [
        { type: "server_tool_use", id: "srv", name: "web_search", input: { query: "q" } },
        { type: "web_search_tool_result", tool_use_id: "srv", content: found }
      ]),
      assistant(3, 2, "a", [text("found")])
    ])
    assertTree(pieces)
    assert.deepStrictEqual(pathBriefs(pieces), [
      "User: search",
      'Answer: web_search({"query":"q"}) | text found',
      `Result srv web_search: ${JSON.stringify(found[0])}`
    ])
  })

  it("FM-140: a filler that Claude Code wrote instead of a model spends nothing", () => {
    const filler = assistant(2, 1, "x", [text("No response requested.")], { usage: { input: 1, output: 1 } })
    const message = { ...(filler["message"] as Json), model: "<synthetic>" }
    const pieces = read([user(1, null, "go"), { ...filler, message }])
    assert.deepStrictEqual(shownOf(pieces).map(brief), ["User: go", "Answer: text No response requested."])
    assert.strictEqual(spentOf(pieces).output, 0)
  })
})
