/**
 * Method: the whole runtime. Before a turn the request is asked for, then the turn runs: what was shown in advance has to
 * be what the model got, part by part, and asking for it must have written nothing.
 */
import { SqlClient } from "@effect/sql"
import { assert, describe, it } from "@effect/vitest"
import { Effect, type Scope, Struct } from "effect"
import { build } from "../../packages/core/src/agent/BuiltinAgents.ts"
import { HostContext } from "../../packages/core/src/context/ContextRegistry.ts"
import * as SystemContext from "../../packages/core/src/context/SystemContext.ts"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import * as Daybook from "../../packages/embedded/src/Daybook.ts"
import type { SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import { tool } from "../runner/support/Runs.ts"
import { newSession, type Opened, runtime, say, scene } from "../support/Harness.ts"
import { callParts, calls, otherRef, says, ScriptedModel } from "../support/ScriptedModel.ts"
import { bodyOf } from "./support/Conversation.ts"
import { parsed, seenBody, summary } from "./support/GeneratedModel.ts"

/** Everything that is stored of the session, so far as a turn could change it. */
const stored = Effect.fnUntraced(function* (sessionID: SessionID) {
  const sql = yield* SqlClient.SqlClient
  const log = yield* EventLog
  return {
    latest: yield* log.latest(sessionID),
    session: yield* sql`SELECT * FROM session WHERE id = ${sessionID}`,
    inbox:
      yield* sql`SELECT * FROM session_input WHERE session = (SELECT session FROM event_sequence WHERE session_id = ${sessionID})`
  }
})

/** Shows the next request, runs the turn, and compares. */
const previews = Effect.fn(function* (sessionID: SessionID) {
  const sessions = yield* Sessions
  const model = yield* ScriptedModel
  const before = yield* stored(sessionID)
  const shown = yield* sessions.request({ sessionID })
  assert.deepEqual(yield* stored(sessionID), before, "a preview writes nothing")
  assert.strictEqual(yield* model.pending, 0, "a preview asks nobody")
  yield* model.answer(says("Yes."))
  yield* sessions.resume(sessionID)
  const seen = yield* model.request
  assert.deepEqual(parsed(bodyOf(shown)), parsed(seenBody(seen)))
  assert.strictEqual(shown.model.id, seen.model)
  const log = yield* EventLog
  const recorded = yield* sessions.request({ sessionID, at: yield* log.latest(sessionID) })
  assert.deepEqual(recorded.frame.settings, shown.frame.settings)
  assert.deepEqual(parsed(bodyOf(recorded)), parsed(bodyOf(shown)))
  return parsed(bodyOf(shown))
})

/** One whole exchange. */
const exchange = Effect.fn(function* (sessionID: SessionID, text: string) {
  const sessions = yield* Sessions
  const model = yield* ScriptedModel
  yield* model.answer(says(`I heard: ${text}`))
  yield* say(sessionID, text, { resume: false })
  yield* sessions.resume(sessionID)
  return yield* model.request
})

const careful = {
  name: "careful",
  prompt: "You are careful.",
  permissions: [...build.permissions, { permission: "bash", resource: "*", verdict: "deny" as const }],
  settings: { temperature: 0.5 },
  enterReminder: "Be careful from here on."
}

const options: Partial<Daybook.Options> = {
  agents: [careful],
  projectConfig: false,
  compaction: { reserveTokens: 500, keepRecentTokens: 100 }
}

const test = (title: string, body: Effect.Effect<unknown, unknown, Opened | Scope.Scope>) =>
  it.scopedLive(title, () => Effect.provide(body, runtime(options)))

describe("RQ-37: the request that would go out now", () => {
  test(
    "is the one of the first prompt",
    Effect.gen(function* () {
      const { id } = yield* newSession()
      yield* say(id, "hello", { resume: false })
      const { messages, system, tools } = yield* previews(id)
      assert.strictEqual(messages.length, 1)
      assert.isAbove(system.length, 0)
      assert.isAbove(tools.length, 0)
    })
  )

  test(
    "holds the waiting steers, and of what is queued the first alone",
    Effect.gen(function* () {
      const { id } = yield* newSession()
      yield* exchange(id, "hello")
      yield* say(id, "one", { resume: false })
      yield* say(id, "two", { resume: false })
      assert.strictEqual((yield* previews(id)).messages.length, 4)
      yield* say(id, "later", { resume: false, delivery: "queue" })
      assert.include(JSON.stringify(yield* previews(id)), "later")
    })
  )

  test(
    "has the system text and the tools that the waiting prompt asks for",
    Effect.gen(function* () {
      const { id, sessions } = yield* scene()
      yield* exchange(id, "hello")
      yield* sessions.prompt({
        sessionID: id,
        prompt: { text: "careful", system: "Answer in Latin.", tools: { "*": false, read: true } },
        resume: false
      })
      const { messages, tools } = yield* previews(id)
      assert.deepEqual(tools.map(Struct.get("name")), ["read"])
      assert.include(JSON.stringify(messages), "Answer in Latin.")
    })
  )

  test(
    "tells of the context that changed",
    Effect.gen(function* () {
      const { id } = yield* newSession()
      let weather = "It rains."
      const context = yield* HostContext
      yield* context.register(
        SystemContext.textSource("test/weather", () => Effect.sync(() => SystemContext.text(weather, "No weather.")))
      )
      yield* exchange(id, "hello")
      for (const change of ["It snows.", ""]) {
        weather = change
        yield* say(id, "and now?", { resume: false })
        const { messages, system } = yield* previews(id)
        assert.include(JSON.stringify(messages.at(-1)), change === "" ? "No weather." : "It snows.")
        assert.include(JSON.stringify(system), "It rains.")
      }
    })
  )

  test(
    "is another model's and another agent's after a switch",
    Effect.gen(function* () {
      const { id, sessions } = yield* scene()
      yield* exchange(id, "hello")
      yield* sessions.switchModel(id, otherRef)
      yield* sessions.switchAgent(id, "careful")
      yield* say(id, "go on", { resume: false })
      const { messages, system, tools } = yield* previews(id)
      assert.include(JSON.stringify(system), "You are careful.")
      assert.include(JSON.stringify(messages), "Be careful from here on.")
      assert.notInclude(tools.map(Struct.get("name")), "bash")
    })
  )

  test(
    "begins anew after a compaction",
    Effect.gen(function* () {
      const { id, model, sessions } = yield* scene()
      let weather = "It rains."
      const context = yield* HostContext
      yield* context.register(
        SystemContext.textSource("test/weather", () => Effect.sync(() => SystemContext.text(weather)))
      )
      yield* exchange(id, "hello ".repeat(500))
      yield* exchange(id, "again ".repeat(500))
      weather = "It snows."
      yield* exchange(id, "and again")
      yield* model.answer(says(summary(1)))
      yield* sessions.compact(id)
      yield* sessions.wait(id)
      yield* model.request
      yield* say(id, "go on", { resume: false })
      const { messages, system } = yield* previews(id)
      assert.include(JSON.stringify(messages[0]), "conversation-checkpoint")
      assert.strictEqual(messages.length, 2)
      assert.include(JSON.stringify(system), "It snows.")
      assert.notInclude(JSON.stringify(system), "It rains.")
    })
  )

  test(
    "goes on where a turn called tools",
    Effect.gen(function* () {
      const sessions = yield* Sessions
      const model = yield* ScriptedModel
      yield* tool("look", () => Effect.succeed("dark"))
      const { id } = yield* newSession()
      yield* model.answer(calls(callParts("a", "look", {}), callParts("b", "look", {})))
      yield* model.answer(says("It is dark."))
      yield* say(id, "look twice", { resume: false })
      yield* sessions.resume(id)
      yield* model.request
      yield* model.request
      // Nothing waits: a forced turn has what is there, and the runtime's own words after the answer (EX-R13).
      assert.strictEqual((yield* previews(id)).messages.length, 5)
    })
  )
})
