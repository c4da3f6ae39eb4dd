/** What a tool's progress may cost the log (TO-P1). Time is the test's. */
import { assert, it } from "@effect/vitest"
import { Deferred, Effect, Queue, Stream, TestClock } from "effect"
import type { ToolOutput } from "../../packages/core/src/domain/ToolOutput.ts"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import { newSession, runtime, say } from "../support/Harness.ts"
import { callParts, calls, says, ScriptedModel } from "../support/ScriptedModel.ts"
import { dataOf, tool } from "./support/Runs.ts"

const said = (text: string): ToolOutput => ({ structured: {}, content: [{ type: "text", text }] })

/** A tool that reports what the test hands it, until it is handed `undefined`. */
const reporter = Effect.fnUntraced(function* (name: string) {
  const updates = yield* Queue.unbounded<ToolOutput | undefined>()
  const done = yield* Queue.unbounded<void>()
  const late = yield* Deferred.make<Effect.Effect<void>>()
  yield* tool(name, ({ progress }) =>
    Effect.gen(function* () {
      yield* Deferred.succeed(late, progress(said("late")))
      for (;;) {
        const update = yield* Queue.take(updates)
        if (update === undefined) return "done"
        yield* progress(update)
        yield* Queue.offer(done, undefined)
      }
    })
  )
  return {
    report: (update: ToolOutput) => Effect.zipRight(Queue.offer(updates, update), Queue.take(done)),
    end: Queue.offer(updates, undefined),
    /** Reports after the call has ended. */
    late: Effect.flatten(Deferred.await(late))
  }
})

const texts = (id: Parameters<typeof dataOf>[0]) =>
  Effect.map(dataOf(id, "session.next.tool.progress"), (all) =>
    all.map(({ callID, content }) => [callID, ...content.map((part) => (part.type === "text" ? part.text : part.uri))])
  )

it.scoped("TO-P1: progress is stored at most once a second and call; of what comes sooner the newest waits", () =>
  Effect.gen(function* () {
    const sessions = yield* Sessions
    const log = yield* EventLog
    const model = yield* ScriptedModel
    const [a, b] = [yield* reporter("a"), yield* reporter("b")]
    const { id } = yield* newSession()
    yield* model.answer(calls(callParts("c1", "a", {}), callParts("c2", "b", {})))
    yield* model.answer(says("done"))
    yield* say(id, "go")
    const stored = (text: string) =>
      sessions.events({ sessionID: id }).pipe(
        Stream.filter(({ data, type }) => type === "session.next.tool.progress" && JSON.stringify(data).includes(text)),
        Stream.take(1),
        Stream.runDrain
      )
    yield* a.report(said("a1"))
    yield* a.report(said("a2"))
    yield* b.report(said("b1"))
    yield* TestClock.adjust("999 millis")
    yield* a.report(said("a3"))
    yield* TestClock.adjust("1 millis")
    yield* stored("a3")
    yield* TestClock.adjust("1 second")
    yield* a.report(said("a4"))
    yield* a.report(said("a5"))
    const ended = yield* Deferred.make<void>()
    yield* log.listen((events) =>
      events.some(({ type }) => type === "session.next.tool.success") ? Deferred.succeed(ended, undefined) : Effect.void
    )
    yield* a.end
    yield* Deferred.await(ended)
    yield* TestClock.adjust("2 seconds")
    // A call that has its result reports no more, though the turn goes on.
    yield* a.late
    yield* b.end
    yield* sessions.wait(id)
    assert.deepStrictEqual(yield* texts(id), [
      ["c1", "a1"],
      ["c2", "b1"],
      ["c1", "a3"],
      ["c1", "a4"]
    ])
  }).pipe(Effect.provide(runtime()))
)

it.scoped("TO-P1: one progress event holds a few KiB: the end of the text, cut between characters", () =>
  Effect.gen(function* () {
    const sessions = yield* Sessions
    const model = yield* ScriptedModel
    const { end, report } = yield* reporter("a")
    const { id } = yield* newSession()
    yield* model.answer(calls(callParts("c1", "a", {})))
    yield* model.answer(says("done"))
    yield* say(id, "go")
    yield* report({
      structured: { blob: "x".repeat(100_000) },
      content: [{ type: "text", text: `${"€".repeat(50_000)}END` }]
    })
    yield* end
    yield* sessions.wait(id)
    const [stored] = yield* dataOf(id, "session.next.tool.progress")
    assert.isBelow(Buffer.byteLength(JSON.stringify(stored)), 5_000)
    const [shown] = stored?.content ?? []
    const text = shown?.type === "text" ? shown.text : ""
    assert.isTrue(text.endsWith("€END"))
    assert.match(text, /^\[\d+ bytes before\]\n€/)
  }).pipe(Effect.provide(runtime()))
)
