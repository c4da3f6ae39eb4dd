/** Calls that the output limit cut off: not run, and the model reads why. */
import { assert, it } from "@effect/vitest"
import { Effect, Stream, Struct } from "effect"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import { brief } from "../compaction/support/Talks.ts"
import { newSession, runtime, say } from "../support/Harness.ts"
import { callParts, calls, finish, says, type Script, ScriptedModel } from "../support/ScriptedModel.ts"
import { dataOf, resultsIn, tool } from "./support/Runs.ts"

const agents = [brief("look", "structured_output")]
const written = '{"path": "a.md", "content": "Once upon a ti'
type Parts = ReturnType<typeof callParts>

const input: Parts = [
  { type: "tool-params-start", id: "cut", name: "look", providerExecuted: false },
  { type: "tool-params-delta", id: "cut", delta: written }
]
const ended: Parts = [{ type: "tool-params-end", id: "cut" }]
const call: Parts = [{ type: "tool-call", id: "cut", name: "look", params: written, providerExecuted: false }]
const named: Parts = [{ type: "tool-params-start", id: "cut", name: "look", providerExecuted: false }]
const empty: Parts = [{ type: "tool-call", id: "cut", name: "look", params: {}, providerExecuted: false }]

/** All at once, as a provider may send them. */
const together = (...parts: ReadonlyArray<Parts>): Script => Stream.fromIterable([...parts.flat(), finish("length")])
/** Each part in a chunk of its own. */
const apart = (...parts: ReadonlyArray<Parts>): Script => Stream.rechunk(together(...parts), 1)

const answers = Effect.fnUntraced(function* (...scripts: ReadonlyArray<Script>) {
  const [sessions, model] = [yield* Sessions, yield* ScriptedModel]
  let runs = 0
  yield* tool("look", () => Effect.sync(() => `seen ${(runs += 1)}`))
  const { id } = yield* newSession()
  for (const script of scripts) yield* model.answer(script)
  yield* say(id, "go")
  yield* sessions.wait(id)
  const requests = yield* Effect.replicateEffect(model.request, yield* model.pending)
  return { id, runs: () => runs, last: requests.at(-1), requests }
})

for (const [form, parts] of [
  ["in the middle of its input", [input]],
  ["at the end of its input", [input, ended]],
  ["as a call whose input is no JSON", [input, call]],
  ["as an ended call whose input is no JSON", [input, ended, call]],
  ["as a call without its input before", [call]],
  ["after its name", [named]],
  ["after its name, as a call of nothing", [named, empty]]
] as const) {
  for (const [how, stream] of [
    ["at once", together],
    ["part by part", apart]
  ] as const) {
    it.scoped(`EX-R14: a call that was cut off ${form} is a failed one that names the output limit, ${how}`, () =>
      Effect.gen(function* () {
        const { id, last, requests, runs } = yield* answers(stream(...parts), says("Shorter, then."))
        const [failed, ...more] = yield* dataOf(id, "session.next.tool.failed")
        assert.deepStrictEqual(more, [])
        assert.strictEqual(failed?.error.type, "tool.output-limit")
        assert.strictEqual(runs(), 0)
        assert.strictEqual(requests.length, 2)
        const [[callID, result] = []] = last === undefined ? [] : resultsIn(last)
        assert.strictEqual(callID, "cut")
        assert.match(String(result), /output limit.*not run/)
        assert.strictEqual((yield* dataOf(id, "session.next.step.ended"))[0]?.finish, "length")
      }).pipe(Effect.scoped, Effect.provide(runtime({ agents })))
    )
  }
}

it.scoped("EX-R14: a call that was complete before the limit runs, and its neighbour that was cut off does not", () =>
  Effect.gen(function* () {
    const { id, runs } = yield* answers(apart(callParts("whole", "look", {}), input, call), says("Done."))
    assert.strictEqual(runs(), 1)
    assert.deepStrictEqual((yield* dataOf(id, "session.next.tool.success")).map(Struct.get("callID")), ["whole"])
    assert.deepStrictEqual(
      (yield* dataOf(id, "session.next.tool.failed")).map(({ callID, error }) => [callID, error.type]),
      [["cut", "tool.output-limit"]]
    )
  }).pipe(Effect.scoped, Effect.provide(runtime({ agents })))
)

it.scoped("EX-R14: without the limit, input that is no JSON is the tool's to refuse", () =>
  Effect.gen(function* () {
    const { id } = yield* answers(calls(input, call), says("Sorry."))
    assert.deepStrictEqual(
      (yield* dataOf(id, "session.next.tool.failed")).map(({ error }) => error.type),
      ["tool.input"]
    )
  }).pipe(Effect.scoped, Effect.provide(runtime({ agents })))
)
