/** Files of the context that a generated conversation seldom has: the list, repeated results, commands that still run. */
import { assert, describe, it } from "@effect/vitest"
import { Array as Arr, Effect, Layer } from "effect"
import { MessageID, SessionID } from "../../../packages/log/src/domain/Identifiers.ts"
import { type Draft, draft } from "../../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../../packages/log/src/log/EventLog.ts"
import * as SqlSessionStore from "../../../packages/log/src/store/SqlSessionStore.ts"
import { memoryLog } from "../../support/Database.ts"
import { contextsOf, rowsOf, sha256 } from "./support/Contexts.ts"

const sessionID = SessionID.make("ses_files")
const id = (name: string) => MessageID.make(`msg_${name}`)
const model = { providerID: "p", id: "m" }
const tokens = { input: 1, output: 1, reasoning: 0, cache: { read: 0, write: 0 } }

const created = draft("session.created", { location: { directory: "/work" } })
const framed = (settings = {}) =>
  draft("session.next.request.framed", {
    hash: "h",
    system: ["You help."],
    baselineSeq: 0,
    tools: { offered: [], defined: [] },
    settings
  })
const prompt = (name: string): ReadonlyArray<Draft> => [
  draft("session.next.prompt.admitted", { messageID: id(name), prompt: { text: name }, delivery: "steer" }),
  draft("session.next.prompt.promoted", { messageID: id(name), prompt: { text: name }, timeCreated: 0 })
]
const began = (name: string) =>
  draft("session.next.step.started", { assistantMessageID: id(name), agent: "build", model })
const ended = (name: string) =>
  draft("session.next.step.ended", { assistantMessageID: id(name), finish: "tools", cost: 0, tokens })

interface Called {
  readonly call: string
  readonly tool?: string
  readonly input?: Record<string, unknown>
  readonly structured?: Record<string, unknown>
  readonly text: string
}
const called = (step: string, { call: callID, input = {}, structured = {}, text, tool = "read" }: Called) => {
  const of = { assistantMessageID: id(step), callID }
  const provider = { executed: false }
  return [
    draft("session.next.tool.input.started", { ...of, name: tool }),
    draft("session.next.tool.called", { ...of, tool, input, provider }),
    draft("session.next.tool.success", { ...of, structured, content: [{ type: "text", text }], provider })
  ]
}
const todo = (step: string, call: string, items: ReadonlyArray<{ readonly text: string; readonly status: string }>) =>
  called(step, { call, tool: "todo", input: { items }, structured: { items }, text: "noted" })

/** The files after each step of the log. */
const filesOf = (drafts: ReadonlyArray<Draft>) =>
  Effect.gen(function* () {
    if (Arr.isNonEmptyReadonlyArray(drafts)) yield* (yield* EventLog).append(sessionID, drafts)
    return (yield* contextsOf(sessionID, ({ files }) => Effect.succeed(files))).made
  }).pipe(Effect.provide(Layer.fresh(SqlSessionStore.layer.pipe(Layer.provideMerge(memoryLog)))))

describe("the files of a context", () => {
  it.effect("PK-1: todo.md is the list as the last step found it, and is not there before there is one", () =>
    Effect.gen(function* () {
      const files = yield* filesOf([
        created,
        ...prompt("go"),
        framed(),
        began("a"),
        ...todo("a", "1", [
          { text: "look", status: "done" },
          { text: "write\nit down", status: "in_progress" },
          { text: "rest", status: "pending" },
          { text: "run", status: "cancelled" }
        ]),
        // It only looks.
        ...called("a", { call: "2", tool: "todo", structured: { items: [] }, text: "[]" }),
        ended("a"),
        began("b"),
        ...todo("b", "3", []),
        ended("b"),
        began("c")
      ])
      assert.deepStrictEqual(
        files.map((one) => one.get("todo.md")),
        [undefined, "- [x] look\n- [~] write it down\n- [ ] rest\n- [-] run\n", undefined]
      )
    })
  )

  it.effect("PK-5: a long result that was shown twice is one blob, with the line of each", () =>
    Effect.gen(function* () {
      const text = "the same ".repeat(200)
      const [, last] = yield* filesOf([
        created,
        ...prompt("go"),
        framed(),
        began("a"),
        ...called("a", { call: "1", text }),
        ...called("a", { call: "2", text }),
        ...called("a", { call: "3", text: "other ".repeat(400) }),
        ...called("a", { call: "4", text: "short" }),
        ...called("a", { call: "5", text: "short" }),
        ended("a"),
        began("b")
      ])
      if (last === undefined) return assert.fail("there was no second step")
      const hash = `sha256-${sha256(text)}`
      assert.strictEqual(last.get(`dedup/blob/${hash}`), text)
      const shared = rowsOf(last, "dedup/index.jsonl").filter(({ refs }) => String(refs).includes("messages"))
      assert.deepStrictEqual(shared, [
        { hash, refs: ["../messages.jsonl:3", "../messages.jsonl:4"], bytes: 1_800, tokens: 450 }
      ])
    })
  )

  it.effect("PK-2: the budget is what was shown where the window is not known, or was less", () =>
    Effect.gen(function* () {
      const [unknown, small, large] = yield* filesOf([
        created,
        ...prompt("go"),
        framed(),
        began("a"),
        ended("a"),
        framed({ contextWindow: 3 }),
        began("b"),
        ended("b"),
        framed({ contextWindow: 3_000 }),
        began("c")
      ])
      const budgets = [unknown, small, large].map((files) => Number(files?.get("budget")))
      const { items } = JSON.parse(String(unknown?.get("pack.json")))
      const shown = items.reduce((sum: number, { tokens }: { readonly tokens: number }) => sum + tokens, 0)
      assert.deepStrictEqual(budgets, [shown, shown, 3_000])
    })
  )

  it.effect("PK-2: a command that still ran is shown from a blob, and from its line once it has one", () =>
    Effect.gen(function* () {
      const [running, over] = yield* filesOf([
        created,
        ...prompt("go"),
        draft("session.next.shell.started", { messageID: id("shell"), callID: "s", command: "sleep 9" }),
        framed(),
        began("a"),
        draft("session.next.shell.ended", { callID: "s", output: "slept" }),
        ended("a"),
        began("b")
      ])
      const conversation = (files: typeof running) =>
        JSON.parse(String(files?.get("pack.json")))
          .items.slice(1)
          .map(({ range, source }: Record<string, string>) => [source, range])
      const shown = JSON.stringify([{ role: "user", content: [{ type: "text", text: "$ sleep 9\n" }] }])
      const blob = `dedup/blob/sha256-${sha256(shown)}`
      assert.deepStrictEqual(conversation(running), [
        ["../messages.jsonl", "1-1"],
        [blob, undefined]
      ])
      assert.strictEqual(running?.get(blob), shown)
      assert.deepStrictEqual(conversation(over), [["../messages.jsonl", "1-2"]])
    })
  )

  it.effect("PK-1: there is nothing before a step, nor for one whose request was not written down", () =>
    Effect.map(filesOf([created, ...prompt("go"), began("a"), ended("a")]), (files) =>
      assert.deepStrictEqual(files, [])
    )
  )
})
