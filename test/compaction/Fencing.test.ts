/** Compactions beside other writers: a replaced owner, a move, a switch while the summary is made. */
import { SqlClient } from "@effect/sql"
import { assert, it } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import { dataOf } from "../runner/support/Runs.ts"
import { eventTypes, say, scene, temporaryFolder } from "../support/Harness.ts"
import { finish, held, says, ScriptedModel, textParts } from "../support/ScriptedModel.ts"
import { brief, checkpointIn, exchange, long, narrow, summary } from "./support/Talks.ts"

/** Three exchanges, and a fourth prompt whose summary waits for the gate. */
const summarizing = Effect.gen(function* () {
  const { id, model } = yield* scene()
  for (const name of ["one", "two", "three"]) yield* exchange(id, name)
  const gate = yield* Deferred.make<void>()
  yield* model.answer(held(textParts("s", summary("To be fenced")), gate, [finish()]))
  yield* say(id, long("four", 150))
  yield* model.request
  return [id, Deferred.succeed(gate, undefined)] as const
})

it.scoped("CP-48: an owner that was replaced during the summary writes neither its end nor a failure", () =>
  Effect.gen(function* () {
    const [sessions, sql] = [yield* Sessions, yield* SqlClient.SqlClient]
    const [id, open] = yield* summarizing
    yield* sql`UPDATE event_sequence SET owner_id = 'another', owner_epoch = owner_epoch + 1 WHERE session_id = ${id}`
    const before = yield* eventTypes(id)
    yield* open
    yield* sessions.wait(id)
    assert.deepStrictEqual(yield* eventTypes(id), before)
    assert.strictEqual(before.at(-1), "session.next.compaction.started")
  }).pipe(Effect.provide(narrow()))
)

it.scoped("CP-48: a session that moves during the summary keeps its checkpoint, and goes on at its new Location", () =>
  Effect.gen(function* () {
    const [sessions, model] = [yield* Sessions, yield* ScriptedModel]
    const [id, open] = yield* summarizing
    const directory = yield* temporaryFolder
    yield* sessions.move(id, { directory })
    yield* model.answer(says("Four is done."))
    yield* open
    yield* sessions.wait(id)
    const request = yield* model.request
    assert.include(checkpointIn(request), "To be fenced")
    assert.include(JSON.stringify(request.prompt), directory)
    assert.strictEqual((yield* dataOf(id, "session.next.prompt.promoted")).length, 4)
    assert.strictEqual((yield* dataOf(id, "session.next.compaction.ended")).length, 1)
    assert.strictEqual((yield* sessions.get(id)).activity?.state, "completed")
  }).pipe(Effect.provide(narrow()))
)

it.scoped(
  "CP-56, CP-46: what is written into the conversation while the summary is made is in its recent context",
  () =>
    Effect.gen(function* () {
      const [sessions, model] = [yield* Sessions, yield* ScriptedModel]
      const [id, open] = yield* summarizing
      yield* sessions.switchAgent(id, "careful")
      yield* model.answer(says("Four is done."))
      yield* open
      yield* sessions.wait(id)
      const request = yield* model.request
      assert.match(checkpointIn(request) ?? "", /\[Synthetic context\]: <reminder>\nBe careful\./)
      assert.strictEqual(JSON.stringify(request.prompt).split("Be careful.").length - 1, 1)
    }).pipe(
      Effect.provide(narrow({ agents: [brief(), { ...brief(), name: "careful", enterReminder: "Be careful." }] }))
    )
)

it.scoped(
  "CP-41: a prompt that is admitted while the summary is made waits for the next safe boundary, and is not lost",
  () =>
    Effect.gen(function* () {
      const [sessions, model] = [yield* Sessions, yield* ScriptedModel]
      const [id, open] = yield* summarizing
      yield* say(id, "and this")
      yield* model.answer(says("Four is done."))
      yield* model.answer(says("So is this."))
      yield* open
      yield* sessions.wait(id)
      const [first, second] = [yield* model.request, yield* model.request]
      assert.notInclude(JSON.stringify(first.prompt), "and this")
      assert.include(JSON.stringify(second.prompt), "and this")
      assert.deepStrictEqual(yield* sessions.inbox(id), [])
    }).pipe(Effect.provide(narrow()))
)
