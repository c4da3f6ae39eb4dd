/** Where a host takes part in prompts and requests: what is kept of it, and what a broken hook may not do. */
import { assert, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Scope, Struct, TestClock } from "effect"
import { HostRequests, type RequestHook } from "../../packages/core/src/request/HostRequests.ts"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import { brief } from "../compaction/support/Talks.ts"
import { dataOf, systemTexts } from "../runner/support/Runs.ts"
import { allUserTexts, answerTo, newSession, open, runtime, scene, temporaryFolder } from "../support/Harness.ts"

const quiet = { agents: [{ ...brief(), settings: { temperature: 0.5 } }] }

const register = (hook: RequestHook) => Effect.flatMap(HostRequests, (hooks) => hooks.register(hook))

/** Adds a part to what prompts come to. */
const noting = (name: string, text: string): RequestHook => ({
  name,
  prompt: (_session, _prompt, expansion) =>
    Effect.succeed({
      ...expansion,
      parts: [...expansion.parts, { kind: "resource" as const, name, content: { type: "text" as const, text } }]
    })
})

const run = Effect.fnUntraced(function* (text: string) {
  const { id, model } = yield* scene()
  yield* answerTo(id, text, "Done.")
  return [id, yield* model.request] as const
})

it.scoped("RQ-50: a hook adds to what a prompt comes to, before it is admitted, and the words stay as they were", () =>
  Effect.gen(function* () {
    yield* register(noting("weather", "It rains."))
    yield* register(noting("time", "It is late."))
    const [id, request] = yield* run("Shall I go?")
    const [admitted] = yield* dataOf(id, "session.next.prompt.admitted")
    assert.strictEqual(admitted?.prompt.text, "Shall I go?")
    // In the order in which they were added.
    assert.deepStrictEqual(admitted?.prompt.expansion?.parts.map(Struct.get("name")), ["weather", "time"])
    const shown = allUserTexts(request).join("\n")
    assert.include(shown, "It rains.")
    assert.include(shown, "It is late.")
  }).pipe(Effect.provide(runtime(quiet)))
)

it.scoped("RQ-50: an exact retry finds the first admission: its hooks are not asked again", () =>
  Effect.gen(function* () {
    const sessions = yield* Sessions
    let asked = 0
    yield* register({
      name: "counting",
      prompt: (_session, _prompt, expansion) =>
        Effect.sync(() => ((asked += 1), { ...expansion, text: `for the ${asked}. time` }))
    })
    const { id } = yield* newSession()
    const send = sessions.prompt({ id: "msg_same", sessionID: id, prompt: { text: "a" }, resume: false })
    assert.deepStrictEqual(yield* send, yield* send)
    assert.strictEqual(asked, 1)
  }).pipe(Effect.provide(runtime(quiet)))
)

it.scoped("RQ-51: a hook changes a request's system texts and settings; what went out is in the log", () =>
  Effect.gen(function* () {
    yield* register({
      name: "house",
      request: ({ settings, system }, { agent, model }) =>
        Effect.succeed({
          system: [...system, `House rules for ${agent.name} with ${model.ref.id}.`],
          settings: { ...settings, topP: 0.9, headers: { "x-key": "secret-value" } }
        })
    })
    const [id, request] = yield* run("hello")
    assert.strictEqual(systemTexts(request).at(-1), "House rules for build with one.")
    assert.deepStrictEqual(request.settings, { temperature: 0.5, topP: 0.9, headers: { "x-key": "secret-value" } })
    const sessions = yield* Sessions
    const { frame } = yield* sessions.request({ sessionID: id, at: 100 })
    assert.deepStrictEqual(frame.system, systemTexts(request))
    assert.deepStrictEqual(frame.settings, { temperature: 0.5, topP: 0.9, headers: ["x-key"] })
    // A header's value may be secret: it is in no event.
    const events = yield* Effect.map(sessions.history({ sessionID: id }), ({ events }) => JSON.stringify(events))
    assert.notInclude(events, "secret-value")
  }).pipe(Effect.provide(runtime(quiet)))
)

it.scoped("RQ-51: hooks see what those before them made of it, for as long as they are registered", () =>
  Effect.gen(function* () {
    const scope = yield* Scope.make()
    const adding = (name: string): RequestHook => ({
      name,
      request: (request) => Effect.succeed({ ...request, system: [`${request.system[0]} ${name}`] })
    })
    yield* register(adding("one"))
    yield* Scope.extend(register(adding("two")), scope)
    const [, first] = yield* run("hello")
    assert.deepStrictEqual(systemTexts(first), ["Be brief. one two"])
    yield* Scope.close(scope, Exit.void)
    const [, second] = yield* run("hello")
    assert.deepStrictEqual(systemTexts(second), ["Be brief. one"])
  }).pipe(Effect.provide(runtime(quiet)))
)

it.scoped("RQ-52: a hook that fails or breaks changes nothing, and the others' changes count", () =>
  Effect.gen(function* () {
    yield* register({
      name: "failing",
      prompt: () => Effect.fail("no"),
      request: () => Effect.fail("no")
    })
    yield* register({
      name: "broken",
      prompt: () => Effect.dieMessage("broken"),
      request: () => {
        throw new Error("broken before it began")
      }
    })
    yield* register({ name: "stopping", prompt: () => Effect.interrupt, request: () => Effect.interrupt })
    yield* register({
      ...noting("weather", "It rains."),
      request: (request) => Effect.succeed({ ...request, system: ["Mine."] })
    })
    const [id, request] = yield* run("hello")
    assert.deepStrictEqual(systemTexts(request), ["Mine."])
    assert.include(allUserTexts(request).join("\n"), "It rains.")
    assert.strictEqual((yield* Effect.flatMap(Sessions, (sessions) => sessions.get(id))).activity?.state, "completed")
  }).pipe(Effect.provide(runtime(quiet)))
)

it.scoped("RQ-52: a hook that does not answer is left out after 10 seconds", () =>
  Effect.gen(function* () {
    const sessions = yield* Sessions
    yield* register({ name: "silent", prompt: () => Effect.never })
    const { id } = yield* newSession()
    const admitting = yield* Effect.fork(sessions.prompt({ sessionID: id, prompt: { text: "a" }, resume: false }))
    yield* TestClock.adjust("9 seconds")
    assert.deepStrictEqual(yield* sessions.inbox(id), [])
    yield* TestClock.adjust("1 second")
    const input = yield* Fiber.join(admitting)
    assert.deepStrictEqual(input.prompt, { text: "a" })
  }).pipe(Effect.provide(runtime(quiet)))
)

it.scopedLive("RQ-53: what a hook made of a prompt and a request is shown again without the hook", () =>
  Effect.gen(function* () {
    const options = { ...quiet, filename: `${yield* temporaryFolder}/daybook.db` }
    const [id, request] = yield* Effect.scoped(
      Effect.flatMap(open(options), (services) =>
        Effect.gen(function* () {
          yield* register({
            ...noting("weather", "It rains."),
            request: (asked) => Effect.succeed({ ...asked, system: ["Mine."] })
          })
          return yield* run("hello")
        }).pipe(Effect.scoped, Effect.provide(services))
      )
    )
    yield* Effect.scoped(
      Effect.flatMap(open(options), (services) =>
        Effect.gen(function* () {
          const sessions = yield* Sessions
          const again = yield* sessions.request({ sessionID: id, at: 100 })
          assert.deepStrictEqual(again.frame.system, systemTexts(request))
          assert.include(JSON.stringify(again.messages), "It rains.")
        }).pipe(Effect.provide(services))
      )
    )
  })
)
