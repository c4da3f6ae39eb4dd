/** One compaction: the order of its events, how it is asked for and may fail, and what is shown after it. */
import { Tool } from "@effect/ai"
import { assert, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Schema, Stream, Struct, TestClock } from "effect"
import { HostContext } from "../../packages/core/src/context/ContextRegistry.ts"
import * as SystemContext from "../../packages/core/src/context/SystemContext.ts"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import { HostTools } from "../../packages/core/src/tool/HostTools.ts"
import { define } from "../../packages/core/src/tool/ToolDefinition.ts"
import { MessageID } from "../../packages/log/src/domain/Identifiers.ts"
import { draft } from "../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import { dataOf, eventsOf, resultsIn, systemTexts, transcript } from "../runner/support/Runs.ts"
import {
  allUserTexts,
  answerTo,
  eventTypes,
  newSession,
  open,
  say,
  temporaryFolder,
  userTexts
} from "../support/Harness.ts"
import { holdingAt } from "../support/Holding.ts"
import {
  callParts,
  calls,
  failure,
  finish,
  held,
  says,
  ScriptedModel,
  streams,
  textParts
} from "../support/ScriptedModel.ts"
import {
  asksForSummary,
  brief,
  checkpointIn,
  compaction,
  compactions,
  counted,
  exchange,
  full,
  long,
  narrow,
  summary,
  window
} from "./support/Talks.ts"

it.scoped("CM-7: an attempt is started, then ended with all it came to, and its text goes live only", () =>
  Effect.gen(function* () {
    const [sessions, model] = [yield* Sessions, yield* ScriptedModel]
    const id = yield* full
    const live = yield* Effect.fork(
      sessions.live(id).pipe(
        Stream.filter((event) => event.type === "session.next.compaction.delta"),
        Stream.take(2),
        Stream.runCollect
      )
    )
    yield* Effect.yieldNow()
    const text = summary("To be told")
    const before = (yield* eventsOf(id)).length
    yield* model.answer(streams(...textParts("s", text.slice(0, 50), text.slice(50)), finish()))
    yield* answerTo(id, long("four", 150), "Four is done.")
    const [asked, next] = [yield* model.request, yield* model.request]
    assert.isTrue(asksForSummary(asked))
    assert.isDefined(checkpointIn(next))
    const events = (yield* eventsOf(id)).slice(before)
    assert.deepStrictEqual(
      events.map(({ type }) => type.slice("session.next.".length)),
      [
        "prompt.admitted",
        "activity.started",
        "prompt.promoted",
        "compaction.started",
        "compaction.ended",
        "request.framed",
        "step.started",
        "text.started",
        "text.ended",
        "step.ended",
        "activity.settled"
      ].filter((type) => events.some((event) => event.type.endsWith(type)))
    )
    const [started] = yield* dataOf(id, "session.next.compaction.started")
    const [ended] = yield* dataOf(id, "session.next.compaction.ended")
    assert.strictEqual(started?.reason, "auto")
    assert.strictEqual(ended?.messageID, started?.messageID)
    assert.strictEqual(ended?.text, text)
    assert.include(ended?.recent, "[Assistant]: three-answer")
    // The prompt that waits for its answer stays as it is.
    assert.strictEqual(
      ended?.firstKeptSeq,
      (yield* eventsOf(id)).findLast(({ type }) => type === "session.next.prompt.promoted")?.seq
    )
    assert.isAbove(ended?.tokensBefore ?? 0, 2_000)
    const deltas = [...(yield* Fiber.join(live))].map(({ data }) => ("text" in data ? data.text : ""))
    assert.strictEqual(deltas.join(""), text)
    const [message] = (yield* transcript(id)).filter(({ type }) => type === "compaction")
    assert.strictEqual(message?.seq, events.find(({ type }) => type.endsWith("compaction.ended"))?.seq)
  }).pipe(Effect.provide(narrow()))
)

it.scoped("CM-9: after a compaction the turn goes on with the prompt it had, and the whole transcript stays", () =>
  Effect.gen(function* () {
    const [sessions, model] = [yield* Sessions, yield* ScriptedModel]
    const id = yield* full
    yield* model.answer(says(summary("To go on")))
    yield* model.answer(says("Four is done."))
    yield* say(id, long("four", 300), { id: "msg_four" })
    yield* sessions.wait(id)
    const promoted = (yield* dataOf(id, "session.next.prompt.promoted")).map(({ messageID }) => messageID)
    assert.strictEqual(new Set(promoted).size, promoted.length)
    assert.strictEqual(promoted.length, 4)
    const texts = (yield* transcript(id)).flatMap((message) =>
      message.type === "user" ? [message.text.slice(0, 5)] : []
    )
    assert.deepStrictEqual(texts, ["one x", "two x", "three", "four "])
  }).pipe(Effect.provide(narrow()))
)

it.scoped("CM-8: a checkpoint is one user message that is marked as the past, with summary and recent context", () =>
  Effect.gen(function* () {
    const model = yield* ScriptedModel
    const id = yield* full
    yield* model.answer(says(summary("To be shown")))
    yield* answerTo(id, long("four", 100), "Four is done.")
    yield* model.request
    const next = yield* model.request
    const [only, ...others] = allUserTexts(next)
    assert.deepStrictEqual(others, [long("four", 100)])
    assert.match(only ?? "", /^<conversation-checkpoint>\nThis is a record of the conversation so far/)
    assert.match(
      only ?? "",
      /<summary>\n## Goal\nTo be shown[\s\S]*<\/summary>\n<recent-context>\n[\s\S]*\[Assistant\]: three-answer/
    )
    assert.isTrue(only?.endsWith("</recent-context>\n</conversation-checkpoint>"))
    assert.deepStrictEqual(next.prompt.content.map(Struct.get("role")), ["system", "system", "user", "user"])
  }).pipe(Effect.provide(narrow()))
)

it.scoped("CM-8: nothing of a provider's own goes over the boundary, nor into the question for the summary", () =>
  Effect.gen(function* () {
    const [model, host] = [yield* ScriptedModel, yield* HostTools]
    for (const name of ["look", "search"]) {
      yield* host.register([
        define(Tool.make(name, { success: Schema.String }), { handler: () => Effect.succeed("seen") })
      ])
    }
    const { id } = yield* newSession()
    const native = { scripted: { signature: "native-mark" } }
    yield* model.answer(
      streams(
        { type: "reasoning-start", id: "r" },
        { type: "reasoning-delta", id: "r", delta: "a thought" },
        { type: "reasoning-end", id: "r", metadata: native },
        { type: "tool-call", id: "h", name: "search", params: {}, providerExecuted: true, metadata: native },
        {
          type: "tool-result",
          id: "h",
          name: "search",
          isFailure: false,
          result: { raw: "native-mark" },
          providerExecuted: true,
          metadata: native
        },
        ...callParts("c", "look", {}),
        finish("tool-calls")
      )
    )
    yield* answerTo(id, long("one", 400), long("seen", 150))
    yield* exchange(id, "two", { prompt: 1_100 })
    yield* model.answer(says(summary("To be clean")))
    yield* answerTo(id, long("three", 300), "Three is done.")
    const requests = yield* Effect.replicateEffect(model.request, yield* model.pending)
    const [asked, next] = requests.slice(-2)
    assert.isTrue(asked !== undefined && asksForSummary(asked))
    assert.include(JSON.stringify(asked?.prompt), "a thought")
    for (const request of [asked, next]) assert.notInclude(JSON.stringify(request?.prompt), "native-mark")
    assert.deepStrictEqual(next === undefined ? [] : resultsIn(next), [])
  }).pipe(Effect.provide(narrow({ agents: [brief("look", "search")] })))
)

it.scoped("CM-6: the request for a summary has no tools and no system text, and asks for a bounded answer", () =>
  Effect.gen(function* () {
    const model = yield* ScriptedModel
    const id = yield* full
    yield* model.answer(says(summary("To be asked")))
    yield* answerTo(id, long("four", 300), "Four is done.")
    const asked = yield* model.request
    assert.deepStrictEqual(asked.prompt.content.map(Struct.get("role")), ["user"])
    assert.deepStrictEqual(asked.tools, [])
    assert.strictEqual(asked.toolChoice, "none")
    // A quarter of the budget; what would cut a summary short is left out of the agent's settings.
    assert.deepStrictEqual(asked.settings, { temperature: 0.5, maxOutputTokens: 500 })
  }).pipe(Effect.provide(narrow({ agents: [{ ...brief(), settings: { temperature: 0.5, stop: ["##"] } }] })))
)

it.scoped("CM-6: an answer without the sections is asked for once more, and the fuller of the two counts", () =>
  Effect.gen(function* () {
    const model = yield* ScriptedModel
    const id = yield* full
    yield* model.answer(says("## Goal\nHalf of it"))
    yield* model.answer(says("I would rather not."))
    yield* answerTo(id, long("four", 300), "Four is done.")
    const [first, second, next] = [yield* model.request, yield* model.request, yield* model.request]
    assert.isTrue(asksForSummary(first))
    assert.deepStrictEqual(second.prompt.content.map(Struct.get("role")), ["user", "assistant", "user"])
    assert.match(allUserTexts(second)[1] ?? "", /lacks the sections "Constraints & Preferences", /)
    assert.include(checkpointIn(next), "Half of it")
    const [ended] = yield* dataOf(id, "session.next.compaction.ended")
    assert.deepInclude(ended?.tokens, { input: 20, output: 10 })
  }).pipe(Effect.provide(narrow()))
)

/** A fourth prompt whose summary fails in this way: what was asked, and what came of it. */
const failing = Effect.fnUntraced(function* (script: Parameters<ScriptedModel["Type"]["answer"]>[0]) {
  const [sessions, model] = [yield* Sessions, yield* ScriptedModel]
  const id = yield* full
  yield* model.answer(script)
  yield* model.answer(says("Four is done all the same."))
  yield* say(id, long("four", 300))
  const session = yield* sessions.wait(id)
  const [, next] = [yield* model.request, yield* model.request]
  assert.isUndefined(checkpointIn(next))
  assert.strictEqual(userTexts(next).length, 4)
  assert.deepStrictEqual(yield* compactions(id), ["started", "failed"])
  assert.strictEqual(session.activity?.state, "completed")
  assert.isUndefined(session.compaction)
  return yield* dataOf(id, "session.next.compaction.failed")
})

it.scoped("CM-7: a summary that the provider fails leaves the past as it was, and the request goes out", () =>
  Effect.gen(function* () {
    const [failed] = yield* failing(Stream.fail(failure("the line is dead")))
    assert.strictEqual(failed?.error.type, "provider")
    assert.include(failed?.error.message, "the line is dead")
  }).pipe(Effect.provide(narrow()))
)

it.scoped("CM-7: an empty summary is none; what it cost counts", () =>
  Effect.gen(function* () {
    const [failed] = yield* failing(counted("  \n", 100, 2))
    assert.strictEqual(failed?.error.type, "summary.empty")
    assert.deepInclude(failed?.tokens, { input: 100, output: 2 })
  }).pipe(Effect.provide(narrow()))
)

it.scoped("CM-7: a summary that breaks off, or that its provider ends with an error, is none", () =>
  Effect.gen(function* () {
    yield* failing(streams(...textParts("s", summary("Half"))))
    yield* failing(streams(...textParts("s", summary("Wrong")), finish("error")))
  }).pipe(Effect.provide(narrow()))
)

it.scoped("CM-11: an interrupt during the summary ends the run; the attempt is failed, and the old past stays", () =>
  Effect.gen(function* () {
    const [sessions, model] = [yield* Sessions, yield* ScriptedModel]
    const id = yield* full
    yield* model.answer(held(textParts("s", "## Goal"), yield* Deferred.make<void>()))
    yield* say(id, long("four", 300))
    assert.isTrue(asksForSummary(yield* model.request))
    yield* sessions.interrupt(id)
    const session = yield* sessions.wait(id)
    const [failed] = yield* dataOf(id, "session.next.compaction.failed")
    assert.strictEqual(failed?.error.type, "aborted")
    assert.strictEqual(session.activity?.state, "interrupted")
    assert.notInclude(yield* eventTypes(id), "session.next.compaction.ended")
    // The past is whole, and can be compacted when it goes on.
    yield* model.answer(says(summary("At last")))
    yield* model.answer(says("Done."))
    yield* sessions.resume(id)
    const [asked, next] = [yield* model.request, yield* model.request]
    assert.include(allUserTexts(asked)[0], "[User]: one")
    assert.include(checkpointIn(next), "At last")
  }).pipe(Effect.provide(narrow()))
)

it.scoped("CM-7: an interrupt while the end is being written finds the attempt completed, and ends it once", () =>
  Effect.gen(function* () {
    const hold = yield* holdingAt(({ type }) => type === "session.next.compaction.ended")
    yield* Effect.gen(function* () {
      const [sessions, model] = [yield* Sessions, yield* ScriptedModel]
      const id = yield* full
      yield* model.answer(says(summary("In time")))
      yield* say(id, long("four", 300))
      yield* hold.reached
      const interrupt = yield* Effect.fork(sessions.interrupt(id))
      yield* Effect.yieldNow()
      yield* hold.open
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(interrupt)
      assert.deepStrictEqual(yield* compactions(id), ["started", "ended"])
      assert.isUndefined((yield* sessions.get(id)).compaction)
      // It goes on from the checkpoint, and needs no other.
      yield* model.request
      yield* model.answer(says("Four is done."))
      yield* sessions.resume(id)
      assert.include(checkpointIn(yield* model.request), "In time")
    }).pipe(Effect.provide(narrow({ projectors: [hold.projector] })))
  })
)

it.scopedLive("CM-7: an attempt whose process is gone is failed by the next drain, so that nobody waits for it", () =>
  Effect.gen(function* () {
    const filename = `${yield* temporaryFolder}/daybook.db`
    const options = { filename, agents: [brief()], compaction }
    const messageID = MessageID.make("msg_gone")
    const id = yield* Effect.scoped(
      Effect.flatMap(open(options, window), (services) =>
        Effect.gen(function* () {
          const id = yield* full
          // What a killed process leaves: the start of an attempt, and nothing after it.
          const log = yield* EventLog
          yield* log.append(id, [draft("session.next.compaction.started", { messageID, reason: "auto" })])
          return id
        }).pipe(Effect.provide(services))
      )
    )
    yield* Effect.scoped(
      Effect.flatMap(open(options, window), (services) =>
        Effect.gen(function* () {
          const [sessions, model] = [yield* Sessions, yield* ScriptedModel]
          assert.deepStrictEqual((yield* sessions.get(id)).compaction, { id: messageID, state: "running" })
          yield* model.answer(says("On with it."))
          yield* sessions.resume(id)
          const [failed] = yield* dataOf(id, "session.next.compaction.failed")
          assert.strictEqual(failed?.messageID, messageID)
          assert.strictEqual(failed?.error.type, "process.ended")
          assert.isUndefined((yield* sessions.get(id)).compaction)
        }).pipe(Effect.provide(services))
      )
    )
  })
)

it.scoped(
  "EP-8: after a compaction the baseline is the context of now, and changes told before are not told again",
  () =>
    Effect.gen(function* () {
      const [model, context] = [yield* ScriptedModel, yield* HostContext]
      let weather = "It rains."
      yield* context.register(
        SystemContext.textSource("test/weather", () => Effect.sync(() => SystemContext.text(weather, "No weather.")))
      )
      const { id } = yield* newSession()
      yield* exchange(id, "one")
      weather = "It snows."
      yield* exchange(id, "two")
      yield* exchange(id, "three")
      yield* model.answer(says(summary("To be fresh")))
      yield* answerTo(id, long("four", 300), "Four is done.")
      yield* model.request
      const next = yield* model.request
      assert.include(systemTexts(next).join("\n"), "It snows.")
      assert.notInclude(JSON.stringify(next.prompt), "It rains.")
      assert.strictEqual(JSON.stringify(next.prompt).split("It snows.").length - 1, 1)
      assert.notInclude(JSON.stringify(next.prompt), "system-update")
    }).pipe(Effect.provide(narrow()))
)

it.scoped("EP-10: while no fresh baseline can be had, the old one and the changes told since are shown", () =>
  Effect.gen(function* () {
    const [model, context] = [yield* ScriptedModel, yield* HostContext]
    let weather: "rain" | "snow" | "fog" = "rain"
    yield* context.register(
      SystemContext.textSource("test/weather", () =>
        weather === "fog"
          ? Effect.fail("nothing can be seen")
          : Effect.sync(() => SystemContext.text(weather === "rain" ? "It rains." : "It snows.", "No weather."))
      )
    )
    const { id } = yield* newSession()
    yield* exchange(id, "one")
    weather = "snow"
    yield* exchange(id, "two")
    yield* exchange(id, "three")
    weather = "fog"
    yield* model.answer(says(summary("To see")))
    yield* answerTo(id, long("four", 300), "Four is done.")
    yield* model.request
    const next = yield* model.request
    assert.isDefined(checkpointIn(next))
    assert.include(systemTexts(next).join("\n"), "It rains.")
    assert.isTrue(allUserTexts(next).some((text) => text.startsWith("<system-update>") && text.includes("It snows.")))
  }).pipe(Effect.provide(narrow()))
)

it.scoped("CM-6: a later compaction passes the earlier summary and recent context on, and files add up", () =>
  Effect.gen(function* () {
    const [model, host] = [yield* ScriptedModel, yield* HostTools]
    yield* host.register([
      define(Tool.make("read", { parameters: { path: Schema.String }, success: Schema.String }), {
        handler: () => Effect.succeed("read")
      })
    ])
    const { id } = yield* newSession()
    const round = Effect.fnUntraced(function* (nth: number) {
      yield* model.answer(calls(callParts(`c${nth}`, "read", { path: `/work/${nth}.ts` })))
      yield* answerTo(id, long(`prompt${nth}`, 500), long(`answer${nth}`, 400))
      yield* model.answer(says(summary(`Goal ${nth}`)))
      yield* answerTo(id, long(`next${nth}`, 1_100), `Done ${nth}.`)
      return yield* Effect.replicateEffect(model.request, yield* model.pending)
    })
    const first = (yield* round(1)).find(asksForSummary)
    const second = (yield* round(2)).findLast(asksForSummary)
    assert.notInclude(JSON.stringify(first?.prompt), "previous-summary")
    const [question = ""] = second === undefined ? [] : allUserTexts(second)
    assert.match(question, /^<previous-summary>\n## Goal\nGoal 1/)
    assert.notInclude(question, "<read-files>")
    const ended = yield* dataOf(id, "session.next.compaction.ended")
    assert.deepStrictEqual(ended.at(0)?.readFiles, ["/work/1.ts"])
    assert.deepStrictEqual(ended.at(-1)?.readFiles, ["/work/1.ts", "/work/2.ts"])
    assert.include(ended.at(-1)?.text, "<read-files>\n/work/1.ts\n/work/2.ts\n</read-files>")
  }).pipe(Effect.provide(narrow({ agents: [brief("read")] })))
)
