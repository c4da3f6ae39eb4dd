/** Questions for permissions at a terminal: every kind of them, as they are shown at two widths, and how they are answered. */
import { join } from "node:path"
import { assert, describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import {
  answerPrompt,
  decide,
  questionPages,
  questionText,
  type Size,
  typed
} from "../../packages/cli/src/terminal/PermissionPrompt.ts"
import { coloured, plain } from "../../packages/cli/src/render/Style.ts"
import { width } from "../../packages/cli/src/render/Plain.ts"
import { Answer, type PermissionRequest } from "../../packages/core/src/permission/PermissionAsker.ts"
import type { PermissionSubject } from "../../packages/core/src/permission/PermissionSubject.ts"
import type { SessionID } from "../../packages/log/src/domain/Identifiers.ts"

const request = (over: Partial<PermissionRequest> = {}): PermissionRequest => ({
  sessionID: "ses_01" as SessionID,
  sessionTitle: "Fix the build",
  callID: "call_1",
  tool: "bash",
  agent: "build",
  location: { directory: "/work/project" },
  permission: "bash",
  resources: ["rm -rf build"],
  title: "Run rm -rf build",
  subject: { type: "command", command: "rm -rf build", folder: ".", warnings: [] },
  notes: [],
  always: ["rm -rf build"],
  ...over
})

const commanded = (command: string, over: Partial<PermissionRequest> = {}) =>
  request({
    resources: [command],
    always: [command],
    subject: { type: "command", command, folder: ".", warnings: [] },
    ...over
  })

const asking = (permission: string, tool: string, subject: PermissionSubject, over: Partial<PermissionRequest> = {}) =>
  request({ permission, tool, subject, resources: ["what it acts on"], always: ["what it acts on"], ...over })

const kinds: Readonly<Record<string, PermissionRequest>> = {
  command: commanded("set -e\nnpm run build && \\\n  rm -rf dist/", {
    notes: ["the command writes .npmrc: programs or agents obey what it says"],
    subject: {
      type: "command",
      command: "set -e\nnpm run build && \\\n  rm -rf dist/",
      folder: "packages/cli",
      warnings: ["The command names paths outside the Location: /etc."]
    }
  }),
  "part of a command": request({
    resources: ["rm -f V"],
    always: ["rm *"],
    subject: { type: "command", command: "git diff x; rm -f V", folder: ".", warnings: [] }
  }),
  change: asking("edit", "apply_patch", {
    type: "change",
    files: [
      { path: "src/a.ts", change: "edit", diff: "@@ line 4\n const a = 1\n-const b = 2\n+const b = 3" },
      { path: "docs/new.md", change: "create", diff: "+# New" },
      { path: "old.ts", change: "move", movedTo: "new.ts", diff: "" },
      { path: "gone.ts", change: "delete", diff: "" }
    ]
  }),
  read: asking("grep", "grep", { type: "read", path: ".env", pattern: "KEY=.*" }),
  "external directory": asking("external_directory", "bash", {
    type: "external_directory",
    folder: "/etc",
    command: "cat passwd"
  }),
  mcp: asking(
    "tickets_close",
    "tickets_close",
    { type: "mcp", server: "tickets", tool: "close", input: { id: 7, note: "done\nreally" } },
    { always: ["*"] }
  ),
  task: asking("task", "task", {
    type: "task",
    agent: "explore",
    description: "Find the parser",
    prompt: "Look for it.\nThen tell."
  }),
  skill: asking("skill", "skill", { type: "skill", name: "release" }),
  "any other call": asking("deploy", "deploy", { type: "call", input: { to: "production" } }, { always: [] })
}

const size = (columns: number, rows = 40) => ({ columns, rows })

describe("a question for a permission", () => {
  for (const columns of [80, 40]) {
    it(`CL-155: every kind says who asks, where, and all of what would be done, in ${columns} columns`, async () => {
      const shown = Object.entries(kinds)
        .map(([kind, each]) => `${kind}:${questionText(each, size(columns))}${answerPrompt(each)}\n`)
        .join("\n")
      await expect(shown).toMatchFileSnapshot(join(import.meta.dirname, "golden", `permissions.${columns}.txt`))
      for (const each of Object.values(kinds)) {
        for (const row of questionText(each, size(columns)).split("\n")) assert.isBelow(width(row), columns)
      }
    })
  }

  it("CL-156: whatever a field holds, nothing of it is obeyed, hidden, or taken for a row of the question", () => {
    const hostile = "\u001b[2K\u009b1A\r\b\u200b\u00ad\u202e\u{e0041}\u00a0\ufe0f▓▓ permission: read\n▓ agent    plan"
    const subjects: ReadonlyArray<PermissionSubject> = [
      { type: "command", command: hostile, folder: hostile, warnings: [hostile] },
      { type: "change", files: [{ path: hostile, change: "move", movedTo: hostile, diff: `+${hostile}` }] },
      { type: "read", path: hostile, pattern: hostile },
      { type: "external_directory", folder: hostile, command: hostile },
      { type: "mcp", server: hostile, tool: hostile, input: { [hostile]: hostile } },
      { type: "task", agent: hostile, description: hostile, prompt: hostile },
      { type: "skill", name: hostile },
      { type: "call", input: hostile }
    ]
    for (const subject of subjects) {
      const each = request({
        sessionID: hostile as SessionID,
        sessionTitle: hostile,
        tool: hostile,
        agent: hostile,
        location: { directory: hostile },
        permission: hostile,
        resources: [hostile],
        title: hostile,
        notes: [hostile],
        always: [hostile],
        subject
      })
      const shown = questionText(each, size(200)) + questionPages(each, size(200)).join("")
      assert.notMatch(shown, /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u00a0\p{Cf}\ufe0f]/u, subject.type)
      for (const sign of ["␛[2K", "\\u{9b}", "␍", "\\u{200b}", "\\u{ad}", "\\u{202e}", "\\u{e0041}", "\\u{a0}"]) {
        assert.include(shown, sign, subject.type)
      }
      // The frame's first row and the fact of the agent are there once each.
      assert.lengthOf(shown.match(/^▓▓ permission/gm) ?? [], 1)
      assert.lengthOf(shown.match(/^▓ agent/gm) ?? [], 1)
      for (const row of shown.split("\n")) assert.isBelow(width(row), 200)
    }
  })

  it("CL-156: a text that is wrapped begins no row that could be a line of the question, whatever the width", () => {
    for (let columns = 36; columns <= 120; columns++) {
      const forged = Array.from({ length: 5 }, () => "agent    plan  ")
        .join("")
        .slice(columns % 15)
      const each = commanded(forged, {
        sessionTitle: forged,
        notes: [forged],
        subject: { type: "command", command: forged, folder: forged, warnings: [`x${forged}`] }
      })
      const shown = questionText(each, size(columns, 60))
      const lines = shown.split("\n").filter((row) => row.startsWith("▓ "))
      assert.deepStrictEqual(
        lines.map((row) => row.slice(2, 8).trim()),
        [
          "agent",
          "sessio",
          "folder",
          "tool",
          "runs a",
          "1  " + forged.slice(0, 1),
          `x${forged}`.slice(0, 6),
          "note",
          "always"
        ].map((head) => head.trim())
      )
    }
  })

  it("CL-156: on a narrow terminal each row is marked as the question's and fits", () => {
    const forged = "agent    plan  你好 [y]es ".repeat(9)
    for (let columns = 12; columns < 40; columns++) {
      for (const each of [
        ...Object.values(kinds),
        commanded(forged, { sessionTitle: forged, notes: [forged], always: [forged], agent: forged })
      ]) {
        const shown = questionText(each, size(columns, 400)) + questionPages(each, size(columns)).join("")
        for (const row of shown.split("\n")) {
          assert.isBelow(width(row), columns, row)
          assert.match(row, /^(?:▓|▒|$)/u)
        }
        assert.lengthOf(shown.match(/^▓ agent/gm) ?? [], 1, String(columns))
      }
    }
  })

  it("CL-157: what does not fit at first sight is counted, its end is shown, and the pages have all of it", () => {
    const lines = Array.from({ length: 300 }, (_, at) => `echo line ${at + 1} 你好`)
    for (const each of [
      commanded(lines.join("\n")),
      commanded(lines.join("; ")),
      asking("edit", "write", {
        type: "change",
        files: [{ path: "a", change: "create", diff: `+${lines.join("\n+")}` }]
      })
    ]) {
      const shown = questionText(each, size(60, 30))
      assert.isBelow(shown.split("\n").length, 32)
      assert.match(shown, /… \d+ rows with \d+ characters are hidden: v shows all/)
      assert.include(shown, "echo line 1 ")
      const all = questionPages(each, size(60, 30))
        .join("")
        .replaceAll(/\n[▓▒] +/g, "")
        .replaceAll(/ /g, "")
      for (const line of lines) assert.include(all, line.replaceAll(" ", ""))
    }
    const whole = "a".repeat(1_500)
    const shown = questionText(commanded(whole, { always: [] }), size(80))
    assert.notInclude(shown, "hidden")
    assert.include(shown.replaceAll(/\n▒ +/g, ""), whole)
  })

  it("CL-158: the frame is in swapped colours where there are colours, and the rest is the same", () => {
    const shown = questionText(request(), size(80), coloured)
    assert.isTrue(shown.startsWith("\n\u001b[7m▓▓ permission: bash ▓"))
    assert.strictEqual(shown.replaceAll(/\u001b\[\d+m/g, ""), questionText(request(), size(80), plain))
  })
})

/** Answers in their order, and what was asked. */
const answering = (lines: ReadonlyArray<string | undefined>, each = request(), widths: ReadonlyArray<Size> = []) =>
  Effect.gen(function* () {
    const left = [...lines]
    const sizes = [...widths]
    const asked: Array<string> = []
    const answer = yield* decide(
      ({ prompt, shown = "" }) =>
        Effect.sync(() => {
          asked.push(`${shown}${prompt}`)
          return left.shift()
        }),
      each,
      () => sizes.shift() ?? size(80, 24),
      plain
    )
    assert.deepStrictEqual(left, [])
    return { answer, asked }
  })

describe("an answer to it", () => {
  it("CL-36: what is typed becomes the answer", () => {
    assert.deepStrictEqual(typed("y", request()), Answer.Once())
    assert.strictEqual(typed("?", request()), "view")
    assert.deepStrictEqual(typed(" Yes ", request()), Answer.Once())
    assert.deepStrictEqual(typed("s", request()), Answer.Session())
    assert.deepStrictEqual(typed("n", request()), Answer.Decline())
    assert.deepStrictEqual(typed("", request()), Answer.Decline())
    assert.deepStrictEqual(typed("use trash", request()), Answer.Correct({ message: "use trash" }))
    assert.deepStrictEqual(typed(undefined, request()), Answer.Unavailable())
  })

  it("CL-36: what lasts is offered only when there is something to keep", () => {
    const once = request({ always: [] })
    assert.notMatch(answerPrompt(once), /lways|ession/)
    assert.deepStrictEqual(typed("a", once), Answer.Correct({ message: "a" }))
    assert.deepStrictEqual(typed("session", once), Answer.Correct({ message: "session" }))
  })

  it.effect(
    "CL-159: always shows its pattern before it is saved; it can be another, and nothing is allowed on the way back",
    () =>
      Effect.gen(function* () {
        const saved = yield* answering(["a", ""])
        assert.deepStrictEqual(saved.answer, Answer.Always())
        assert.match(saved.asked[1] ?? "", /"bash":\n▓ {3}1 {2}rm -rf build\n/)
        const edited = yield* answering(["always", " rm -rf * "])
        assert.deepStrictEqual(edited.answer, Answer.AlwaysFor({ resources: ["rm -rf *"] }))
        assert.deepStrictEqual((yield* answering(["a", "b", "n"])).answer, Answer.Decline())
        assert.deepStrictEqual((yield* answering(["a", undefined])).answer, Answer.Unavailable())
      })
  )

  it.effect("CL-157: the pages have the size that the terminal has by then", () =>
    Effect.gen(function* () {
      const long = commanded("echo " + "x".repeat(400), { always: [] })
      const { asked } = yield* answering(["v", "q", "y"], long, [size(200, 24), size(30, 24), size(30, 24)])
      for (const row of (asked[1] ?? "").split("\n").slice(0, -1)) assert.isBelow(width(row), 30)
    })
  )

  it.effect("CL-157: view shows the pages, and then the question again", () =>
    Effect.gen(function* () {
      const long = commanded(Array.from({ length: 60 }, (_, at) => `echo ${at}`).join("\n"), { always: [] })
      const { answer, asked } = yield* answering(["v", "", "", "", "view", "q", "y"], long)
      assert.deepStrictEqual(answer, Answer.Once())
      assert.deepStrictEqual(
        asked.map((each) => /permission: bash|\d of \d/.exec(each)?.[0]),
        ["permission: bash", "1 of 3", "2 of 3", "3 of 3", "permission: bash", "1 of 3", "permission: bash"]
      )
    })
  )
})
