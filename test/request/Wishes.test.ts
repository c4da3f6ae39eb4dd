/**
 * Which tools and which form an activity's requests have when prompts join it: those of its opener, as far as no later
 * prompt sets its own, whatever comes between them.
 */
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Effect, FastCheck as fc, Struct } from "effect"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import { SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { join as joined, noWishes, type PromptInput, type Wishes } from "../../packages/log/src/domain/Values.ts"
import { brief, compaction, exchange, long, narrow, summary } from "../compaction/support/Talks.ts"
import { crash } from "../runner/support/Crash.ts"
import { dataOf, failureOf, gatedTool, tool } from "../runner/support/Runs.ts"
import { newSession, runtime, temporaryFolder } from "../support/Harness.ts"
import { callParts, calls, says, ScriptedModel, type SeenRequest } from "../support/ScriptedModel.ts"
import { forAll } from "../support/Cases.ts"

const formOf = (name: string) => ({ schema: { type: "object", properties: { [name]: { type: "string" } } } })
const agents = [brief("look", "lift", "weigh")]

/** The tools that a request offers, and whether it has to call one. */
const seen = ({ toolChoice, tools }: SeenRequest) => ({
  tools: tools.map(({ name }) => name).filter((name) => name !== "structured_output"),
  required: toolChoice === "required"
})

/** The same as the log shows it again. */
const shown = Effect.fnUntraced(function* (sessionID: SessionID, at: number) {
  const { frame } = yield* (yield* Sessions).request({ sessionID, at })
  const form = frame.tools.find(({ name }) => name === "structured_output")?.parameters["properties"]
  return {
    tools: frame.tools.map(({ name }) => name).filter((name) => name !== "structured_output"),
    form: Object.keys(form ?? {}),
    required: frame.settings["toolChoice"] === "required"
  }
})

/** What is shown under these wishes. */
const expected = ({ output, tools = {} }: Wishes) => ({
  tools: ["lift", "look", "weigh"].filter((name) => tools[name] !== false),
  form: Object.keys(output?.schema["properties"] ?? {}),
  required: output !== undefined
})

const answer = ({ output }: Wishes) =>
  output === undefined ? says("Done.") : calls(callParts("o", "structured_output", {}))

const wishes: ReadonlyArray<Wishes> = [
  {},
  { tools: { lift: false } },
  { output: formOf("opener") },
  { tools: { lift: false }, output: formOf("opener") }
]
const steerWishes: ReadonlyArray<Wishes> = [
  {},
  { tools: { weigh: false } },
  { tools: {} },
  { output: formOf("steer") },
  { tools: { weigh: false }, output: formOf("steer") }
]

/** Steps of a session, by the places of their events. */
const stepsOf = (id: SessionID) =>
  Effect.map(
    Effect.flatMap(Sessions, (sessions) => sessions.messages({ sessionID: id, limit: 500 })),
    ({ items }) => items.flatMap(({ seq, type }) => (type === "assistant" ? [seq] : []))
  )

it.scoped("RQ-26: the opener's tools and form hold for every request, but for what a steer sets itself", () =>
  Effect.gen(function* () {
    const [sessions, model] = [yield* Sessions, yield* ScriptedModel]
    for (const name of ["lift", "weigh"]) yield* tool(name, () => Effect.succeed("done"))
    for (const opener of wishes) {
      for (const steer of steerWishes) {
        yield* Effect.gen(function* () {
          const look = yield* gatedTool("look")
          const { id } = yield* newSession()
          yield* model.answer(calls(callParts("c", "look", {})))
          yield* model.answer(answer(joined(opener, steer)))
          yield* sessions.prompt({ sessionID: id, prompt: { text: "open", ...opener } })
          yield* look.begun
          yield* sessions.prompt({ sessionID: id, prompt: { text: "steer", ...steer } })
          yield* look.open
          yield* sessions.wait(id)
          const steps = yield* stepsOf(id)
          const sent = [yield* model.request, yield* model.request]
          for (const [index, held] of [opener, joined(opener, steer)].entries()) {
            const { form, ...rest } = expected(held)
            assert.deepStrictEqual(yield* shown(id, steps[index] ?? -1), { form, ...rest })
            const request = sent[index]
            assert.isDefined(request)
            if (request !== undefined) assert.deepInclude(seen(request), rest)
          }
          assert.strictEqual(yield* model.pending, 0)
        }).pipe(Effect.scoped)
      }
    }
  }).pipe(Effect.scoped, Effect.provide(runtime({ agents })))
)

it.scoped(
  "RQ-26: of several prompts that become visible at once, and of later ones, the last that sets a wish counts",
  () =>
    Effect.gen(function* () {
      const [sessions, model] = [yield* Sessions, yield* ScriptedModel]
      for (const name of ["look", "lift", "weigh"]) yield* tool(name, () => Effect.succeed("done"))
      const { id } = yield* newSession()
      const ask = (prompt: PromptInput) => sessions.prompt({ sessionID: id, prompt, resume: false })
      yield* ask({ text: "open", output: formOf("one"), tools: { lift: false } })
      yield* ask({ text: "plain" })
      yield* ask({ text: "second", output: formOf("two") })
      yield* ask({ text: "plain again" })
      yield* ask({ text: "later", tools: { look: false } })
      for (const name of ["c1", "c2", "c3"]) yield* model.answer(calls(callParts(name, "weigh", {})))
      yield* model.answer(answer({ output: formOf("two") }))
      const preview = yield* sessions.request({ sessionID: id })
      yield* sessions.resume(id)
      const steps = yield* stepsOf(id)
      // Two become visible at a boundary here.
      const held: ReadonlyArray<Wishes> = [
        { output: formOf("one"), tools: { lift: false } },
        { output: formOf("two"), tools: { lift: false } },
        { output: formOf("two"), tools: { look: false } },
        { output: formOf("two"), tools: { look: false } }
      ]
      for (const [index, step] of steps.entries()) {
        assert.deepStrictEqual(yield* shown(id, step), expected(held[index] ?? {}))
      }
      assert.strictEqual(steps.length, held.length)
      assert.deepStrictEqual(preview.frame.tools.map(Struct.get("name")), ["look", "structured_output", "weigh"])
    }).pipe(Effect.scoped, Effect.provide(runtime({ agents, steerBatchLimit: 2 })))
)

it.scoped("RQ-26: a steer that comes after the structured answer is answered in the same form", () =>
  Effect.gen(function* () {
    const [sessions, model] = [yield* Sessions, yield* ScriptedModel]
    const look = yield* gatedTool("look")
    const { id } = yield* newSession()
    yield* model.answer(calls(callParts("o", "structured_output", {}), callParts("c", "look", {})))
    yield* model.answer(calls(callParts("o2", "structured_output", {})))
    yield* sessions.prompt({ sessionID: id, prompt: { text: "open", output: formOf("opener") } })
    yield* look.begun
    yield* sessions.prompt({ sessionID: id, prompt: { text: "and this" } })
    yield* look.open
    yield* sessions.wait(id)
    assert.strictEqual((yield* sessions.get(id)).activity?.state, "completed")
    assert.deepStrictEqual([seen(yield* model.request).required, seen(yield* model.request).required], [true, true])
  }).pipe(Effect.scoped, Effect.provide(runtime({ agents })))
)

it.scoped(
  "RQ-45: the prompt of a new activity has its own wishes only, whatever the last one asked and how it ended",
  () =>
    Effect.gen(function* () {
      const [sessions, model] = [yield* Sessions, yield* ScriptedModel]
      for (const ended of ["completed", "failed", "queued"]) {
        const { id } = yield* newSession()
        const opener = { text: "open", output: formOf("opener"), tools: { look: false } }
        if (ended === "completed") yield* model.answer(answer(opener))
        else for (const _ of [1, 2]) yield* model.answer(says("No form."))
        yield* sessions.prompt({ sessionID: id, prompt: opener, resume: false })
        yield* failureOf(sessions.resume(id))
        while ((yield* model.pending) > 0) yield* model.request
        yield* model.answer(says("Plain."))
        const delivery = ended === "queued" ? "queue" : "steer"
        yield* sessions.prompt({ sessionID: id, prompt: { text: "next" }, delivery })
        yield* sessions.wait(id)
        assert.isFalse(seen(yield* model.request).required, ended)
      }
    }).pipe(Effect.scoped, Effect.provide(runtime({ agents })))
)

it.scoped("RQ-45: a resume goes on with the wishes of the activity before, the steers that joined it included", () =>
  Effect.gen(function* () {
    const [sessions, model] = [yield* Sessions, yield* ScriptedModel]
    for (const name of ["lift", "weigh"]) yield* tool(name, () => Effect.succeed("done"))
    const [opener, steer] = [
      { text: "open", output: formOf("opener") },
      { text: "join", tools: { lift: false } }
    ]
    const { form: _, ...held } = expected(joined(opener, steer))
    for (const waiting of [undefined, { text: "sent to what was interrupted" }]) {
      yield* Effect.gen(function* () {
        const look = yield* gatedTool("look")
        const { id } = yield* newSession()
        yield* model.answer(calls(callParts("c", "look", {})))
        yield* sessions.prompt({ sessionID: id, prompt: opener, resume: false })
        yield* sessions.prompt({ sessionID: id, prompt: steer })
        yield* look.begun
        if (waiting !== undefined) yield* sessions.prompt({ sessionID: id, prompt: waiting })
        yield* sessions.interrupt(id)
        yield* model.request
        // Twice: a resume of a resumed activity is the same.
        for (const _ of [1, 2]) {
          yield* model.answer(answer(opener))
          yield* sessions.resume(id)
          assert.deepInclude(seen(yield* model.request), held)
        }
      }).pipe(Effect.scoped)
    }
  }).pipe(Effect.scoped, Effect.provide(runtime({ agents })))
)

it.scopedLive(
  "RQ-45: after a crash in the middle, wishes are read from the log, with a steer that waits and without",
  () =>
    Effect.gen(function* () {
      for (const steer of [undefined, { text: "and this" }]) {
        const id = SessionID.make("ses_wishes")
        const folder = yield* temporaryFolder
        const filename = join(folder, "daybook.db")
        const prompt = { text: "go", output: formOf("opener"), tools: { lift: false } }
        yield* crash(folder, filename, id, steer === undefined ? { prompt } : { prompt, steer })
        yield* Effect.gen(function* () {
          const [sessions, model] = [yield* Sessions, yield* ScriptedModel]
          for (const name of ["look", "lift", "weigh"]) yield* tool(name, () => Effect.succeed("done"))
          yield* model.answer(answer(prompt))
          yield* sessions.resume(id)
          const { form: _, ...rest } = expected(prompt)
          assert.deepInclude(seen(yield* model.request), rest)
          const last = (yield* stepsOf(id)).at(-1) ?? -1
          assert.deepStrictEqual(yield* shown(id, last), expected(prompt))
        }).pipe(Effect.scoped, Effect.provide(runtime({ filename, agents })))
      }
    })
)

it.scoped("RQ-26: the opener's tools hold across a compaction that a steer follows", () =>
  Effect.gen(function* () {
    const [sessions, model] = [yield* Sessions, yield* ScriptedModel]
    const look = yield* gatedTool("look")
    for (const name of ["lift", "weigh"]) yield* tool(name, () => Effect.succeed("done"))
    const { id } = yield* newSession()
    for (const name of ["one", "two"]) yield* exchange(id, name)
    yield* model.answer(calls(callParts("c", "look", {})))
    yield* model.answer(says(summary("To go on")))
    yield* model.answer(says("Done."))
    yield* sessions.prompt({ sessionID: id, prompt: { text: "open", tools: { lift: false } } })
    yield* look.begun
    yield* sessions.prompt({ sessionID: id, prompt: { text: long("steer", 900) } })
    yield* look.open
    yield* sessions.wait(id)
    const requests = yield* Effect.replicateEffect(model.request, yield* model.pending)
    assert.deepStrictEqual(
      requests.map(({ tools }) => tools.map(({ name }) => name)),
      [["look", "weigh"], [], ["look", "weigh"]]
    )
    assert.strictEqual((yield* dataOf(id, "session.next.compaction.ended")).length, 1)
  }).pipe(Effect.scoped, Effect.provide(narrow({ agents, compaction: { ...compaction, prune: false } })))
)

const anyWishes: fc.Arbitrary<Wishes> = fc.record(
  {
    tools: fc.dictionary(fc.constantFrom("a", "b*", "*"), fc.boolean()),
    output: fc.constantFrom(formOf("x"), formOf("y"))
  },
  { requiredKeys: [] }
)

it("RQ-26: each wish is that of the last prompt that sets it, and no pattern at all sets nothing", () => {
  forAll([fc.array(anyWishes, { maxLength: 6 })], 40, (prompts) => {
    const held = prompts.reduce(joined, noWishes)
    const named = prompts.filter(({ tools = {} }) => Object.keys(tools).length > 0)
    assert.deepStrictEqual(held.tools, named.at(-1)?.tools)
    assert.deepStrictEqual(held.output, prompts.findLast(({ output }) => output !== undefined)?.output)
  })
})
