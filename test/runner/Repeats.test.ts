/** Calls that are made again and again: from the third same result on, the model is told. */
import { Tool } from "@effect/ai"
import { assert, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { ToolFailure } from "../../packages/core/src/domain/ToolError.ts"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import { HostTools } from "../../packages/core/src/tool/HostTools.ts"
import { define } from "../../packages/core/src/tool/ToolDefinition.ts"
import type { SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { brief } from "../compaction/support/Talks.ts"
import { answerTo, newSession, open, runtime, say, temporaryFolder } from "../support/Harness.ts"
import { callParts, calls, says, ScriptedModel } from "../support/ScriptedModel.ts"
import { dataOf, failureOf, resultsIn } from "./support/Runs.ts"

const agents = [brief("look", "peek")]

/** Tools that say what the test says next. */
const tools = Effect.fnUntraced(function* (result: (path: string) => string | ToolFailure) {
  const host = yield* HostTools
  for (const name of ["look", "peek"]) {
    yield* host.register([
      define(
        Tool.make(name, {
          parameters: { path: Schema.String, deep: Schema.optional(Schema.Boolean) },
          success: Schema.String
        }),
        {
          handler: ({ path }) => {
            const said = result(path)
            return typeof said === "string" ? Effect.succeed(said) : said
          }
        }
      )
    ])
  }
})

type Call = readonly [name: string, input: unknown]

/** One call a turn, then an answer in words: how often each result says that it came, 0 for not at all. */
const counts = Effect.fnUntraced(function* (id: SessionID, made: ReadonlyArray<Call>) {
  const model = yield* ScriptedModel
  for (const [nth, [name, input]] of made.entries()) yield* model.answer(calls(callParts(`c${nth}`, name, input)))
  yield* answerTo(id, "go", "Done.")
  const requests = yield* Effect.replicateEffect(model.request, made.length + 1)
  const last = requests.at(-1)
  const results = last === undefined ? [] : resultsIn(last).slice(-made.length)
  return results.map(([, result]) => Number(/same result (\d+) times in a row/.exec(String(result))?.[1] ?? 0))
})

const same: Call = ["look", { path: "a", deep: true }]
const reordered: Call = ["look", { deep: true, path: "a" }]
const other: Call = ["look", { path: "b" }]
const otherTool: Call = ["peek", { path: "a", deep: true }]

for (const [name, made, expected] of [
  ["twice are none", [same, same], [0, 0]],
  ["the third and those after it", [same, same, same, same, same], [0, 0, 3, 4, 5]],
  ["whatever the order of the input's keys", [same, reordered, same], [0, 0, 3]],
  ["another input begins anew", [same, same, other, same, same, same], [0, 0, 0, 0, 0, 3]],
  ["another tool begins anew", [same, same, otherTool, same, same], [0, 0, 0, 0, 0]]
] as ReadonlyArray<readonly [string, ReadonlyArray<Call>, ReadonlyArray<number>]>) {
  it.scoped(`EX-T15: same results in a row are told to the model: ${name}`, () =>
    Effect.gen(function* () {
      yield* tools(() => "nothing new")
      assert.deepStrictEqual(yield* counts((yield* newSession()).id, made), expected)
    }).pipe(Effect.scoped, Effect.provide(runtime({ agents })))
  )
}

it.scoped("EX-T15: a result that differs is none of them, and neither is one after another prompt", () =>
  Effect.gen(function* () {
    let calls = 0
    yield* tools(() => `${Math.floor((calls += 1) / 3)}`)
    const { id } = yield* newSession()
    assert.deepStrictEqual(yield* counts(id, [same, same, same, same]), [0, 0, 0, 0])
    assert.deepStrictEqual(yield* counts(id, [same]), [0])
  }).pipe(Effect.scoped, Effect.provide(runtime({ agents })))
)

it.scoped("EX-T15: a long result is the same wherever the whole of it is kept", () =>
  Effect.gen(function* () {
    yield* tools(() => "nothing new\n".repeat(20_000))
    const { id } = yield* newSession()
    assert.deepStrictEqual(yield* counts(id, [same, same, same, same]), [0, 0, 3, 4])
    const paths = (yield* dataOf(id, "session.next.tool.success")).flatMap(({ outputPaths = [] }) => outputPaths)
    assert.strictEqual(new Set(paths).size, 4)
  }).pipe(Effect.scoped, Effect.provide(runtime({ agents })))
)

it.scoped("EX-T15: failures count as well, those of the input and of tools that are not there among them", () =>
  Effect.gen(function* () {
    yield* tools(() => new ToolFailure({ type: "tool.execution", message: "no such file" }))
    const { id } = yield* newSession()
    assert.deepStrictEqual(yield* counts(id, [same, same, same, same]), [0, 0, 3, 4])
    const wrong: Call = ["look", { path: 7 }]
    assert.deepStrictEqual(yield* counts(id, [wrong, wrong, wrong]), [0, 0, 3])
    const missing: Call = ["gone", {}]
    assert.deepStrictEqual(yield* counts(id, [missing, missing, missing, missing]), [0, 0, 3, 4])
  }).pipe(Effect.scoped, Effect.provide(runtime({ agents })))
)

it.scopedLive("EX-T15: a resume in another process counts on from the log", () =>
  Effect.gen(function* () {
    const options = {
      agents: agents.map((agent) => ({ ...agent, turnLimit: 2 })),
      filename: `${yield* temporaryFolder}/d.db`
    }
    const turns = (begin: Effect.Effect<SessionID, unknown, Sessions>, left: number) =>
      Effect.scoped(
        Effect.flatMap(open(options), (services) =>
          Effect.gen(function* () {
            yield* tools(() => "nothing new")
            const [sessions, model] = [yield* Sessions, yield* ScriptedModel]
            const id = yield* begin
            for (let nth = 0; nth < left; nth += 1) yield* model.answer(calls(callParts(`c${nth}`, ...same)))
            yield* model.answer(says("Done."))
            const failure = yield* failureOf(sessions.resume(id))
            const requests = yield* Effect.replicateEffect(model.request, yield* model.pending)
            return { id, failure, last: requests.at(-1) }
          }).pipe(Effect.scoped, Effect.provide(services))
        )
      )
    const first = yield* turns(
      Effect.flatMap(newSession(), ({ id }) => Effect.as(say(id, "go", { resume: false }), id)),
      2
    )
    assert.strictEqual(first.failure, "TurnLimitExceeded")
    const second = yield* turns(Effect.succeed(first.id), 1)
    assert.isUndefined(second.failure)
    const results = second.last === undefined ? [] : resultsIn(second.last).map(([, result]) => String(result))
    assert.match(results.at(-1) ?? "", /same result 3 times in a row/)
  })
)
