/** What a search finds, and how it shows it. Spec: specs/search.md. */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { draft } from "../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import { admitted, call, created, message, session, step } from "../support/Logs.ts"
import { found, memorySearch, places, roles } from "./support/Searching.ts"

const answered = (messageID = message()) =>
  [
    admitted(message(), "Why does the Login page flicker?"),
    step(messageID),
    draft("session.next.reasoning.started", { assistantMessageID: messageID, reasoningID: "r" }),
    draft("session.next.reasoning.ended", {
      assistantMessageID: messageID,
      reasoningID: "r",
      text: "perhaps a login timer"
    }),
    draft("session.next.text.started", { assistantMessageID: messageID, textID: "t" }),
    draft("session.next.text.ended", {
      assistantMessageID: messageID,
      textID: "t",
      text: "The login timer fires twice."
    }),
    ...call({ messageID, callID: "c", tool: "bash", input: { command: "grep -rn login src" } }),
    draft("session.next.tool.success", {
      assistantMessageID: messageID,
      callID: "c",
      structured: {},
      content: [{ type: "text", text: "src/login.ts:12: setTimeout" }],
      provider: { executed: false }
    })
  ] as const

const begun = Effect.gen(function* () {
  const [log, id] = [yield* EventLog, session()]
  yield* log.append(id, [created, draft("session.next.renamed", { title: "The flicker" }), ...answered()])
  return id
})

it.effect("SE-10: prompts, answers, reasoning, calls and results are found, each as its role", () =>
  Effect.gen(function* () {
    yield* begun
    assert.deepStrictEqual(yield* roles("login role:user"), ["user"])
    assert.deepStrictEqual(yield* roles("login role:assistant"), ["assistant"])
    assert.deepStrictEqual(yield* roles("login role:reasoning"), ["reasoning"])
    assert.deepStrictEqual(yield* roles("login tool:bash"), ["tool", "tool"])
    assert.deepStrictEqual(yield* roles("setTimeout"), ["tool"])
    assert.deepStrictEqual(yield* roles("flicker"), ["user"])
  }).pipe(Effect.provide(memorySearch))
)

it.effect("SE-42: a hit names its session, its event and its role, and marks the matches in its text", () =>
  Effect.gen(function* () {
    const id = yield* begun
    const { items, behind, truncated } = yield* found('"login timer" twice')
    assert.strictEqual(items.length, 1)
    const [item] = items
    assert.deepInclude(item, { sessionID: id, title: "The flicker", directory: "/work", matches: 1 })
    const [hit] = item?.hits ?? []
    assert.deepInclude(hit, { seq: 7, role: "assistant", model: "p/m", snippet: "The login timer fires twice." })
    assert.deepStrictEqual(
      hit?.marks.map(([from, to]) => hit.snippet.slice(from, to)),
      ["login timer", "twice"]
    )
    assert.deepStrictEqual([behind, truncated], [0, false])
    assert.deepStrictEqual((yield* places("timer")).length, 2)
  }).pipe(Effect.provide(memorySearch))
)
