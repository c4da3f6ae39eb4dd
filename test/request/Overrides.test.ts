/** What one prompt changes: system text and tools, until the next prompt, shown in place and shown again. */
import { assert, it } from "@effect/vitest"
import { Effect, Struct } from "effect"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import type { SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import type { PromptInput } from "../../packages/log/src/domain/Values.ts"
import { brief } from "../compaction/support/Talks.ts"
import { gatedTool, resultsIn, tool } from "../runner/support/Runs.ts"
import { newSession, open, runtime, scene, temporaryFolder } from "../support/Harness.ts"
import { callParts, calls, says, ScriptedModel } from "../support/ScriptedModel.ts"

const quiet = { agents: [brief("look", "lift", "weigh")] }
const threeTools = Effect.forEach(["look", "lift", "weigh"], (name) =>
  tool(name, () => Effect.succeed(`${name} is done`))
)

const ask = Effect.fnUntraced(function* (sessionID: SessionID, prompt: PromptInput, answer = "Done.") {
  const [sessions, model] = [yield* Sessions, yield* ScriptedModel]
  yield* model.answer(says(answer))
  yield* sessions.prompt({ sessionID, prompt })
  yield* sessions.wait(sessionID)
  return yield* model.request
})

/** What a request shows after its leading system texts: role and text. */
const shown = ({ prompt }: { readonly prompt: ScriptedRequest["prompt"] }) =>
  prompt.content
    .slice(prompt.content.findIndex(({ role }) => role !== "system"))
    .map(({ content, role }) => [
      role,
      typeof content === "string" ? content : content.map((part) => ("text" in part ? part.text : part.type)).join("|")
    ])
type ScriptedRequest = Effect.Effect.Success<ScriptedModel["Type"]["request"]>

const offered = ({ tools }: Pick<ScriptedRequest, "tools">) => tools.map(({ name }) => name)

it.scoped("RQ-25: a prompt's own system text is shown directly before it, and stays there", () =>
  Effect.gen(function* () {
    const { id } = yield* newSession()
    yield* ask(id, { text: "one" })
    const second = yield* ask(id, { text: "two", system: "Rhyme." })
    const expected = [
      ["user", "one"],
      ["assistant", "Done."],
      ["user", "<system-update>\nRhyme.\n</system-update>"],
      ["user", "two"]
    ]
    assert.deepStrictEqual(shown(second), expected)
    const third = yield* ask(id, { text: "three", system: "" })
    assert.deepStrictEqual(shown(third), [...expected, ["assistant", "Done."], ["user", "three"]])
  }).pipe(Effect.provide(runtime(quiet)))
)

it.scoped("RQ-25: it is a system message where the provider takes one there", () =>
  Effect.gen(function* () {
    const { id } = yield* newSession()
    yield* ask(id, { text: "one" })
    assert.deepStrictEqual(shown(yield* ask(id, { text: "two", system: "Rhyme." })).slice(2), [
      ["system", "Rhyme."],
      ["user", "two"]
    ])
  }).pipe(Effect.provide(runtime(quiet, { systemMessages: "anywhere" })))
)

it.scopedLive(
  "RQ-25: what a prompt said and turned off is shown again after a restart, for its turn and those after",
  () =>
    Effect.gen(function* () {
      const options = { ...quiet, filename: `${yield* temporaryFolder}/daybook.db` }
      const [id, before] = yield* Effect.scoped(
        Effect.flatMap(open(options), (services) =>
          Effect.gen(function* () {
            yield* threeTools
            const { id } = yield* newSession()
            const request = yield* ask(id, { text: "one", system: "Rhyme.", tools: { lift: false } })
            return [id, request] as const
          }).pipe(Effect.scoped, Effect.provide(services))
        )
      )
      yield* Effect.scoped(
        Effect.flatMap(open(options), (services) =>
          Effect.gen(function* () {
            yield* threeTools
            const sessions = yield* Sessions
            const again = yield* sessions.request({ sessionID: id, at: 100 })
            assert.deepStrictEqual(again.frame.tools.map(Struct.get("name")), ["look", "weigh"])
            // The prompt is still the one that the session works on.
            const model = yield* ScriptedModel
            yield* model.answer(says("Again."))
            yield* sessions.resume(id)
            const resumed = yield* model.request
            assert.deepStrictEqual(shown(resumed).slice(0, 2), shown(before))
            assert.deepStrictEqual(offered(resumed), ["look", "weigh"])
          }).pipe(Effect.scoped, Effect.provide(services))
        )
      )
    })
)

it.scoped("RQ-26: tools are turned off by name pattern, and the last match decides", () =>
  Effect.gen(function* () {
    yield* threeTools
    const { id } = yield* newSession()
    assert.deepStrictEqual(offered(yield* ask(id, { text: "a" })), ["lift", "look", "weigh"])
    assert.deepStrictEqual(offered(yield* ask(id, { text: "b", tools: { "l*": false } })), ["weigh"])
    assert.deepStrictEqual(offered(yield* ask(id, { text: "c", tools: { "*": false, look: true } })), ["look"])
    assert.deepStrictEqual(offered(yield* ask(id, { text: "d", tools: { look: true, "*": false } })), [])
    assert.deepStrictEqual(offered(yield* ask(id, { text: "e", tools: {} })), ["lift", "look", "weigh"])
  }).pipe(Effect.scoped, Effect.provide(runtime(quiet)))
)

it.scoped("RQ-26: the prompt of the next activity has all tools again, unless it sets its own", () =>
  Effect.gen(function* () {
    yield* threeTools
    const { id } = yield* newSession()
    assert.deepStrictEqual(offered(yield* ask(id, { text: "a", tools: { "*": false } })), [])
    assert.deepStrictEqual(offered(yield* ask(id, { text: "b" })), ["lift", "look", "weigh"])
  }).pipe(Effect.scoped, Effect.provide(runtime(quiet)))
)

it.scoped("RQ-26: tools that a steer sets itself take the place of the opener's, from its promotion on", () =>
  Effect.gen(function* () {
    const [sessions, model] = [yield* Sessions, yield* ScriptedModel]
    yield* tool("lift", () => Effect.succeed("lifted"))
    const look = yield* gatedTool("look")
    const { id } = yield* newSession()
    yield* model.answer(calls(callParts("c", "look", {})))
    yield* model.answer(says("Done."))
    yield* sessions.prompt({ sessionID: id, prompt: { text: "a", tools: { lift: false } } })
    yield* look.begun
    yield* sessions.prompt({ sessionID: id, prompt: { text: "b", tools: { look: false } } })
    yield* look.open
    yield* sessions.wait(id)
    assert.deepStrictEqual(offered(yield* model.request), ["look"])
    assert.deepStrictEqual(offered(yield* model.request), ["lift"])
  }).pipe(Effect.scoped, Effect.provide(runtime(quiet)))
)

it.scoped("RQ-27: nothing that the agent's rules deny is offered, whatever a prompt turns on", () =>
  Effect.gen(function* () {
    yield* threeTools
    const { id } = yield* newSession()
    const request = yield* ask(id, { text: "a", tools: { "*": true, look: true, bash: true } })
    assert.deepStrictEqual(offered(request), ["weigh"])
  }).pipe(Effect.scoped, Effect.provide(runtime({ agents: [brief("weigh")] })))
)

it.scoped("RQ-27: a call of a tool that the prompt turned off is not run, and the model is told so", () =>
  Effect.gen(function* () {
    const [sessions, model] = [yield* Sessions, yield* ScriptedModel]
    let runs = 0
    yield* tool("look", () => Effect.sync(() => `${(runs += 1)}`))
    const { id } = yield* newSession()
    yield* model.answer(calls(callParts("c", "look", {})))
    yield* model.answer(says("I see."))
    yield* sessions.prompt({ sessionID: id, prompt: { text: "a", tools: { look: false } } })
    yield* sessions.wait(id)
    yield* model.request
    const [[, result] = []] = resultsIn(yield* model.request)
    assert.match(String(result), /there is no tool "look"/)
    assert.strictEqual(runs, 0)
  }).pipe(Effect.scoped, Effect.provide(runtime(quiet)))
)

it.scoped("RQ-27: an exact retry may name them again; other overrides are another prompt", () =>
  Effect.gen(function* () {
    const { id, sessions } = yield* scene()
    const send = (prompt: PromptInput) =>
      Effect.either(sessions.prompt({ id: "msg_same", sessionID: id, prompt, resume: false }))
    const prompt = { text: "a", system: "Rhyme.", tools: { "*": false, look: true } }
    const first = yield* send(prompt)
    assert.deepStrictEqual(yield* send({ ...prompt, tools: { "*": false, look: true } }), first)
    for (const other of [
      { ...prompt, system: "Do not." },
      { ...prompt, tools: { "*": false } },
      // The order decides which of two matches counts.
      { ...prompt, tools: { look: true, "*": false } }
    ]) {
      const outcome = yield* send(other)
      assert.strictEqual(outcome._tag === "Left" ? outcome.left._tag : "admitted", "PromptConflictError")
    }
  }).pipe(Effect.provide(runtime(quiet)))
)
