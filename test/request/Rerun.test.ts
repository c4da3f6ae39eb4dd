/** A recorded request, asked again: nothing happens but requests to models. */
import { assert, it } from "@effect/vitest"
import * as Tool from "@effect/ai/Tool"
import { Effect, Schema, type Scope, Stream } from "effect"
import { HostTools } from "../../packages/core/src/tool/HostTools.ts"
import { define } from "../../packages/core/src/tool/ToolDefinition.ts"
import { rerun, type RerunOptions } from "../../packages/core/src/session/Sessions.ts"
import { type Opened, runtime, scene } from "../support/Harness.ts"
import { callParts, calls, failure, otherRef, ref, says } from "../support/ScriptedModel.ts"

const allowed = {
  agents: [{ name: "build", permissions: [{ permission: "*", resource: "*", verdict: "allow" as const }] }]
}

/** A session whose model counted nails with a tool, and the number of times that the tool ran. */
const recorded = Effect.gen(function* () {
  const { id, log, model, sessions } = yield* scene()
  const ran = { count: 0 }
  const stock = define(
    Tool.make("stock", { parameters: { item: Schema.String }, success: Schema.Struct({ count: Schema.Int }) }),
    { handler: () => Effect.sync(() => ({ count: (ran.count += 1) })) }
  )
  yield* (yield* HostTools).register([stock])
  yield* model.answer(calls(callParts("call_1", "stock", { item: "nail" })))
  yield* model.answer(says("There is one."))
  yield* sessions.ask({ sessionID: id, prompt: { text: "How many nails?" } })
  const first = yield* model.request
  yield* model.request
  const again = (options: Omit<RerunOptions, "sessionID"> = {}) =>
    Effect.map(Stream.runCollect(rerun({ sessionID: id, ...options })), (answers) => [...answers])
  const settled = yield* log.latest(id)
  return { id, log, model, ran, again, first, settled }
})

const scoped = <A, E>(work: Effect.Effect<A, E, Opened | Scope.Scope>) => Effect.provide(work, runtime(allowed))

it.scoped("RQ-810: the first request is sent as it was, and nothing is stored", () =>
  scoped(
    Effect.gen(function* () {
      const { again, first, id, log, model, settled } = yield* recorded
      const { events } = yield* log.read({ sessionID: id })
      const step = events.find(({ type }) => type === "session.next.step.started")
      yield* model.answer(says("Many."))
      const answers = yield* again({ at: step?.seq ?? 0 })
      const request = yield* model.request
      assert.deepStrictEqual(
        request.prompt.content.map((message) => [message.role, JSON.stringify(message.content)]),
        first.prompt.content.map((message) => [message.role, JSON.stringify(message.content)])
      )
      assert.deepStrictEqual(
        request.tools.map(({ name }) => name),
        first.tools.map(({ name }) => name)
      )
      assert.deepStrictEqual(
        answers.map(({ run, text }) => [run, text]),
        [
          [0, ""],
          [1, "Many."]
        ]
      )
      assert.strictEqual(yield* log.latest(id), settled)
    })
  )
)

it.scoped(
  "RQ-811: a call gets the recorded result, no tool runs, and a call that is not in the record ends the run",
  () =>
    scoped(
      Effect.gen(function* () {
        const { again, id, log, model, ran } = yield* recorded
        const { events } = yield* log.read({ sessionID: id })
        const at = events.find(({ type }) => type === "session.next.step.started")?.seq ?? 0
        yield* model.answer(calls(callParts("c", "stock", { item: "nail" })))
        yield* model.answer(says("One, again."))
        const [, answer] = yield* again({ at })
        assert.deepStrictEqual([answer?.text, answer?.turns], ["One, again.", 2])
        yield* model.request
        const second = yield* model.request
        assert.match(JSON.stringify(second.prompt.content.at(-1)?.content), /count\D+1/)
        yield* model.answer(calls(callParts("c", "stock", { item: "bolt" })))
        const [, other] = yield* again({ at })
        assert.deepStrictEqual(other?.unanswered, ['stock {"item":"bolt"}'])
        assert.strictEqual(ran.count, 1)
      })
    )
)

it.scoped("RQ-812: models are asked in order, as often as told, and a refusal is an answer with its reason", () =>
  scoped(
    Effect.gen(function* () {
      const { again, model } = yield* recorded
      for (const text of ["a", "b", "c"]) yield* model.answer(says(text))
      yield* model.answer(Stream.fail(failure("no")))
      const answers = yield* again({ models: [ref, otherRef], times: 2 })
      assert.deepStrictEqual(
        answers.map(({ model, run, text }) => [model.id, run, text]),
        [
          ["one", 0, "There is one."],
          ["one", 1, "a"],
          ["one", 2, "b"],
          ["two", 1, "c"],
          ["two", 2, ""]
        ]
      )
      assert.include(answers.at(-1)?.error, "no")
      assert.isAbove(answers[1]?.tokens.output ?? 0, 0)
    })
  )
)

it.scoped("RQ-810: system text and tools can be others", () =>
  scoped(
    Effect.gen(function* () {
      const { again, model } = yield* recorded
      yield* model.answer(says("a"))
      yield* again({ system: "Be brief.", tools: { "*": false, stock: true } })
      const { prompt, tools } = yield* model.request
      assert.deepStrictEqual(prompt.content[0]?.content, "Be brief.")
      assert.deepStrictEqual(
        tools.map(({ name }) => name),
        ["stock"]
      )
    })
  )
)
