/** What a search finds, and how it shows it. Spec: specs/storage.md. */
import { assert, it } from "@effect/vitest"
import { Effect, Layer, Metric, TestClock } from "effect"
import { draft } from "../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import { Search } from "../../packages/log/src/search/Search.ts"
import * as SqlSearch from "../../packages/log/src/search/SqlSearch.ts"
import * as Metrics from "../../packages/log/src/support/Metrics.ts"
import { temporaryDatabase } from "../support/Database.ts"
import { admitted, call, created, message, session, step } from "../support/Logs.ts"
import * as Pruning from "../support/Pruning.ts"
import { found, memorySearch, places, roles, searchAt } from "./support/Searching.ts"

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

it.effect("SE-11: answers, calls and results are found by the names of their model and tool, prompts are not", () =>
  Effect.gen(function* () {
    yield* begun
    assert.deepStrictEqual(yield* roles("model:p/m"), ["assistant", "reasoning", "tool"])
    assert.deepStrictEqual(yield* roles("model:other"), [])
    // The event of a result does not name its tool.
    assert.deepStrictEqual(yield* roles("setTimeout tool:bash"), ["tool"])
    assert.deepStrictEqual(yield* roles("login tool:edit"), [])
  }).pipe(Effect.provide(memorySearch))
)

it.effect("SE-11: an index that is built after a prune has the models and tools of answers and results in blocks", () =>
  Effect.gen(function* () {
    const id = session()
    yield* Pruning.begun(id, 2, 1)
    yield* Pruning.pruned(id)
    yield* (yield* Search).rebuild()
    assert.deepStrictEqual(yield* roles("output tool:bash"), ["tool"])
    assert.deepStrictEqual(yield* roles("output tool:edit"), [])
    assert.deepStrictEqual(yield* roles("answer model:p/m"), ["assistant", "assistant"])
  }).pipe(Effect.provide(memorySearch))
)

it.scoped("SE-9: the index follows the log a second after new events, in the background, and its lag is a metric", () =>
  Effect.gen(function* () {
    yield* Layer.build(SqlSearch.layerFollowing)
    const search = yield* Search
    const hits = Effect.map(search.search({ query: "login role:user" }), ({ items }) => items.length)
    yield* TestClock.adjust("50 millis")
    yield* begun
    yield* TestClock.adjust("999 millis")
    assert.strictEqual(yield* hits, 0)
    yield* TestClock.adjust("100 millis")
    assert.strictEqual(yield* hits, 1)
    assert.strictEqual((yield* Metric.value(Metrics.searchLag)).value, 0)
  }).pipe(Effect.provide(Layer.unwrapScoped(Effect.map(temporaryDatabase, searchAt))))
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
