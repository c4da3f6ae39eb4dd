/** Admission: IN-1..IN-11. What waits is looked at through the facade, what was stored through the log. */
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Deferred, Effect, Either, Fiber, Struct } from "effect"
import { Sessions } from "../../../packages/core/src/session/Sessions.ts"
import { MessageID, SessionID } from "../../../packages/log/src/domain/Identifiers.ts"
import type { Input } from "../../../packages/log/src/domain/Message.ts"
import { draft } from "../../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../../packages/log/src/log/EventLog.ts"
import { eventTypes, newSession, type Runtimes, say, scene, temporaryFolder, userTexts } from "../../support/Harness.ts"
import { says, ScriptedModel } from "../../support/ScriptedModel.ts"

export const admission = ({ open, runtime }: Runtimes) => {
  const admissions = (types: ReadonlyArray<string>): number =>
    types.filter((type) => type === "session.next.prompt.admitted").length

  it.layer(runtime())("admission", (it) => {
    it.effect("IN-1: an admitted input waits outside the transcript and the model's context", () =>
      Effect.gen(function* () {
        const { id, sessions } = yield* scene()
        const input = yield* say(id, "wait", { resume: false })
        assert.deepStrictEqual(yield* sessions.inbox(id), [input])
        assert.strictEqual((yield* sessions.messages({ sessionID: id })).total, 0)
        assert.deepStrictEqual(yield* sessions.context(id), [])
        assert.strictEqual(yield* sessions.message(id, input.id), undefined)
      })
    )

    it.effect("IN-2: an input is a steer unless it says otherwise", () =>
      Effect.gen(function* () {
        const { id } = yield* newSession()
        assert.strictEqual((yield* say(id, "a", { resume: false })).delivery, "steer")
        assert.strictEqual((yield* say(id, "a", { resume: false, delivery: "queue" })).delivery, "queue")
      })
    )

    it.effect("IN-3: without an id, the same prompt twice is two inputs", () =>
      Effect.gen(function* () {
        const { id, sessions } = yield* scene()
        const [one, two] = [yield* say(id, "same", { resume: false }), yield* say(id, "same", { resume: false })]
        assert.notStrictEqual(one.id, two.id)
        assert.deepStrictEqual(yield* sessions.inbox(id), [one, two])
      })
    )

    it.effect("IN-4: an exact retry gets the same receipt, whatever the order of the prompt's keys, and no event", () =>
      Effect.gen(function* () {
        const sessions = yield* Sessions
        const { id: sessionID } = yield* newSession()
        const admit = (prompt: Parameters<typeof sessions.prompt>[0]["prompt"]) =>
          sessions.prompt({ id: "msg_keys", sessionID, prompt, resume: false })
        const file = { uri: "file:///a.txt", mime: "text/plain", name: "a" }
        const first = yield* admit({ text: "hi", files: [file], agents: [{ name: "build" }] })
        const again = yield* admit({
          agents: [{ name: "build" }],
          files: [{ name: "a", mime: "text/plain", uri: "file:///a.txt" }],
          text: "hi"
        })
        assert.deepStrictEqual(again, first)
        assert.strictEqual(admissions(yield* eventTypes(sessionID)), 1)
      })
    )

    it.effect("IN-5: a used id with another session, prompt or delivery is a conflict, and stores nothing", () =>
      Effect.gen(function* () {
        const sessions = yield* Sessions
        const { id: sessionID } = yield* newSession()
        const { id: other } = yield* newSession()
        const base = { id: "msg_conflict", sessionID, prompt: { text: "hi" }, resume: false } as const
        const first = yield* sessions.prompt(base)
        const different = [
          { ...base, sessionID: other },
          { ...base, prompt: { text: "hi " } },
          { ...base, prompt: { text: "hi", files: [] } },
          { ...base, delivery: "queue" as const }
        ]
        for (const options of different) {
          const refused = yield* Effect.flip(sessions.prompt(options))
          assert.deepInclude(refused, {
            _tag: "PromptConflictError",
            messageID: first.id,
            sessionID: options.sessionID
          })
        }
        assert.deepStrictEqual(yield* sessions.inbox(sessionID), [first])
        assert.deepStrictEqual(yield* sessions.inbox(other), [])
      })
    )

    it.effect("IN-6: an id that a message has cannot be admitted, in any session", () =>
      Effect.gen(function* () {
        const sessions = yield* Sessions
        const { id: sessionID } = yield* newSession()
        const { id: other } = yield* newSession()
        yield* sessions.switchAgent(sessionID, "build")
        const [switched] = (yield* sessions.messages({ sessionID })).items
        assert.strictEqual(switched?.type, "agent-switched")
        for (const target of [sessionID, other]) {
          const refused = yield* Effect.flip(say(target, "hi", { id: switched?.id ?? "", resume: false }))
          assert.strictEqual(refused._tag, "PromptConflictError")
        }
      })
    )

    const model = { providerID: "p", id: "m" }
    const creating = (messageID: MessageID) => ({
      "step.started": draft("session.next.step.started", { assistantMessageID: messageID, agent: "build", model }),
      "agent.switched": draft("session.next.agent.switched", { messageID, agent: "build" }),
      "model.switched": draft("session.next.model.switched", { messageID, model }),
      prompted: draft("session.next.prompted", { messageID, prompt: { text: "hi" }, delivery: "steer" }),
      synthetic: draft("session.next.synthetic", { messageID, text: "hi" }),
      "context.updated": draft("session.next.context.updated", { messageID, text: "hi" }),
      "shell.started": draft("session.next.shell.started", { messageID, callID: "c", command: "ls" }),
      "compaction.ended": draft("session.next.compaction.ended", { messageID, reason: "auto", text: "s", recent: "" })
    })
    const creators = Object.keys(creating(MessageID.make("msg_x"))) as ReadonlyArray<keyof ReturnType<typeof creating>>
    it.effect.each(creators)("IN-6: %s cannot use an id that the inbox reserved, in any session", (name) =>
      Effect.gen(function* () {
        const sessions = yield* Sessions
        const log = yield* EventLog
        const { id: sessionID } = yield* newSession()
        const { id: other } = yield* newSession()
        const input = yield* say(sessionID, "hi", { resume: false })
        for (const target of [sessionID, other]) {
          const before = yield* log.latest(target)
          const refused = yield* Effect.flip(log.append(target, [creating(input.id)[name]]))
          assert.strictEqual(refused._tag, "EventRefused")
          assert.strictEqual(yield* log.latest(target), before)
        }
        assert.deepStrictEqual(yield* sessions.inbox(sessionID), [input])
      })
    )

    it.effect("IN-7: `resume: false` admits only: no wake, no transcript", () =>
      Effect.gen(function* () {
        const { id, sessions } = yield* scene()
        yield* say(id, "hi", { resume: false })
        // A wake would make the session active at once.
        assert.notInclude(yield* sessions.active, id)
        assert.deepStrictEqual(yield* eventTypes(id), ["session.created", "session.next.prompt.admitted"])
      })
    )

    it.effect("IN-8: ten concurrent exact retries give one event and ten equal receipts", () =>
      Effect.gen(function* () {
        const { id } = yield* newSession()
        const receipts = yield* Effect.all(
          Array.from({ length: 10 }, () => say(id, "same", { id: "msg_ten", resume: false })),
          {
            concurrency: "unbounded"
          }
        )
        for (const receipt of receipts) assert.deepStrictEqual(receipt, receipts[0])
        assert.strictEqual(admissions(yield* eventTypes(id)), 1)
      })
    )

    it.effect("IN-8: of ten concurrent prompts that share an id and differ, one is admitted and nine conflict", () =>
      Effect.gen(function* () {
        const { id, sessions } = yield* scene()
        const answers = yield* Effect.forEach(
          Array.from({ length: 10 }, (_, index) => `text ${index}`),
          (text) => Effect.either(say(id, text, { id: "msg_one", resume: false })),
          { concurrency: "unbounded" }
        )
        const [refused, admitted] = [answers.filter(Either.isLeft), answers.filter(Either.isRight)]
        assert.deepStrictEqual(
          yield* sessions.inbox(id),
          admitted.map(({ right }) => right)
        )
        assert.strictEqual(admitted.length, 1)
        for (const { left } of refused) assert.strictEqual(left._tag, "PromptConflictError")
      })
    )

    it.effect("IN-11: retrying a prompt of the older form returns it as promoted where it was recorded", () =>
      Effect.gen(function* () {
        const { id, log } = yield* scene()
        const messageID = MessageID.make("msg_older")
        const [event] = yield* log.append(id, [
          draft("session.next.prompted", { messageID, prompt: { text: "old" }, delivery: "steer" })
        ])
        const receipt = yield* say(id, "old", { id: messageID, resume: false })
        assert.deepInclude(receipt, { admittedSeq: event.seq, promotedSeq: event.seq })
        assert.strictEqual((yield* Effect.flip(say(id, "new", { id: messageID })))._tag, "PromptConflictError")
        assert.strictEqual(yield* log.latest(id), event.seq)
      })
    )

    const badIDs = ["", "msg_", "ses_a", "msg_../../x", "msg_a/b", "msg_a b", "msg_\u0000", `msg_${"a".repeat(97)}`]
    it.effect.each(badIDs)("4.5: %j is refused as a message id before anything is stored", (id) =>
      Effect.gen(function* () {
        const session = yield* newSession()
        const refused = yield* Effect.flip(say(session.id, "hi", { id, resume: false }))
        assert.deepInclude(refused, { _tag: "InvalidInput", field: "id" })
        assert.deepStrictEqual(yield* eventTypes(session.id), ["session.created"])
      })
    )

    it.effect("4.5: a prompt or session id of the wrong form, from a caller without types, is refused by field", () =>
      Effect.gen(function* () {
        const { id, sessions } = yield* scene()
        const admit = (options: unknown) =>
          // What a caller in plain JavaScript can do.
          Effect.flip(sessions.prompt(options as Parameters<typeof sessions.prompt>[0]))
        const refused = [
          yield* admit({ sessionID: id, prompt: "hi" }),
          yield* admit({ sessionID: id, prompt: { text: 1 } }),
          yield* admit({ sessionID: id, prompt: { text: "hi", files: [{ uri: "a" }] } }),
          yield* admit({ sessionID: "../../x", prompt: { text: "hi" } })
        ]
        assert.deepStrictEqual(
          refused.map((error) => (error._tag === "InvalidInput" ? error.field : error._tag)),
          ["prompt", "prompt.text", "prompt.files.0.mime", "sessionID"]
        )
        assert.deepStrictEqual(yield* eventTypes(id), ["session.created"])
      })
    )
  })

  it.scopedLive("IN-7: a prompt wakes the session", () =>
    Effect.gen(function* () {
      const { id, model, sessions } = yield* scene()
      yield* say(id, "hi")
      const request = yield* model.request
      assert.deepStrictEqual(userTexts(request), ["hi"])
      yield* model.answer(says("hello"))
      yield* sessions.wait(id)
    }).pipe(Effect.provide(runtime()))
  )

  it.scopedLive(
    "IN-2: a caller that is interrupted after its prompt was stored has woken the session all the same",
    () =>
      Effect.gen(function* () {
        const { id, log, model, sessions } = yield* scene()
        const [stored, gate] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
        // A listener runs after the commit and before the append returns: it holds the caller between admission and wake.
        yield* Effect.scoped(
          Effect.gen(function* () {
            yield* log.listen(() => Effect.zipRight(Deferred.succeed(stored, undefined), Deferred.await(gate)))
            const caller = yield* Effect.fork(say(id, "hi"))
            yield* Deferred.await(stored)
            const interrupting = yield* Effect.fork(Fiber.interrupt(caller))
            yield* Effect.yieldNow()
            yield* Deferred.succeed(gate, undefined)
            yield* Fiber.join(interrupting)
          })
        )
        assert.deepStrictEqual(userTexts(yield* model.request), ["hi"])
        yield* model.answer(says("hello"))
        yield* sessions.wait(id)
      }).pipe(Effect.provide(runtime()))
  )

  it.scoped("IN-2: a prompt for a session that is not there is refused before its id is looked at", () =>
    Effect.gen(function* () {
      const { id, sessions } = yield* scene()
      yield* say(id, "hi", { id: "msg_used", resume: false })
      const refused = yield* Effect.flip(
        sessions.prompt({ id: "msg_used", sessionID: SessionID.make("ses_missing"), prompt: { text: "other" } })
      )
      assert.strictEqual(refused._tag, "SessionNotFound")
    }).pipe(Effect.provide(runtime()))
  )

  it.scopedLive("IN-9: a retry after promotion returns the receipt with its place, and makes no second message", () =>
    Effect.gen(function* () {
      const { id, model, sessions } = yield* scene()
      yield* model.answer(says("hello"))
      const first = yield* say(id, "hi", { id: "msg_hi" })
      yield* sessions.wait(id)
      const again = yield* say(id, "hi", { id: "msg_hi" })
      yield* sessions.wait(id)
      const { items } = yield* sessions.messages({ sessionID: id })
      assert.deepStrictEqual(items.map(Struct.get("type")), ["user", "assistant"])
      assert.deepStrictEqual(again, { ...first, promotedSeq: items[0]?.seq ?? -1 })
    }).pipe(Effect.provide(runtime()))
  )

  it.scopedLive("IN-10: after a death between admission and wake, the retry wakes the session", () =>
    Effect.gen(function* () {
      const filename = join(yield* temporaryFolder, "daybook.db")
      // `resume: false` leaves on disk what a process leaves that dies before its wake.
      const [id, first] = yield* Effect.gen(function* () {
        const { id } = yield* newSession()
        return [id, yield* say(id, "hi", { id: "msg_hi", resume: false })] as const
      }).pipe(Effect.provide(runtime({ filename })))
      yield* Effect.gen(function* () {
        const model = yield* ScriptedModel
        const sessions = yield* Sessions
        assert.deepStrictEqual(yield* sessions.active, [])
        const receipt: Input = yield* say(id, "hi", { id: "msg_hi" })
        assert.deepStrictEqual(receipt, first)
        assert.deepStrictEqual(userTexts(yield* model.request), ["hi"])
        yield* model.answer(says("hello"))
        yield* sessions.wait(id)
        assert.deepStrictEqual(yield* sessions.inbox(id), [])
      }).pipe(Effect.provide(runtime({ filename })))
    })
  )

  it.scopedLive("IN-8: exact retries of two processes at once give one event and equal receipts", () =>
    Effect.gen(function* () {
      const filename = join(yield* temporaryFolder, "daybook.db")
      const [one, two] = [yield* open({ filename }), yield* open({ filename })]
      const { id } = yield* Effect.provide(newSession(), one)
      const receipts = yield* Effect.forEach(
        Array.from({ length: 10 }, (_, index) => (index % 2 === 0 ? one : two)),
        (process) => Effect.provide(say(id, "same", { id: "msg_two", resume: false }), process),
        { concurrency: "unbounded" }
      )
      for (const receipt of receipts) assert.deepStrictEqual(receipt, receipts[0])
      assert.strictEqual(admissions(yield* Effect.provide(eventTypes(id), two)), 1)
    })
  )
}
