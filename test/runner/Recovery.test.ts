/**
 * What is left when a process dies in the middle of a turn. Method: a real process on a database file is killed with
 * SIGKILL while its tool runs, then the file is opened here.
 */
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Effect, type Layer, Ref, type Scope, Struct } from "effect"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import { SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { runtime, say, temporaryFolder } from "../support/Harness.ts"
import { says, ScriptedModel } from "../support/ScriptedModel.ts"
import { crash } from "./support/Crash.ts"
import { dataOf, eventsOf, resultsIn, tool, transcript } from "./support/Runs.ts"

type Runtime = Layer.Layer.Success<ReturnType<typeof runtime>>

const id = SessionID.make("ses_crash")

/** The runtime on what the killed process left; its tools count how often they run. */
const reopened = <A, E>(check: (runs: Ref.Ref<number>) => Effect.Effect<A, E, Runtime | Scope.Scope>) =>
  Effect.gen(function* () {
    const folder = yield* temporaryFolder
    const filename = join(folder, "daybook.db")
    yield* crash(folder, filename, id)
    const runs = yield* Ref.make(0)
    yield* Effect.gen(function* () {
      for (const name of ["hang", "web"])
        yield* tool(name, () =>
          Effect.as(
            Ref.update(runs, (n) => n + 1),
            "ran"
          )
        )
      yield* check(runs)
    }).pipe(Effect.scoped, Effect.provide(runtime({ filename })))
  })

it.scopedLive("TU-2: calls of a dead process fail as interrupted before any request, and never run again", () =>
  reopened((runs) =>
    Effect.gen(function* () {
      const sessions = yield* Sessions
      const model = yield* ScriptedModel
      yield* model.answer(says("I could not see."))
      yield* sessions.resume(id)
      const request = yield* model.request
      const failed = yield* dataOf(id, "session.next.tool.failed")
      assert.deepStrictEqual(
        failed.map(({ callID, error, provider }) => [callID, error.message, provider.executed]),
        [
          ["hosted", "Tool execution interrupted", true],
          ["pending", "Tool execution interrupted", false],
          ["running", "Tool execution interrupted", false]
        ]
      )
      // The call side is as it was.
      const [, answer] = yield* transcript(id)
      const hosted = answer?.type === "assistant" ? answer.content.find((part) => part.id === "hosted") : undefined
      assert.deepInclude(hosted?.type === "tool" ? hosted.provider : {}, {
        executed: true,
        metadata: { anthropic: { type: "server_tool_use" } }
      })
      assert.deepStrictEqual(resultsIn(request), [["running", "Tool execution interrupted"]])
      assert.strictEqual(yield* Ref.get(runs), 0)
      const types = (yield* eventsOf(id)).map(({ type }) => type)
      assert.isBelow(types.lastIndexOf("session.next.tool.failed"), types.lastIndexOf("session.next.step.started"))
    })
  )
)

it.scopedLive("TU-2: the step and the activity that died with their process are settled, each once", () =>
  reopened(() =>
    Effect.gen(function* () {
      const sessions = yield* Sessions
      const model = yield* ScriptedModel
      yield* model.answer(says("On with it."))
      yield* model.answer(says("And again."))
      yield* sessions.resume(id)
      yield* sessions.resume(id)
      const failed = yield* dataOf(id, "session.next.step.failed")
      assert.deepStrictEqual(
        failed.map(({ error }) => error.type),
        ["process.ended"]
      )
      assert.deepStrictEqual(
        (yield* dataOf(id, "session.next.activity.settled")).map(({ outcome }) => outcome),
        ["interrupted", "completed", "completed"]
      )
    })
  )
)

it.scopedLive("TU-13: after a crash nothing starts by itself: the session is listed, a wake does not retry it", () =>
  reopened((runs) =>
    Effect.gen(function* () {
      const sessions = yield* Sessions
      const model = yield* ScriptedModel
      const before = yield* eventsOf(id)
      assert.deepStrictEqual((yield* sessions.interrupted).map(Struct.get("id")), [id])
      // The exact retry wakes, and finds promoted work only.
      yield* say(id, "go", { id: "msg_go" })
      yield* sessions.wait(id)
      assert.deepStrictEqual(yield* eventsOf(id), before)
      assert.strictEqual(yield* model.pending, 0)
      assert.strictEqual(yield* Ref.get(runs), 0)
      yield* model.answer(says("Resumed."))
      yield* sessions.resume(id)
      assert.strictEqual(yield* model.pending, 1)
      assert.deepStrictEqual(yield* sessions.interrupted, [])
    })
  )
)
