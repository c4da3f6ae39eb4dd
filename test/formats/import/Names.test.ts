/** Names of imported sessions. `Unfinished.test.ts` has sessions whose import has stopped. */
import { assert, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SessionStore } from "../../../packages/log/src/store/SessionStore.ts"
import { layerStore } from "../../../packages/log/src/Store.ts"
import { memoryLog } from "../../support/Database.ts"
import { linesOf } from "../support/EntryTexts.ts"
import { eventsOf, exported, importText } from "../support/RoundTrips.ts"

const store = () => Effect.provide(Layer.provideMerge(layerStore, memoryLog))

const contents = (id: string) =>
  Effect.map(eventsOf(id), (events) => events.map(({ created, data, seq, type }) => ({ created, data, seq, type })))

const at = new Date(1_760_000_000_000).toISOString()
const prompt = (id: string, parentId: string | null, text: string) => ({
  type: "message",
  id,
  parentId,
  timestamp: at,
  message: { role: "user", content: [{ type: "text", text }], timestamp: 1_760_000_000_000 }
})
const head = { type: "session", version: 3, id: "0198c0de-0000-7000-8000-00000000aaaa", timestamp: at, cwd: "/tmp" }
const asked = "Rename every function of the storage package so that its name says what it does"
const beginning = "Rename every function of the storage package so that its"

it.effect(
  "IM-13: a log without a title gives the beginning of its first prompt as the name, and is exported as it was",
  () =>
    Effect.gen(function* () {
      const source = linesOf([head, prompt("aaaa0001", null, asked), prompt("aaaa0002", "aaaa0001", "And the tests.")])
      const { sessionID, title } = yield* importText(source)
      assert.strictEqual(title, beginning)
      const session = yield* (yield* SessionStore).get(sessionID)
      assert.strictEqual(session.title, beginning)
      assert.isUndefined(session.provisional)
      const before = yield* contents(sessionID)
      assert.deepInclude(yield* importText(source), { status: "unchanged", added: 0 })
      assert.deepStrictEqual(yield* contents(sessionID), before)
      assert.strictEqual((yield* exported(sessionID, "pi")).text, source)
    }).pipe(store())
)

it.effect("IM-13: a title of the log is the name, wherever it stands", () =>
  Effect.gen(function* () {
    const info = { type: "session_info", id: "aaaa0002", parentId: "aaaa0001", timestamp: at, name: "Functions" }
    for (const records of [
      [head, prompt("aaaa0001", null, asked), info],
      [{ ...head, id: "0123456789abcdef", title: "Functions" }, prompt("aaaa0001", null, asked)]
    ]) {
      const source = linesOf(records)
      const { sessionID, title } = yield* importText(source)
      assert.strictEqual(title, "Functions")
      assert.strictEqual((yield* (yield* SessionStore).get(sessionID)).title, "Functions")
    }
  }).pipe(store())
)

it.effect("IM-13: an import again gives the same name and goes on, also if the head has a title by then", () =>
  Effect.gen(function* () {
    const [first, second] = [prompt("aaaa0001", null, asked), prompt("aaaa0002", "aaaa0001", "And the tests.")]
    const { sessionID } = yield* importText(linesOf([head, first]))
    const before = yield* contents(sessionID)
    const titled = { ...head, title: "Later" }
    assert.deepInclude(yield* importText(linesOf([titled, first])), { status: "unchanged" })
    const grown = yield* importText(linesOf([titled, first, second]))
    assert.deepInclude(grown, { status: "grown", added: 1, sessionID })
    assert.deepStrictEqual((yield* contents(sessionID)).slice(0, before.length), before)
    assert.strictEqual((yield* (yield* SessionStore).get(sessionID)).title, beginning)
    // A title in the head is a mark of xcsh.
    assert.strictEqual((yield* exported(sessionID, "xcsh")).text, linesOf([head, first, second]))
  }).pipe(store())
)

it.effect("PJ-16: an imported activity ends with its last record, not with the next prompt", () =>
  Effect.gen(function* () {
    const time = (second: number) => ({ timestamp: new Date(1_760_000_000_000 + second * 1_000).toISOString() })
    const user = (id: string, parentId: string | null, second: number) => {
      const record = prompt(id, parentId, "Look.")
      return {
        ...record,
        ...time(second),
        message: { ...record.message, timestamp: 1_760_000_000_000 + second * 1_000 }
      }
    }
    const answer = {
      type: "message",
      id: "aaaa0002",
      parentId: "aaaa0001",
      ...time(4),
      message: {
        role: "assistant",
        content: [{ type: "text", text: "Done." }],
        provider: "anthropic",
        model: "claude-sonnet-4-5",
        usage: { input: 1, output: 1, cacheRead: 0, cacheWrite: 0, cost: { total: 0 } },
        stopReason: "stop",
        timestamp: 1_760_000_004_000
      }
    }
    const { sessionID } = yield* importText(
      linesOf([head, user("aaaa0001", null, 1), answer, user("aaaa0003", "aaaa0002", 90)])
    )
    const metrics = yield* (yield* SessionStore).metrics(sessionID, 0)
    assert.deepInclude(metrics, { turns: 1, durationMs: 3_000 })
  }).pipe(store())
)
