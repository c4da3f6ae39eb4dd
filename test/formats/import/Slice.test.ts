/** The first way from a log to a session that runs: a small log of pi, through a reader of its own. */
import { assert, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import type { Piece } from "../../../packages/formats/src/conversation/Conversation.ts"
import { importLog } from "../../../packages/formats/src/import/Import.ts"
import { Sessions } from "../../../packages/core/src/session/Sessions.ts"
import { runtime, say, userTexts } from "../../support/Harness.ts"
import { says, ScriptedModel } from "../../support/ScriptedModel.ts"

const at = (second: number) => 1_760_000_000_000 + second * 1000

const place = (line: number) => ({ line, offset: line * 100 })

const pieces = (directory: string): ReadonlyArray<Piece> => [
  {
    _tag: "Head",
    dialect: "pi",
    id: "0198-aaaa",
    version: 3,
    cwd: directory,
    createdAt: at(0),
    record: { type: "session", version: 3, id: "0198-aaaa", timestamp: new Date(at(0)).toISOString(), cwd: directory }
  },
  {
    _tag: "User",
    key: "a1",
    parent: null,
    time: at(1),
    place: place(2),
    content: [{ type: "text", text: "What is in the folder?" }],
    record: { type: "message", id: "a1", parentId: null }
  },
  {
    _tag: "Answer",
    key: "a2",
    parent: "a1",
    time: at(2),
    place: place(3),
    provider: "anthropic",
    model: "claude-sonnet-4-5",
    parts: [
      { type: "reasoning", text: "I list it." },
      { type: "text", text: "I look." },
      { type: "call", id: "call_1", name: "bash", input: { command: "ls" } }
    ],
    finish: "toolUse",
    spent: { input: 100, output: 20, reasoning: 0, cacheRead: 30, cacheWrite: 5, cost: 0.01 },
    record: { type: "message", id: "a2", parentId: "a1" }
  },
  {
    _tag: "Result",
    key: "a3",
    parent: "a2",
    time: at(3),
    place: place(4),
    callID: "call_1",
    tool: "bash",
    content: [{ type: "text", text: "readme.md" }],
    failed: false,
    record: { type: "message", id: "a3", parentId: "a2" }
  },
  {
    _tag: "Answer",
    key: "a4",
    parent: "a3",
    time: at(4),
    place: place(5),
    provider: "anthropic",
    model: "claude-sonnet-4-5",
    parts: [{ type: "text", text: "A readme." }],
    finish: "stop",
    spent: { input: 200, output: 10, reasoning: 0, cacheRead: 0, cacheWrite: 0, cost: 0.02 },
    record: { type: "message", id: "a4", parentId: "a3" }
  }
]

it.effect(
  "IM-1: an imported log is an ordinary session: its history is shown to the model, and prompts continue it",
  () =>
    Effect.gen(function* () {
      const sessions = yield* Sessions
      const report = yield* importLog(() => Stream.fromIterable(pieces("/tmp")), { directory: "/tmp" })
      assert.strictEqual(report.status, "imported")
      const session = yield* sessions.get(report.sessionID)
      assert.deepInclude(session, { createdAt: at(0), updatedAt: at(4), cost: 0.03 })
      assert.deepStrictEqual(session.tokens, { input: 335, output: 30, reasoning: 0, cache: { read: 30, write: 5 } })
      assert.strictEqual(session.activity?.state, "completed")
      const model = yield* ScriptedModel
      yield* model.answer(says("It says hello."))
      yield* say(report.sessionID, "And what does it say?")
      const request = yield* model.request
      assert.deepStrictEqual(userTexts(request), ["What is in the folder?", "And what does it say?"])
      assert.include(JSON.stringify(request.prompt), "readme.md")
      yield* sessions.wait(report.sessionID)
      const again = yield* importLog(() => Stream.fromIterable(pieces("/tmp")), { directory: "/tmp" })
      assert.deepInclude(again, { status: "unchanged", added: 0, sessionID: report.sessionID })
    }).pipe(Effect.provide(runtime()))
)
