/** Prompts that are taken back: IB-40..IB-42 in specs/sessions.md. */
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Deferred, Effect, Either, Fiber, Queue, Tracer } from "effect"
import { HostContext } from "../../../packages/core/src/context/ContextRegistry.ts"
import * as SystemContext from "../../../packages/core/src/context/SystemContext.ts"
import { Sessions } from "../../../packages/core/src/session/Sessions.ts"
import { MessageID, type SessionID } from "../../../packages/log/src/domain/Identifiers.ts"
import type { SessionEvent } from "../../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../../packages/log/src/log/EventLog.ts"
import { Inbox } from "../../../packages/log/src/store/Inbox.ts"
import { eventTypes, newSession, type Runtimes, say, temporaryFolder, userTexts, scene } from "../../support/Harness.ts"
import { holdingAt } from "../../support/Holding.ts"
import { says, ScriptedModel } from "../../support/ScriptedModel.ts"

export const withdrawal = ({ open, runtime }: Runtimes) => {
  it.scopedLive("IB-40: a waiting prompt that is taken back waits no longer, and no model gets it", () =>
    Effect.gen(function* () {
      const { id, model, sessions } = yield* scene()
      yield* say(id, "first")
      yield* model.request
      const [second, third] = [
        yield* say(id, "second", { delivery: "queue" }),
        yield* say(id, "third", { delivery: "queue" })
      ]
      yield* sessions.withdraw(id, second.id)
      assert.deepStrictEqual(yield* sessions.inbox(id), [third])
      yield* model.answer(says("a"))
      assert.deepStrictEqual(userTexts(yield* model.request), ["first", "third"])
      yield* model.answer(says("b"))
      yield* sessions.wait(id)
      assert.strictEqual(yield* model.pending, 0)
      const { items } = yield* sessions.messages({ sessionID: id })
      assert.isFalse(items.some((message) => message.id === second.id))
    }).pipe(Effect.provide(runtime()))
  )

  it.scopedLive("IB-43: sessions in which prompts wait are told, and no others", () =>
    Effect.gen(function* () {
      const [sessions, inbox] = [yield* Sessions, yield* Inbox]
      const waiting = Effect.map(inbox.sessions, (found) => found.map(({ id }) => id))
      const [idle, one, two] = [yield* newSession(), yield* newSession(), yield* newSession()]
      const admit = (sessionID: SessionID) => sessions.prompt({ sessionID, prompt: { text: "later" }, resume: false })
      const [first] = [yield* admit(one.id), yield* admit(two.id), yield* admit(two.id)]
      assert.deepStrictEqual(yield* waiting, [one.id, two.id].sort())
      assert.notInclude(yield* waiting, idle.id)
      yield* sessions.withdraw(one.id, first.id)
      assert.deepStrictEqual(yield* waiting, [two.id])
    }).pipe(Effect.provide(runtime()))
  )

  it.scopedLive(
    "IB-40: its id stays taken: the exact retry gets the receipt and runs nothing, another prompt conflicts",
    () =>
      Effect.gen(function* () {
        const { id, model, sessions } = yield* scene()
        const input = yield* say(id, "hi", { id: "msg_back", resume: false })
        yield* sessions.withdraw(id, input.id)
        const before = yield* eventTypes(id)
        const again = yield* say(id, "hi", { id: "msg_back" })
        assert.deepStrictEqual(again, { ...input, withdrawnSeq: 2 })
        assert.strictEqual((yield* Effect.flip(say(id, "ho", { id: "msg_back" })))._tag, "PromptConflictError")
        yield* sessions.wait(id)
        assert.strictEqual(yield* model.pending, 0)
        assert.deepStrictEqual(yield* eventTypes(id), before)
      }).pipe(Effect.provide(runtime()))
  )

  it.scopedLive("IB-40: what does not wait is NotWaiting, and nothing is stored", () =>
    Effect.gen(function* () {
      const [model, sessions, log] = [yield* ScriptedModel, yield* Sessions, yield* EventLog]
      const [{ id }, other] = [yield* newSession(), yield* newSession()]
      yield* model.answer(says("hello"))
      const promoted = yield* say(id, "promoted")
      yield* sessions.wait(id)
      const back = yield* say(id, "back", { resume: false })
      yield* sessions.withdraw(id, back.id)
      const theirs = yield* say(other.id, "theirs", { resume: false })
      const before = yield* log.latest(id)
      const nobody = [MessageID.make("msg_nobody"), "../up" as MessageID]
      for (const message of [promoted.id, back.id, theirs.id, ...nobody]) {
        assert.deepInclude(yield* Effect.flip(sessions.withdraw(id, message)), {
          _tag: "NotWaiting",
          messageID: message
        })
      }
      assert.strictEqual(yield* log.latest(id), before)
      assert.deepStrictEqual(yield* sessions.inbox(other.id), [theirs])
    }).pipe(Effect.provide(runtime()))
  )

  it.scopedLive("IB-40: what was taken back makes room in a full inbox", () =>
    Effect.gen(function* () {
      const { id, sessions } = yield* scene()
      const input = yield* say(id, "one", { resume: false })
      assert.strictEqual((yield* Effect.flip(say(id, "two", { resume: false })))._tag, "InboxFullError")
      yield* sessions.withdraw(id, input.id)
      yield* say(id, "two", { resume: false })
    }).pipe(Effect.provide(runtime({ inboxLimit: 1 })))
  )

  it.scopedLive("IB-42: the client's request is part of what was asked, and no model is shown it", () =>
    Effect.gen(function* () {
      const { id, model, sessions } = yield* scene()
      const ask = (client: { readonly id: string; readonly cwd: string }) =>
        sessions.prompt({ id: "msg_client", sessionID: id, prompt: { text: "hi", client }, delivery: "queue" })
      yield* model.answer(says("hello"))
      const input = yield* ask({ id: "client-17", cwd: "/secret-folder" })
      yield* sessions.wait(id)
      assert.strictEqual((yield* ask({ id: "client-17", cwd: "/secret-folder" })).admittedSeq, input.admittedSeq)
      for (const other of [
        { id: "client-18", cwd: "/secret-folder" },
        { id: "client-17", cwd: "/" }
      ]) {
        assert.strictEqual((yield* Effect.flip(ask(other)))._tag, "PromptConflictError")
      }
      const { prompt, tools } = yield* model.request
      assert.notMatch(JSON.stringify([prompt.content, tools.map(({ name }) => name)]), /client-17|secret-folder/)
      const shown = yield* sessions.request({ sessionID: id })
      assert.notMatch(JSON.stringify(shown.messages), /client-17|secret-folder/)
      assert.strictEqual(yield* model.pending, 0)
    }).pipe(Effect.provide(runtime()))
  )

  const isHeld = ({ data, type }: SessionEvent) => type === "session.next.renamed" && data.title === "hold"

  /** Tells of each append that begins. */
  const appends = Effect.gen(function* () {
    const begun = yield* Queue.unbounded<void>()
    const { span } = yield* Effect.tracer
    const tracer = Tracer.make({
      span: (name, ...rest) => {
        if (name === "EventLog.append") Queue.unsafeOffer(begun, undefined)
        return span(name, ...rest)
      },
      context: (f) => f()
    })
    return { begun, tracer }
  })

  /**
   * Method: between two activities a source of the context holds the drain, just before it looks into the inbox. Then the
   * log's writer is held, and the withdrawal waits behind it. The drain looks, and its promotion waits behind the
   * withdrawal. So the promotion is of a prompt that is gone.
   */
  const lostPromotion = <A, E>(
    check: (id: SessionID, withdrawn: MessageID) => Effect.Effect<A, E, Sessions | ScriptedModel | EventLog>,
    more: ReadonlyArray<string> = []
  ) =>
    Effect.gen(function* () {
      const filename = join(yield* temporaryFolder, "daybook.db")
      const [hold, { begun, tracer }] = [yield* holdingAt(isHeld), yield* appends]
      yield* Effect.gen(function* () {
        const [model, sessions, host] = [yield* ScriptedModel, yield* Sessions, yield* HostContext]
        const looks = yield* Queue.unbounded<Deferred.Deferred<void>>()
        yield* host.register(
          SystemContext.textSource("test/gate", () =>
            Effect.gen(function* () {
              const gate = yield* Deferred.make<void>()
              yield* Queue.offer(looks, gate)
              yield* Deferred.await(gate)
              return SystemContext.text("the same")
            })
          )
        )
        const look = Effect.flatMap(Queue.take(looks), (gate) => Deferred.succeed(gate, undefined))
        const [{ id }, other] = [yield* newSession(), yield* newSession()]
        yield* say(id, "first", { resume: false })
        const run = yield* Effect.fork(sessions.resume(id))
        yield* look
        yield* model.request
        const second = yield* say(id, "second", { delivery: "queue", resume: false })
        yield* model.answer(says("a"))
        const gate = yield* Queue.take(looks)
        for (const text of more) yield* say(id, text, { delivery: "queue", resume: false })
        const held = yield* Effect.fork(sessions.rename(other.id, "hold"))
        yield* hold.reached
        yield* Queue.takeAll(begun)
        const withdrawal = yield* Effect.fork(sessions.withdraw(id, second.id))
        yield* Queue.take(begun)
        yield* Deferred.succeed(gate, undefined)
        // No later look is held.
        yield* Effect.forkScoped(Effect.forever(look))
        yield* Queue.take(begun)
        yield* hold.open
        yield* Fiber.join(held)
        yield* Fiber.join(withdrawal)
        if (more.length > 0) yield* model.answer(says("b"))
        yield* Fiber.join(run)
        yield* check(id, second.id)
      }).pipe(
        Effect.scoped,
        Effect.provide(runtime({ filename, projectors: [hold.projector] })),
        Effect.withTracer(tracer)
      )
    })

  it.scopedLive("IB-41: a promotion that loses to a withdrawal opens no activity and fails no run", () =>
    lostPromotion((id, withdrawn) =>
      Effect.gen(function* () {
        const [model, sessions] = [yield* ScriptedModel, yield* Sessions]
        const types = yield* eventTypes(id)
        assert.strictEqual(types.at(-1), "session.next.prompt.withdrawn")
        assert.strictEqual(types.filter((type) => type === "session.next.activity.started").length, 1)
        assert.isUndefined(yield* sessions.message(id, withdrawn))
        assert.strictEqual(yield* model.pending, 0)
      })
    )
  )

  it.scopedLive("IB-41: with another prompt behind the one that was taken back, that one is promoted instead", () =>
    lostPromotion(
      (id, withdrawn) =>
        Effect.gen(function* () {
          const [model, sessions] = [yield* ScriptedModel, yield* Sessions]
          assert.deepStrictEqual(userTexts(yield* model.request), ["first", "third"])
          assert.deepStrictEqual(yield* sessions.inbox(id), [])
          assert.isUndefined(yield* sessions.message(id, withdrawn))
        }),
      ["third"]
    )
  )

  it.scopedLive("IB-41: of a promotion and a withdrawal in two processes at once one is stored, for every prompt", () =>
    Effect.gen(function* () {
      const filename = join(yield* temporaryFolder, "daybook.db")
      const [one, two] = [yield* open({ filename }), yield* open({ filename })]
      const { id } = yield* Effect.provide(newSession(), one)
      const [here, there] = [yield* Effect.provide(Sessions, one), yield* Effect.provide(Sessions, two)]
      const model = yield* Effect.provide(ScriptedModel, one)
      let shown = 0
      for (let round = 0; round < 12; round += 1) {
        const input = yield* here.prompt({
          sessionID: id,
          prompt: { text: `${round}` },
          delivery: "queue",
          resume: false
        })
        yield* model.answer(says("a"))
        const [withdrawn] = yield* Effect.all(
          [
            Effect.either(there.withdraw(id, input.id)),
            Effect.provide(say(id, `${round}`, { id: input.id, delivery: "queue" }), one)
          ],
          { concurrency: "unbounded" }
        )
        yield* here.wait(id)
        const message = yield* here.message(id, input.id)
        assert.strictEqual(message === undefined, Either.isRight(withdrawn))
        if (message !== undefined) shown += 1
      }
      assert.deepStrictEqual(yield* here.inbox(id), [])
      const types = yield* Effect.provide(eventTypes(id), one)
      const count = (type: string) => types.filter((each) => each === `session.next.${type}`).length
      assert.strictEqual(count("prompt.promoted"), shown)
      assert.strictEqual(count("prompt.withdrawn"), 12 - shown)
      assert.strictEqual(count("activity.started"), shown)
    })
  )
}
