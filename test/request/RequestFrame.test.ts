/** What frames a request, in the log: written when it changes, only as far as it changed. */
import { Tool } from "@effect/ai"
import { assert, it } from "@effect/vitest"
import { Effect, FastCheck as fc, Schema, Struct } from "effect"
import { build } from "../../packages/core/src/agent/BuiltinAgents.ts"
import {
  fold,
  framed,
  hashOf,
  noFrame,
  nothingFolded,
  type RequestFrame
} from "../../packages/core/src/request/RequestFrame.ts"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import { HostTools } from "../../packages/core/src/tool/HostTools.ts"
import { define } from "../../packages/core/src/tool/ToolDefinition.ts"
import type { EventOfType } from "../../packages/log/src/events/SessionEvents.ts"
import { brief, exchange, long, narrow, summary } from "../compaction/support/Talks.ts"
import { dataOf, eventsOf, tool } from "../runner/support/Runs.ts"
import { answerTo, newSession, open, runtime, scene, temporaryFolder } from "../support/Harness.ts"
import { callParts, calls, otherRef, says, ScriptedModel } from "../support/ScriptedModel.ts"
import { forAll } from "../support/Cases.ts"

const quiet = {
  agents: [brief("look", "lift"), { ...build, name: "other", prompt: "You are another.", permissions: [] }]
}

it.scoped(
  "RQ-30: the first request is framed whole, directly before its step, and the same frame is not written again",
  () =>
    Effect.gen(function* () {
      yield* tool("look", () => Effect.succeed("seen"))
      const { id, model, sessions } = yield* scene()
      yield* model.answer(calls(callParts("c", "look", {})))
      yield* answerTo(id, "one", "Done.")
      yield* exchange(id, "two")
      const [first, ...others] = yield* dataOf(id, "session.next.request.framed")
      assert.deepStrictEqual(others, [])
      assert.strictEqual(first?.system?.[0], "Be brief.")
      assert.deepStrictEqual(first?.tools?.offered, ["look"])
      assert.deepStrictEqual(first?.tools?.defined.map(Struct.get("name")), ["look"])
      assert.deepStrictEqual(first?.settings, {})
      const types = (yield* eventsOf(id)).map(({ type }) => type)
      assert.strictEqual(types[types.indexOf("session.next.request.framed") + 1], "session.next.step.started")
      assert.strictEqual((yield* sessions.get(id)).frame, first?.hash)
    }).pipe(Effect.scoped, Effect.provide(runtime(quiet)))
)

it.scoped("RQ-31: what changed is written, and nothing else: one tool more is one definition", () =>
  Effect.gen(function* () {
    const sessions = yield* Sessions
    yield* tool("look", () => Effect.succeed("seen"))
    const { id } = yield* newSession()
    yield* exchange(id, "one", { prompt: 10 })
    yield* tool("lift", () => Effect.succeed("lifted"))
    yield* exchange(id, "two", { prompt: 10 })
    const [, second] = yield* dataOf(id, "session.next.request.framed")
    assert.deepStrictEqual(
      { ...second, hash: "", tools: { ...second?.tools, defined: second?.tools?.defined.map(({ name }) => name) } },
      { hash: "", tools: { offered: ["lift", "look"], defined: ["lift"] } }
    )
    yield* sessions.prompt({ sessionID: id, prompt: { text: "three", tools: { look: false } }, resume: false })
    const model = yield* ScriptedModel
    yield* model.answer(says("Done."))
    yield* sessions.resume(id)
    const [, , third] = yield* dataOf(id, "session.next.request.framed")
    assert.deepStrictEqual({ ...third, hash: "" }, { hash: "", tools: { offered: ["lift"], defined: [] } })
  }).pipe(Effect.scoped, Effect.provide(runtime(quiet)))
)

it.scoped("RQ-31: a tool that comes to be another under its name is defined anew", () =>
  Effect.gen(function* () {
    const host = yield* HostTools
    const look = (description: string) =>
      host.register([
        define(Tool.make("look", { description, success: Schema.String }), { handler: () => Effect.succeed("") })
      ])
    const { id } = yield* newSession()
    yield* Effect.scoped(Effect.zipRight(look("Looks."), exchange(id, "one", { prompt: 10 })))
    yield* Effect.scoped(Effect.zipRight(look("Looks closer."), exchange(id, "two", { prompt: 10 })))
    const [, second] = yield* dataOf(id, "session.next.request.framed")
    assert.deepStrictEqual(second?.tools?.defined.map(Struct.get("description")), ["Looks closer."])
  }).pipe(Effect.provide(runtime(quiet)))
)

it.scoped(
  "RQ-31: a switch of agent writes its system texts and tools; a switch of model nothing but what is told of it",
  () =>
    Effect.gen(function* () {
      const sessions = yield* Sessions
      yield* tool("look", () => Effect.succeed("seen"))
      const { id } = yield* newSession()
      yield* exchange(id, "one", { prompt: 10 })
      yield* sessions.switchModel(id, otherRef)
      yield* exchange(id, "two", { prompt: 10 })
      assert.strictEqual((yield* dataOf(id, "session.next.request.framed")).length, 1)
      yield* sessions.switchAgent(id, "other")
      yield* exchange(id, "three", { prompt: 10 })
      const [first, second] = yield* dataOf(id, "session.next.request.framed")
      assert.deepStrictEqual(second?.system, ["You are another.", first?.system?.[1] ?? ""])
      assert.isUndefined(second?.settings)
      assert.isUndefined(second?.baselineSeq)
    }).pipe(Effect.scoped, Effect.provide(runtime(quiet)))
)

it.scopedLive("RQ-32: after a restart an unchanged frame is not written again, and a changed one whole", () =>
  Effect.gen(function* () {
    const options = { ...quiet, filename: `${yield* temporaryFolder}/daybook.db` }
    const id = yield* Effect.scoped(
      Effect.flatMap(open(options), (services) =>
        Effect.gen(function* () {
          yield* tool("look", () => Effect.succeed("seen"))
          const { id } = yield* newSession()
          yield* exchange(id, "one", { prompt: 10 })
          return id
        }).pipe(Effect.scoped, Effect.provide(services))
      )
    )
    yield* Effect.scoped(
      Effect.flatMap(open(options), (services) =>
        Effect.gen(function* () {
          yield* tool("look", () => Effect.succeed("seen"))
          yield* exchange(id, "two", { prompt: 10 })
          assert.strictEqual((yield* dataOf(id, "session.next.request.framed")).length, 1)
          yield* tool("lift", () => Effect.succeed("lifted"))
          yield* exchange(id, "three", { prompt: 10 })
          yield* exchange(id, "four", { prompt: 10 })
          const [, second, ...others] = yield* dataOf(id, "session.next.request.framed")
          assert.deepStrictEqual(others, [])
          assert.deepStrictEqual(second?.tools?.offered, ["lift", "look"])
        }).pipe(Effect.scoped, Effect.provide(services))
      )
    )
  })
)

it.scoped("RQ-30: a compaction's fresh baseline is a change of the frame, and its request for a summary is none", () =>
  Effect.gen(function* () {
    const { id, model } = yield* scene()
    for (const name of ["one", "two", "three"]) yield* exchange(id, name)
    yield* model.answer(says(summary("To begin anew")))
    yield* answerTo(id, long("four", 300), "Done.")
    const frames = yield* dataOf(id, "session.next.request.framed")
    assert.strictEqual(frames.length, 2)
    const [ended] = (yield* eventsOf(id)).filter(({ type }) => type === "session.next.compaction.ended")
    assert.deepStrictEqual({ ...frames[1], hash: "" }, { hash: "", baselineSeq: ended?.seq ?? -1 })
  }).pipe(Effect.provide(narrow()))
)

const frames = fc.record({
  system: fc.array(fc.constantFrom("a", "b", "c"), { minLength: 1, maxLength: 2 }),
  baselineSeq: fc.nat(3),
  tools: fc.uniqueArray(
    fc.record({
      name: fc.constantFrom("look", "lift", "weigh"),
      description: fc.constantFrom("one", "two"),
      parameters: fc.constantFrom({}, { type: "object" })
    }),
    { selector: ({ name }) => name }
  ),
  settings: fc.constantFrom({}, { temperature: 1 }, { temperature: 0.5, stop: ["x"] })
})

it("RQ-33: folding the events of any frames gives each frame again, whether the one before was known or not", () => {
  forAll([fc.array(fc.tuple(frames, fc.boolean()), { minLength: 1, maxLength: 12 })], 40, (steps) => {
    let folded = nothingFolded
    let before: RequestFrame | undefined
    for (const [next, knows] of steps) {
      const { data } = framed(next, hashOf(next), knows ? before : undefined)
      // An event as the log would give it, as far as the fold looks at it.
      folded = fold(folded, { data: JSON.parse(JSON.stringify(data)) } as EventOfType<"session.next.request.framed">)
      assert.deepStrictEqual(folded.frame, next)
      before = next
    }
  })
})

it("RQ-33: a frame's name tells its content: equal frames have one, different ones have two", () => {
  forAll([frames, frames], 40, (a, b) => {
    const same =
      JSON.stringify([a.system, a.baselineSeq, a.tools, a.settings]) ===
      JSON.stringify([b.system, b.baselineSeq, b.tools, b.settings])
    assert.strictEqual(hashOf(a) === hashOf(b), same)
  })
  assert.strictEqual(hashOf(noFrame), hashOf({ ...noFrame, system: [] }))
})
