import { EventLog, Sessions } from "@daybook/core"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { newSession, runtime, say, temporaryFolder } from "../support/Harness.ts"
import { calls, callParts, says, ScriptedModel } from "../support/ScriptedModel.ts"

it.scopedLive("2.2: one plain text turn has its events in the documented order", () =>
  Effect.gen(function* () {
    const sessions = yield* Sessions
    const log = yield* EventLog
    const model = yield* ScriptedModel
    const { id } = yield* newSession()
    yield* model.answer(says("Hello."))
    yield* say(id, "Hi")
    yield* sessions.wait(id)
    const { events } = yield* log.read({ sessionID: id })
    assert.deepStrictEqual(
      events.map(({ type }) => type),
      [
        "session.created",
        "session.next.prompt.admitted",
        "session.next.activity.started",
        "session.next.prompt.promoted",
        "session.next.step.started",
        "session.next.text.started",
        "session.next.text.ended",
        "session.next.step.ended",
        "session.next.activity.settled"
      ]
    )
  }).pipe(Effect.provide(runtime()))
)

it.scopedLive("TU-9: a local tool's result is in the second request", () =>
  Effect.gen(function* () {
    const sessions = yield* Sessions
    const model = yield* ScriptedModel
    const folder = yield* temporaryFolder
    writeFileSync(join(folder, "a.txt"), "alpha\n")
    const { id } = yield* newSession(folder)
    yield* model.answer(calls(callParts("c1", "read", { path: "a.txt" })))
    yield* model.answer(says("It says alpha."))
    yield* say(id, "read a.txt")
    yield* model.request
    const second = yield* model.request
    yield* sessions.wait(id)
    assert.include(JSON.stringify(second.prompt.content), "alpha")
  }).pipe(Effect.provide(runtime()))
)
