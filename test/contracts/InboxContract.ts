/** The durable inbox (IN-4..IN-6, IN-8, IN-12, IB-20, IB-40). */
import { assert, it } from "@effect/vitest"
import { Effect, Exit, type Layer } from "effect"
import type { MessageID, SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import type { Prompt } from "../../packages/log/src/domain/Values.ts"
import { draft } from "../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import { Inbox } from "../../packages/log/src/store/Inbox.ts"
import { begin, message, readAll, session } from "./Samples.ts"

/** One implementation of `Inbox`, beside its log. */
export interface InboxStore<E> {
  /** For the titles. */
  readonly name: string
  readonly layer: Layer.Layer<Inbox | EventLog, E>
}

const admission = (sessionID: SessionID, messageID: MessageID = message(), prompt: Prompt = { text: "hello" }) => ({
  sessionID,
  messageID,
  prompt,
  delivery: "steer" as const
})

/** A session that exists. */
const aSession = Effect.gen(function* () {
  const id = session()
  yield* begin(id)
  return id
})

const promote = (sessionID: SessionID, messageID: MessageID, prompt: Prompt = { text: "hello" }) =>
  Effect.flatMap(EventLog, (log) =>
    log.append(sessionID, [draft("session.next.prompt.promoted", { messageID, prompt, timeCreated: 1 })])
  )

/** Registers every test of the contract of `Inbox`. */
export const inboxContract = <E>({ layer, name }: InboxStore<E>): void =>
  it.layer(layer)(`the inbox, ${name}`, (it) => {
    it.effect("IN-4: a prompt is stored as one waiting input, and an exact repetition returns its receipt", () =>
      Effect.gen(function* () {
        const [inbox, id] = [yield* Inbox, yield* aSession]
        const asked = admission(id)
        const first = yield* inbox.admit(asked, { limit: 10 })
        assert.deepInclude(first, { id: asked.messageID, sessionID: id, delivery: "steer", admittedSeq: 1 })
        assert.deepStrictEqual(yield* inbox.admit(asked, { limit: 10 }), first)
        assert.deepStrictEqual(yield* inbox.receipt(asked), first)
        assert.deepStrictEqual(yield* inbox.get(asked.messageID), first)
        assert.strictEqual((yield* readAll(id)).length, 2)
        assert.isUndefined(yield* inbox.receipt(admission(id)))
      })
    )

    it.effect("IB-21: one read tells an admission what waits in its session, and whose ids are taken anywhere", () =>
      Effect.gen(function* () {
        const [inbox, log, id, other] = [yield* Inbox, yield* EventLog, yield* aSession, yield* aSession]
        const [waits, withdrawn, elsewhere] = [admission(id), admission(id), admission(other)]
        for (const asked of [waits, withdrawn, elsewhere]) yield* inbox.admit(asked, { limit: 10 })
        yield* inbox.withdraw(id, withdrawn.messageID)
        const said = message()
        yield* log.append(other, [draft("session.next.synthetic", { messageID: said, text: "note" })])
        const free = { imported: undefined, waiting: 1, taken: false }
        assert.deepStrictEqual(yield* inbox.prospect(id, message()), free)
        for (const messageID of [waits.messageID, withdrawn.messageID, elsewhere.messageID, said]) {
          assert.deepStrictEqual(yield* inbox.prospect(id, messageID), { ...free, taken: true })
        }
        assert.strictEqual((yield* Effect.flip(inbox.prospect(session(), message())))._tag, "SessionNotFound")
      })
    )

    it.effect("IN-8: of many concurrent admissions of one id, one is stored and all return its receipt", () =>
      Effect.gen(function* () {
        const [inbox, id] = [yield* Inbox, yield* aSession]
        const asked = admission(id)
        const receipts = yield* Effect.replicateEffect(inbox.admit(asked, { limit: 10 }), 12, {
          concurrency: "unbounded"
        })
        assert.strictEqual(new Set(receipts.map((receipt) => JSON.stringify(receipt))).size, 1)
        assert.strictEqual((yield* readAll(id)).length, 2)
      })
    )

    it.effect("IN-5: another session, prompt or delivery under the same id is a conflict, and stores nothing", () =>
      Effect.gen(function* () {
        const [inbox, id, other] = [yield* Inbox, yield* aSession, yield* aSession]
        const asked = admission(id)
        yield* inbox.admit(asked, { limit: 10 })
        for (const different of [
          { ...asked, sessionID: other },
          { ...asked, prompt: { text: "another" } },
          { ...asked, delivery: "queue" as const }
        ]) {
          const refused = yield* Effect.flip(inbox.admit(different, { limit: 10 }))
          assert.deepInclude(refused, { _tag: "PromptConflictError", messageID: asked.messageID })
          assert.strictEqual((yield* Effect.flip(inbox.receipt(different)))._tag, "PromptConflictError")
        }
        assert.strictEqual((yield* readAll(other)).length, 1)
        assert.strictEqual(yield* inbox.count(id), 1)
      })
    )

    it.effect("IN-6: the id of a message cannot be that of a prompt", () =>
      Effect.gen(function* () {
        const [inbox, log, id, messageID] = [yield* Inbox, yield* EventLog, yield* aSession, message()]
        yield* log.append(id, [draft("session.next.synthetic", { messageID, text: "note" })])
        const refused = yield* Effect.flip(inbox.admit(admission(id, messageID), { limit: 10 }))
        assert.strictEqual(refused._tag, "PromptConflictError")
      })
    )

    it.effect("IN-12: concurrent admissions never exceed the limit, and what leaves makes room", () =>
      Effect.gen(function* () {
        const [inbox, id] = [yield* Inbox, yield* aSession]
        const outcomes = yield* Effect.forEach(
          Array.from({ length: 20 }, () => admission(id)),
          (asked) => Effect.exit(inbox.admit(asked, { limit: 7 })),
          { concurrency: "unbounded" }
        )
        assert.strictEqual(outcomes.filter(Exit.isSuccess).length, 7)
        assert.strictEqual(yield* inbox.count(id), 7)
        const full = yield* Effect.flip(inbox.admit(admission(id), { limit: 7 }))
        assert.deepInclude(full, { _tag: "InboxFullError", sessionID: id, limit: 7 })
        const [oldest] = yield* inbox.waiting(id, { limit: 1 })
        yield* inbox.withdraw(id, oldest?.id ?? message())
        yield* inbox.admit(admission(id), { limit: 7 })
        assert.strictEqual(yield* inbox.count(id), 7)
      })
    )

    it.effect("IB-29: an admission knows how many inputs wait, whatever two things happened since the last one", () =>
      Effect.gen(function* () {
        const [inbox, log] = [yield* Inbox, yield* EventLog]
        const admit = (id: SessionID, limit = 100) => inbox.admit(admission(id), { limit })
        const oldest = (id: SessionID) =>
          Effect.map(inbox.waiting(id, { limit: 1 }), ([input]) => input?.id ?? message())
        const happenings: ReadonlyArray<(id: SessionID) => Effect.Effect<unknown, unknown, EventLog>> = [
          (id) => admit(id),
          (id) => Effect.all([admit(id), admit(id), admit(id)], { concurrency: "unbounded" }),
          (id) => Effect.ignore(admit(id, 0)),
          (id) => Effect.flatMap(oldest(id), (messageID) => inbox.withdraw(id, messageID)),
          (id) => Effect.flatMap(oldest(id), (messageID) => promote(id, messageID)),
          (id) => log.append(id, [draft("session.next.synthetic", { messageID: message(), text: "note" })]),
          (id) => Effect.zipRight(log.remove(id), begin(id))
        ]
        for (const first of happenings) {
          for (const second of happenings) {
            const id = yield* aSession
            for (const happens of [admit, admit, first, second]) {
              yield* Effect.ignore(happens(id))
              const total = yield* inbox.count(id)
              assert.strictEqual((yield* inbox.prospect(id, message())).waiting, total)
              const refused = yield* Effect.flip(admit(id, total))
              assert.strictEqual(refused._tag, "InboxFullError")
            }
          }
        }
      })
    )

    it.effect("IB-20: waiting inputs come in admission order, by delivery and up to a sequence number", () =>
      Effect.gen(function* () {
        const [inbox, id] = [yield* Inbox, yield* aSession]
        const asked = (["steer", "queue", "steer", "queue"] as const).map((delivery) => ({
          ...admission(id),
          delivery
        }))
        for (const each of asked) yield* inbox.admit(each, { limit: 10 })
        const ids = (options: Parameters<typeof inbox.waiting>[1]) =>
          Effect.map(inbox.waiting(id, options), (inputs) =>
            inputs.map((input) => asked.findIndex(({ messageID }) => messageID === input.id))
          )
        assert.deepStrictEqual(yield* ids({ limit: 10 }), [0, 1, 2, 3])
        assert.deepStrictEqual(yield* ids({ limit: 1, delivery: "queue" }), [1])
        assert.deepStrictEqual(yield* ids({ limit: 10, delivery: "steer", through: 1 }), [0])
        yield* promote(id, asked[0]?.messageID ?? message())
        assert.deepStrictEqual(yield* ids({ limit: 10 }), [1, 2, 3])
        const promoted = yield* inbox.get(asked[0]?.messageID ?? message())
        assert.strictEqual(promoted?.promotedSeq, 5)
      })
    )

    it.effect("IB-40: an input is promoted or withdrawn, never both", () =>
      Effect.gen(function* () {
        const [inbox, id] = [yield* Inbox, yield* aSession]
        for (let round = 0; round < 10; round++) {
          const { id: messageID } = yield* inbox.admit(admission(id), { limit: 10 })
          const outcomes = yield* Effect.all(
            [Effect.isSuccess(inbox.withdraw(id, messageID)), Effect.isSuccess(promote(id, messageID))],
            { concurrency: "unbounded" }
          )
          assert.strictEqual(outcomes.filter(Boolean).length, 1)
          assert.strictEqual((yield* Effect.flip(inbox.withdraw(id, messageID)))._tag, "NotWaiting")
        }
        assert.strictEqual(yield* inbox.count(id), 0)
        assert.isFalse(yield* inbox.hasWork(id))
      })
    )

    it.effect("IB-40: a withdrawn id stays taken: its exact repetition returns the withdrawn receipt", () =>
      Effect.gen(function* () {
        const [inbox, id] = [yield* Inbox, yield* aSession]
        const asked = admission(id)
        yield* inbox.admit(asked, { limit: 10 })
        yield* inbox.withdraw(id, asked.messageID)
        const again = yield* inbox.admit(asked, { limit: 10 })
        assert.isDefined(again.withdrawnSeq)
        assert.strictEqual(yield* inbox.count(id), 0)
      })
    )

    it.effect("EX-E7: a session has work while an input waits, and is listed until then", () =>
      Effect.gen(function* () {
        const [inbox, id] = [yield* Inbox, yield* aSession]
        const listed = Effect.map(inbox.sessions, (all) => all.some((each) => each.id === id))
        assert.deepStrictEqual([yield* inbox.hasWork(id), yield* listed], [false, false])
        const { id: messageID } = yield* inbox.admit(admission(id), { limit: 10 })
        assert.deepStrictEqual([yield* inbox.hasWork(id), yield* listed], [true, true])
        yield* inbox.withdraw(id, messageID)
        assert.deepStrictEqual([yield* inbox.hasWork(id), yield* listed], [false, false])
      })
    )
  })
