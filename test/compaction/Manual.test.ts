/** Compactions that somebody asks for: each request has its end, whatever stands in the way. */
import { assert, it } from "@effect/vitest"
import { Deferred, Duration, Effect, Fiber, TestClock } from "effect"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import { SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { dataOf, gatedTool, tool, toUnknownModel } from "../runner/support/Runs.ts"
import {
  allUserTexts,
  eventTypes,
  newSession,
  open,
  say,
  scene,
  temporaryFolder,
  userTexts
} from "../support/Harness.ts"
import { callParts, calls, finish, held, says, ScriptedModel, streams, textParts } from "../support/ScriptedModel.ts"
import {
  asksForSummary,
  brief,
  checkpointIn,
  compaction,
  compactions,
  exchange,
  filled,
  long,
  narrow,
  summary,
  window
} from "./support/Talks.ts"

it.scoped("CP-41: an idle session is compacted at once; nothing is promoted, and nothing else asked", () =>
  Effect.gen(function* () {
    const [sessions, model] = [yield* Sessions, yield* ScriptedModel]
    const id = yield* filled("one", "two")
    yield* model.answer(says(summary("On request")))
    const messageID = yield* sessions.compact(id)
    const session = yield* sessions.wait(id)
    assert.isTrue(asksForSummary(yield* model.request))
    assert.strictEqual(yield* model.pending, 0)
    assert.deepStrictEqual(yield* compactions(id), ["requested", "started", "ended"])
    const [ended] = yield* dataOf(id, "session.next.compaction.ended")
    assert.strictEqual(ended?.messageID, messageID)
    assert.strictEqual(ended?.reason, "manual")
    assert.isUndefined(session.compaction)
    const next = yield* exchange(id, "three")
    assert.include(checkpointIn(next), "On request")
  }).pipe(Effect.provide(narrow()))
)

it.scoped("CP-640: a summary whose content the server rejects is asked for again, without results", () =>
  Effect.gen(function* () {
    const [sessions, model] = [yield* Sessions, yield* ScriptedModel]
    yield* tool("look", () => Effect.succeed("forbidden words"))
    const { id } = yield* newSession()
    yield* model.answer(calls(callParts("c1", "look", {})))
    yield* exchange(id, "one")
    yield* model.request
    yield* exchange(id, "two")
    yield* model.answer(streams({ type: "error", error: { message: "your input was flagged" } }))
    yield* model.answer(says(summary("On request")))
    yield* sessions.compact(id)
    yield* sessions.wait(id)
    const [refused, asked] = [yield* model.request, yield* model.request]
    assert.include(allUserTexts(refused).join("\n"), "forbidden words")
    assert.notInclude(allUserTexts(asked).join("\n"), "forbidden words")
    assert.deepStrictEqual(yield* compactions(id), ["requested", "started", "ended"])
  }).pipe(Effect.provide(narrow({ agents: [brief("look")] })))
)

it.scoped("CP-37: a person can ask for a compaction where they are turned off", () =>
  Effect.gen(function* () {
    const [sessions, model] = [yield* Sessions, yield* ScriptedModel]
    const id = yield* filled("one", "two")
    yield* model.answer(says(summary("All the same")))
    yield* sessions.compact(id)
    yield* sessions.wait(id)
    assert.deepStrictEqual(yield* compactions(id), ["requested", "started", "ended"])
  }).pipe(Effect.provide(narrow({ compaction: { ...compaction, enabled: false } })))
)

it.scoped("CM-5: a request that finds nothing to compact ends as failed and says why", () =>
  Effect.gen(function* () {
    const { id, model, sessions } = yield* scene()
    const messageID = yield* sessions.compact(id)
    const session = yield* sessions.wait(id)
    const [failed] = yield* dataOf(id, "session.next.compaction.failed")
    assert.strictEqual(failed?.messageID, messageID)
    assert.deepStrictEqual(failed?.error, {
      type: "not-compactable",
      message: "there is nothing older than the recent conversation to summarize"
    })
    assert.isUndefined(session.compaction)
    assert.strictEqual(yield* model.pending, 0)
  }).pipe(Effect.provide(narrow()))
)

it.scoped("CM-12: asked for again without an answer in between, a compaction fails and says so", () =>
  Effect.gen(function* () {
    const [sessions, model] = [yield* Sessions, yield* ScriptedModel]
    const id = yield* filled("one", "two")
    yield* model.answer(says(summary("Once")))
    yield* sessions.compact(id)
    yield* sessions.wait(id)
    yield* sessions.compact(id)
    yield* sessions.wait(id)
    assert.strictEqual(yield* model.pending, 1)
    const [failed] = yield* dataOf(id, "session.next.compaction.failed")
    assert.strictEqual(failed?.error.message, "no answer has been given since the last checkpoint")
  }).pipe(Effect.provide(narrow()))
)

it.scoped("CP-41: during an activity it is done at the next safe boundary, before anything is promoted", () =>
  Effect.gen(function* () {
    const [sessions, model] = [yield* Sessions, yield* ScriptedModel]
    const look = yield* gatedTool("look")
    const id = yield* filled("one", "two")
    yield* model.answer(calls(callParts("c", "look", {})))
    yield* model.answer(says(summary("In between")))
    yield* model.answer(says("Three and the rest are done."))
    yield* say(id, "three")
    yield* look.begun
    yield* sessions.compact(id)
    yield* say(id, "a steer")
    yield* look.open
    yield* sessions.wait(id)
    const [, asked, next] = [yield* model.request, yield* model.request, yield* model.request]
    assert.isTrue(asksForSummary(asked))
    assert.notInclude(JSON.stringify(asked.prompt), "a steer")
    assert.isDefined(checkpointIn(next))
    assert.deepStrictEqual(userTexts(next).slice(1), ["a steer"])
    const types = (yield* eventTypes(id)).map((type) => type.replace("session.next.", ""))
    const from = types.lastIndexOf("compaction.started")
    assert.deepStrictEqual(types.slice(from, from + 3), ["compaction.started", "compaction.ended", "prompt.promoted"])
    // One activity all along.
    assert.strictEqual(types.filter((type) => type === "activity.started").length, 3)
  }).pipe(Effect.provide(narrow({ agents: [brief("look")] })))
)

it.scoped("CP-41: asked for during the last turn of an activity, it is done when that has ended", () =>
  Effect.gen(function* () {
    const [sessions, model] = [yield* Sessions, yield* ScriptedModel]
    const id = yield* filled("one", "two")
    const gate = yield* Deferred.make<void>()
    yield* model.answer(held(textParts("t", "Three"), gate, [finish()]))
    yield* model.answer(says(summary("At the end")))
    yield* say(id, "three")
    yield* model.request
    yield* sessions.compact(id)
    yield* Deferred.succeed(gate, undefined)
    yield* sessions.wait(id)
    const types = (yield* eventTypes(id)).map((type) => type.replace("session.next.", ""))
    assert.deepStrictEqual(types.slice(-3), ["activity.settled", "compaction.started", "compaction.ended"])
  }).pipe(Effect.provide(narrow()))
)

it.scopedLive("CP-41: a request is durable: a runtime that finds it carries it out with its first drain", () =>
  Effect.gen(function* () {
    const filename = `${yield* temporaryFolder}/daybook.db`
    const options = { filename, agents: [brief()], compaction }
    const [id, messageID] = yield* Effect.scoped(
      Effect.flatMap(open(options, window), (services) =>
        Effect.gen(function* () {
          const [sessions, model] = [yield* Sessions, yield* ScriptedModel]
          const session = yield* filled("one", "two")
          const gate = yield* Deferred.make<void>()
          yield* model.answer(held(textParts("t", "Three"), gate))
          yield* say(session, "three")
          yield* model.request
          return [session, yield* sessions.compact(session)] as const
        }).pipe(Effect.provide(services))
      )
    )
    yield* Effect.scoped(
      Effect.flatMap(open(options, window), (services) =>
        Effect.gen(function* () {
          const [sessions, model] = [yield* Sessions, yield* ScriptedModel]
          assert.deepStrictEqual((yield* sessions.get(id)).compaction, { id: messageID, state: "requested" })
          // The same request: nothing new is written of it.
          assert.strictEqual(yield* sessions.compact(id), messageID)
          yield* model.answer(says(summary("After all")))
          yield* sessions.wait(id)
          assert.deepStrictEqual(yield* compactions(id), ["requested", "started", "ended"])
        }).pipe(Effect.provide(services))
      )
    )
  })
)

it.scoped("CP-41: requests that are made at once are one", () =>
  Effect.gen(function* () {
    const [sessions, model] = [yield* Sessions, yield* ScriptedModel]
    const id = yield* filled("one", "two")
    const gate = yield* Deferred.make<void>()
    yield* model.answer(held(textParts("t", "Three"), gate, [finish()]))
    yield* model.answer(says(summary("For all")))
    yield* say(id, "three")
    yield* model.request
    const asked = yield* Effect.all(
      Array.from({ length: 20 }, () => sessions.compact(id)),
      { concurrency: "unbounded" }
    )
    assert.strictEqual(new Set(asked).size, 1)
    yield* Deferred.succeed(gate, undefined)
    yield* sessions.wait(id)
    assert.deepStrictEqual(yield* compactions(id), ["requested", "started", "ended"])
  }).pipe(Effect.provide(narrow()))
)

it.scoped("CP-55, CP-41: requests made while one is carried out are one more, which has an end of its own", () =>
  Effect.gen(function* () {
    const [sessions, model] = [yield* Sessions, yield* ScriptedModel]
    const id = yield* filled("one", "two")
    const gate = yield* Deferred.make<void>()
    yield* model.answer(held(textParts("s", summary("First")), gate, [finish()]))
    const first = yield* sessions.compact(id)
    yield* model.request
    const second = yield* sessions.compact(id)
    assert.notStrictEqual(second, first)
    assert.deepStrictEqual((yield* sessions.get(id)).compaction, { id: first, state: "running", next: second })
    assert.strictEqual(yield* sessions.compact(id), second)
    yield* Deferred.succeed(gate, undefined)
    yield* sessions.wait(id)
    assert.deepStrictEqual(yield* compactions(id), ["requested", "started", "requested", "ended", "started", "failed"])
    const [failed] = yield* dataOf(id, "session.next.compaction.failed")
    assert.strictEqual(failed?.messageID, second)
  }).pipe(Effect.provide(narrow()))
)

it.scoped("CM-12: asked for before a turn that is too large, it is that turn's one compaction", () =>
  Effect.gen(function* () {
    const [sessions, model] = [yield* Sessions, yield* ScriptedModel]
    const id = yield* filled("one", "two")
    const gate = yield* Deferred.make<void>()
    yield* model.answer(held(textParts("t", "Three"), gate, [finish()]))
    yield* model.answer(says(summary(long("goal", 1_700))))
    yield* model.answer(says("Four is done."))
    yield* say(id, "three")
    yield* model.request
    yield* sessions.compact(id)
    yield* say(id, long("four", 600))
    yield* Deferred.succeed(gate, undefined)
    yield* sessions.wait(id)
    assert.strictEqual(yield* model.pending, 2)
    assert.deepStrictEqual(yield* compactions(id), ["requested", "started", "ended"])
  }).pipe(Effect.provide(narrow()))
)

it.scoped("CM-7: an interrupt ends the attempt that was asked for, and the request with it", () =>
  Effect.gen(function* () {
    const [sessions, model] = [yield* Sessions, yield* ScriptedModel]
    const id = yield* filled("one", "two")
    yield* model.answer(held(textParts("s", "## Goal"), yield* Deferred.make<void>()))
    yield* sessions.compact(id)
    yield* model.request
    yield* sessions.interrupt(id)
    const session = yield* sessions.wait(id)
    assert.deepStrictEqual(yield* compactions(id), ["requested", "started", "failed"])
    assert.isUndefined(session.compaction)
    yield* sessions.resume(id).pipe(
      Effect.fork,
      Effect.flatMap((fiber) => Effect.zipRight(model.answer(says("Goes on.")), Fiber.join(fiber)))
    )
    assert.strictEqual((yield* compactions(id)).length, 3)
  }).pipe(Effect.provide(narrow()))
)

it.scoped("EX-B8, EX-B1: a budget that is spent ends a request, and leaves nothing open", () =>
  Effect.gen(function* () {
    const [sessions, model] = [yield* Sessions, yield* ScriptedModel]
    const id = yield* filled("one", "two")
    yield* sessions.setBudget(id, { tokens: 1 })
    yield* sessions.compact(id)
    const session = yield* sessions.wait(id)
    const [failed] = yield* dataOf(id, "session.next.compaction.failed")
    assert.strictEqual(failed?.error.type, "BudgetExceeded")
    assert.isUndefined(session.compaction)
    assert.strictEqual(yield* model.pending, 0)
  }).pipe(Effect.provide(narrow()))
)

it.scoped("CP-55, CP-41: a model or an agent that is not there ends a request, and leaves nothing open", () =>
  Effect.gen(function* () {
    const [sessions, model] = [yield* Sessions, yield* ScriptedModel]
    const id = yield* filled("one", "two")
    yield* toUnknownModel(id)
    yield* sessions.compact(id)
    const session = yield* sessions.wait(id)
    const [failed] = yield* dataOf(id, "session.next.compaction.failed")
    assert.strictEqual(failed?.error.type, "ModelNotFound")
    assert.isUndefined(session.compaction)
    assert.strictEqual(yield* model.pending, 0)
  }).pipe(Effect.provide(narrow()))
)

it.scoped("CP-55, CP-41: an interrupt keeps a request that waits, as it keeps the inbox; the next wake finds it", () =>
  Effect.gen(function* () {
    const [sessions, model] = [yield* Sessions, yield* ScriptedModel]
    const id = yield* filled("one", "two")
    yield* model.answer(held(textParts("t", "Three"), yield* Deferred.make<void>()))
    yield* say(id, "three")
    yield* model.request
    const messageID = yield* sessions.compact(id)
    yield* sessions.interrupt(id)
    assert.deepStrictEqual((yield* sessions.get(id)).compaction, { id: messageID, state: "requested" })
    yield* model.answer(says(summary("After the interrupt")))
    assert.strictEqual(yield* sessions.compact(id), messageID)
    yield* sessions.wait(id)
    assert.deepStrictEqual(yield* compactions(id), ["requested", "started", "ended"])
  }).pipe(Effect.provide(narrow()))
)

it.scoped("CP-44: the request for a summary is tried again where the model's policy says so", () =>
  Effect.gen(function* () {
    const [sessions, model] = [yield* Sessions, yield* ScriptedModel]
    const id = yield* filled("one", "two")
    // It breaks off before its end.
    yield* model.answer(streams(...textParts("s", summary("Half"))))
    yield* model.answer(says(summary("Whole")))
    yield* sessions.compact(id)
    yield* model.request
    yield* TestClock.adjust("2 seconds")
    yield* model.request
    yield* sessions.wait(id)
    assert.strictEqual((yield* dataOf(id, "session.next.retried")).length, 1)
    const [ended] = yield* dataOf(id, "session.next.compaction.ended")
    assert.strictEqual(ended?.text, summary("Whole"))
  }).pipe(
    Effect.provide(
      narrow({}, { policy: { retry: { times: 1, baseDelay: Duration.seconds(1), maxDelay: Duration.seconds(1) } } })
    )
  )
)

it.scoped("CP-41: a session that is not there cannot be compacted", () =>
  Effect.gen(function* () {
    const sessions = yield* Sessions
    const error = yield* Effect.flip(sessions.compact(SessionID.make("ses_none")))
    assert.strictEqual(error._tag, "SessionNotFound")
  }).pipe(Effect.provide(narrow()))
)
