/** Agent, model and Location of a session: CR-3, CR-4, CR-6, and moves. */
import { mkdirSync, realpathSync, symlinkSync } from "node:fs"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Effect, Struct } from "effect"
import type { Agent } from "../../../packages/core/src/domain/Agent.ts"
import { MessageID } from "../../../packages/log/src/domain/Identifiers.ts"
import { eventTypes, newSession, type Runtimes, say, scene, temporaryFolder } from "../../support/Harness.ts"
import { callParts, calls, otherRef, ref, says } from "../../support/ScriptedModel.ts"

export const switching = ({ runtime }: Runtimes) => {
  const agents: ReadonlyArray<Agent> = [{ name: "plan", prompt: "You plan.", permissions: [] }]

  it.layer(runtime({ agents }))("switches", (it) => {
    it.effect("CR-3: the model that is selected already is published once, `default` being no variant", () =>
      Effect.gen(function* () {
        const { id, sessions } = yield* scene()
        const model = otherRef
        yield* sessions.switchModel(id, model)
        yield* sessions.switchModel(id, model)
        yield* sessions.switchModel(id, { ...model, variant: "default" })
        assert.deepStrictEqual(yield* eventTypes(id), ["session.created", "session.next.model.switched"])
        for (const other of [{ ...model, variant: "fast" }, { ...ref, variant: "fast" }, ref]) {
          yield* sessions.switchModel(id, other)
          assert.deepStrictEqual((yield* sessions.get(id)).model, other)
        }
        assert.strictEqual((yield* eventTypes(id)).length, 5)
      })
    )

    it.effect("IB-3: a model that the host cannot use is refused, and changes nothing", () =>
      Effect.gen(function* () {
        const { id, sessions } = yield* scene()
        yield* sessions.switchModel(id, otherRef)
        for (const unknown of [
          { ...otherRef, id: "three" },
          { ...otherRef, providerID: "nobody" }
        ]) {
          const refused = yield* Effect.flip(sessions.switchModel(id, unknown))
          assert.deepInclude(refused, { _tag: "InvalidInput", field: "model" })
        }
        assert.deepStrictEqual((yield* sessions.get(id)).model, otherRef)
        assert.strictEqual((yield* eventTypes(id)).length, 2)
      })
    )

    it.effect("CR-3: an agent switch is always published", () =>
      Effect.gen(function* () {
        const { id, sessions } = yield* scene()
        yield* sessions.switchAgent(id, "plan")
        yield* sessions.switchAgent(id, "plan")
        assert.deepStrictEqual((yield* eventTypes(id)).slice(1), [
          "session.next.agent.switched",
          "session.next.agent.switched"
        ])
        const refused = yield* Effect.flip(sessions.switchAgent(id, "nobody"))
        assert.deepInclude(refused, { _tag: "InvalidInput", field: "agent" })
        assert.strictEqual((yield* sessions.get(id)).agent, "plan")
      })
    )
  })

  it.scopedLive("CR-4: a switch during a turn takes effect at the next turn, and does not restart this one", () =>
    Effect.gen(function* () {
      const { id, model, sessions } = yield* scene()
      yield* say(id, "hi")
      const first = yield* model.request
      yield* sessions.switchAgent(id, "plan")
      yield* model.answer(calls(callParts("c1", "nothing", {})))
      const second = yield* model.request
      yield* model.answer(says("done"))
      yield* sessions.wait(id)
      const system = (request: typeof first) =>
        JSON.stringify(request.prompt.content.filter(({ role }) => role === "system"))
      assert.notInclude(system(first), "You plan.")
      assert.include(system(second), "You plan.")
      const { items } = yield* sessions.messages({ sessionID: id })
      assert.deepStrictEqual(
        items.flatMap((message) => (message.type === "assistant" ? [message.agent] : [])),
        ["build", "plan"]
      )
      assert.strictEqual(yield* model.pending, 0)
    }).pipe(Effect.provide(runtime({ agents })))
  )

  it.scopedLive("CR-6: a session without an agent works as `build`, and with its permissions", () =>
    Effect.gen(function* () {
      const { id, model, sessions } = yield* scene()
      assert.strictEqual((yield* sessions.get(id)).agent, undefined)
      yield* say(id, "hi")
      // `bash` is denied to `build` here: it is not offered.
      const request = yield* model.request
      assert.notInclude(request.tools.map(Struct.get("name")), "bash")
      yield* model.answer(says("hello"))
      yield* sessions.wait(id)
      const { items } = yield* sessions.messages({ sessionID: id })
      assert.deepInclude(items[1], { type: "assistant", agent: "build" })
    }).pipe(
      Effect.provide(
        runtime({ agents: [{ name: "build", permissions: [{ permission: "bash", resource: "*", verdict: "deny" }] }] })
      )
    )
  )

  it.scoped("EP-9: a move goes to the real path of a folder that is there, and is one event", () =>
    Effect.gen(function* () {
      const folder = realpathSync(yield* temporaryFolder)
      mkdirSync(join(folder, "to"))
      symlinkSync(join(folder, "to"), join(folder, "link"))
      const { id, log, sessions } = yield* scene(folder)
      yield* sessions.move(id, { directory: join(folder, "link") })
      assert.deepStrictEqual((yield* sessions.get(id)).location, { directory: join(folder, "to") })
      const before = yield* log.latest(id)
      const refused = yield* Effect.flip(sessions.move(id, { directory: join(folder, "none") }))
      assert.deepInclude(refused, { _tag: "InvalidInput", field: "directory" })
      assert.strictEqual(yield* log.latest(id), before)
      assert.deepStrictEqual((yield* sessions.list({ directory: folder })).items, [])
      assert.strictEqual((yield* sessions.list({ directory: join(folder, "link") })).items[0]?.id, id)
    }).pipe(Effect.provide(runtime()))
  )

  it.scopedLive("CO-9: a drain enters the Location where the session is when the drain starts", () =>
    Effect.gen(function* () {
      const folder = realpathSync(yield* temporaryFolder)
      const [from, to] = [join(folder, "from"), join(folder, "to")]
      mkdirSync(from)
      mkdirSync(to)
      const { id, model, sessions } = yield* scene(from)
      yield* say(id, "hi", { resume: false })
      yield* sessions.move(id, { directory: to })
      yield* model.answer(says("hello"))
      yield* sessions.resume(id)
      const system = JSON.stringify((yield* model.request).prompt.content.slice(0, 2))
      assert.include(system, to)
      assert.notInclude(system, from)
    }).pipe(Effect.provide(runtime()))
  )

  it.scopedLive("CO-9: an interrupt reaches the drain of a session that has moved away meanwhile", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      mkdirSync(join(folder, "to"))
      const { id, model, sessions } = yield* scene(folder)
      yield* say(id, "hi")
      yield* model.request
      yield* sessions.move(id, { directory: join(folder, "to") })
      yield* sessions.interrupt(id)
      assert.deepStrictEqual(yield* sessions.active, [])
      assert.strictEqual((yield* sessions.get(id)).activity?.state, "interrupted")
    }).pipe(Effect.provide(runtime()))
  )

  it.scoped("CR-5: a message is found by its id in its own session only", () =>
    Effect.gen(function* () {
      const { id, sessions } = yield* scene()
      const { id: other } = yield* newSession()
      yield* sessions.switchModel(id, otherRef)
      const [message] = (yield* sessions.messages({ sessionID: id })).items
      const messageID = message?.id ?? MessageID.make("msg_none")
      assert.deepStrictEqual(yield* sessions.message(id, messageID), message)
      assert.strictEqual(yield* sessions.message(other, messageID), undefined)
    }).pipe(Effect.provide(runtime()))
  )
}
