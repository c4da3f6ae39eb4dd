/** The tool `todo` from the facade down: the list is what the last change wrote, wherever the session has got to since. */
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import { MessageID, SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import type { TodoItem } from "../../packages/log/src/domain/Values.ts"
import { draft } from "../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import { dataOf, resultsIn } from "../runner/support/Runs.ts"
import { newSession, open, runtime, say, scene, temporaryFolder } from "../support/Harness.ts"
import { callParts, calls, says, ScriptedModel } from "../support/ScriptedModel.ts"

const item = (text: string, status: TodoItem["status"] = "pending"): TodoItem => ({ text, status })

/** The model calls `todo` with each of the inputs, in one answer, and ends. */
const called = Effect.fnUntraced(function* (sessionID: SessionID, ...inputs: ReadonlyArray<unknown>) {
  const [sessions, model] = [yield* Sessions, yield* ScriptedModel]
  yield* model.answer(calls(...inputs.map((input, index) => callParts(`todo-${index}`, "todo", input))))
  yield* model.answer(says("done"))
  yield* say(sessionID, "go")
  yield* model.request
  const after = yield* model.request
  yield* sessions.wait(sessionID)
  return resultsIn(after)
})

it.effect("TO-91: items take the place of the whole list, and a session without a list has an empty one", () =>
  Effect.gen(function* () {
    const { id, sessions } = yield* scene()
    assert.deepStrictEqual(yield* sessions.todos(id), [])
    yield* called(id, { items: [item("read", "in_progress"), item("write")] })
    assert.deepStrictEqual(yield* sessions.todos(id), [item("read", "in_progress"), item("write")])
    yield* called(id, { items: [item("write", "done")] })
    assert.deepStrictEqual(yield* sessions.todos(id), [item("write", "done")])
    yield* called(id, { items: [] })
    assert.deepStrictEqual(yield* sessions.todos(id), [])
    const missing = yield* Effect.flip(sessions.todos(SessionID.make("ses_missing")))
    assert.strictEqual(missing._tag, "SessionNotFound")
  }).pipe(Effect.provide(runtime()))
)

it.effect("TO-91: without items the current list comes back, and a look beside a change does not undo it", () =>
  Effect.gen(function* () {
    const { id, sessions } = yield* scene()
    yield* called(id, { items: [item("old")] })
    const seen = yield* called(id, {})
    assert.include(JSON.stringify(seen.at(-1)), "old")
    yield* called(id, { items: [item("new")] }, {})
    assert.deepStrictEqual(yield* sessions.todos(id), [item("new")])
    const [other] = [yield* newSession()]
    assert.deepStrictEqual(yield* sessions.todos(other.id), [])
  }).pipe(Effect.provide(runtime()))
)

it.effect("TO-92: a list beyond its bounds is refused, and the one before stays", () =>
  Effect.gen(function* () {
    const { id, sessions } = yield* scene()
    yield* called(id, { items: [item("kept")] })
    const bad = [
      Array.from({ length: 101 }, (_, index) => item(`${index}`)),
      [item("x".repeat(501))],
      [item("")],
      [{ text: "x", status: "later" }],
      Array.from({ length: 100 }, () => item("\u{1F4D2}".repeat(250)))
    ]
    for (const items of bad) yield* called(id, { items })
    assert.deepStrictEqual(
      (yield* dataOf(id, "session.next.tool.failed")).map(({ error }) => error.type),
      bad.map(() => "tool.input")
    )
    assert.deepStrictEqual(yield* sessions.todos(id), [item("kept")])
  }).pipe(Effect.provide(runtime()))
)

it.scopedLive("TO-93: the list outlives a compaction and a restart", () =>
  Effect.gen(function* () {
    const filename = join(yield* temporaryFolder, "daybook.db")
    const list = [item("first", "done"), item("second", "in_progress")]
    const id = yield* Effect.gen(function* () {
      const { id } = yield* newSession()
      yield* called(id, { items: list })
      const log = yield* EventLog
      yield* log.append(id, [
        draft("session.next.compaction.ended", {
          messageID: MessageID.make("msg_checkpoint"),
          reason: "auto",
          text: "what came before",
          recent: ""
        })
      ])
      return id
    }).pipe(Effect.provide(runtime({ filename })))
    yield* Effect.provide(
      Effect.gen(function* () {
        const sessions = yield* Sessions
        assert.deepStrictEqual(yield* sessions.todos(id), list)
        const [[, result] = []] = yield* called(id, {})
        assert.include(JSON.stringify(result), "second")
      }),
      yield* open({ filename })
    )
  })
)

it.effect(
  "TO-91: in a log of an earlier release, whose results do not say so, a call with items changed the list",
  () =>
    Effect.gen(function* () {
      const { id, log, sessions } = yield* scene()
      yield* called(id, { items: [item("now")] })
      const [{ assistantMessageID } = { assistantMessageID: MessageID.make("msg_none") }] = yield* dataOf(
        id,
        "session.next.tool.called"
      )
      const settled = (callID: string, input: Readonly<Record<string, unknown>>, items: ReadonlyArray<TodoItem>) => {
        const [of, provider] = [{ assistantMessageID, callID }, { executed: false }]
        return log.append(id, [
          draft("session.next.tool.input.started", { ...of, name: "todo" }),
          draft("session.next.tool.called", { ...of, tool: "todo", input, provider }),
          draft("session.next.tool.success", { ...of, structured: { items }, content: [], provider })
        ])
      }
      yield* settled("old-change", { items: [item("old")] }, [item("old")])
      yield* settled("old-look", {}, [item("seen beside it")])
      assert.deepStrictEqual(yield* sessions.todos(id), [item("old")])
    }).pipe(Effect.provide(runtime()))
)
