/** Tests what may be done with a session whose import has stopped before the end of its log. Spec: IM-23 in specs/formats.md. */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { Sessions } from "../../../packages/core/src/session/Sessions.ts"
import { MessageID } from "../../../packages/log/src/domain/Identifiers.ts"
import type { Session } from "../../../packages/log/src/domain/Message.ts"
import { Inbox } from "../../../packages/log/src/store/Inbox.ts"
import { importLog } from "../../../packages/formats/src/import/Import.ts"
import { runtime, say } from "../../support/Harness.ts"
import { ref, says, ScriptedModel } from "../../support/ScriptedModel.ts"
import { linesOf, longRecords } from "../support/EntryTexts.ts"
import { eventsOf, importText, piecesOf } from "../support/RoundTrips.ts"

const text = linesOf(longRecords(400))

/** The session of an import that ended after its first batch, as by a kill. */
const stopped = Effect.gen(function* () {
  yield* Effect.exit(importLog(() => piecesOf(text), { directory: "/tmp", progress: () => Effect.interrupt }))
  const [half] = (yield* (yield* Sessions).list()).items
  return half ?? (yield* Effect.dieMessage("nothing was imported"))
})

const contents = (id: string) =>
  Effect.map(eventsOf(id), (events) => events.map(({ created, data, seq, type }) => ({ created, data, seq, type })))

it.effect(
  "IM-23: a prompt to a session whose import stopped is refused and changes nothing; the import then goes on",
  () =>
    Effect.gen(function* () {
      const [sessions, inbox, model] = [yield* Sessions, yield* Inbox, yield* ScriptedModel]
      const half = yield* stopped
      const before = yield* contents(half.id)
      const records = half.imported?.records ?? 0
      const refused = yield* Effect.flip(say(half.id, "Go on."))
      assert.deepInclude({ ...refused }, { _tag: "ImportUnfinished", sessionID: half.id, records })
      assert.include(refused.message, "import the log again")
      // Also if the session was read before the import began.
      const admission = {
        sessionID: half.id,
        messageID: MessageID.make("msg_early"),
        prompt: { text: "Go on." },
        delivery: "steer" as const
      }
      assert.strictEqual((yield* Effect.flip(inbox.admit(admission, { limit: 10 })))._tag, "ImportUnfinished")
      assert.deepStrictEqual(yield* contents(half.id), before)
      const { sessionID } = yield* importText(text)
      assert.strictEqual(sessionID, half.id)
      yield* sessions.switchModel(sessionID, ref)
      yield* model.answer(says("Fine."))
      yield* say(sessionID, "Go on.")
      assert.strictEqual((yield* sessions.wait(sessionID)).activity?.state, "completed")
    }).pipe(Effect.provide(runtime()))
)

type Verb = (
  sessions: (typeof Sessions)["Service"],
  session: Session,
  messageID: MessageID
) => Effect.Effect<unknown, { readonly _tag: string }>

const verbs: Readonly<Record<string, Verb>> = {
  resume: (sessions, { id }) => sessions.resume(id),
  compact: (sessions, { id }) => sessions.compact(id),
  branch: (sessions, { id: sessionID }, messageID) => sessions.branch({ sessionID, messageID }),
  reset: (sessions, { id }) => sessions.reset(id),
  fork: (sessions, { id: sessionID }) => sessions.fork({ sessionID }),
  undo: (sessions, { id: sessionID }) => sessions.undo({ sessionID }),
  redo: (sessions, { id: sessionID }) => sessions.redo({ sessionID }),
  label: (sessions, { id: sessionID }, messageID) => sessions.label({ sessionID, messageID, label: "here" }),
  rename: (sessions, { id }) => sessions.rename(id, "Half"),
  move: (sessions, { id, location }) => sessions.move(id, location),
  place: (sessions, { id }) =>
    sessions.place(id, { address: { scope: "shared", shared: "team", kind: "agent", name: "fix", session: "one" } }),
  switchAgent: (sessions, { id }) => sessions.switchAgent(id, "build"),
  switchModel: (sessions, { id }) => sessions.switchModel(id, ref),
  setBudget: (sessions, { id }) => sessions.setBudget(id, {}),
  unprune: (sessions, { id }) => sessions.unprune(id),
  withdraw: (sessions, { id }, messageID) => sessions.withdraw(id, messageID)
}

it.layer(runtime())("verbs on a session whose import has stopped", (it) => {
  for (const [verb, run] of Object.entries(verbs)) {
    it.effect(`IM-23: ${verb} is refused and changes nothing`, () =>
      Effect.gen(function* () {
        const sessions = yield* Sessions
        const half = yield* stopped
        const [message] = (yield* sessions.messages({ sessionID: half.id, order: "desc", limit: 1 })).items
        const before = yield* contents(half.id)
        const refused = yield* Effect.flip(run(sessions, half, message?.id ?? MessageID.make("msg_none")))
        assert.strictEqual(refused._tag, "ImportUnfinished")
        assert.deepStrictEqual(yield* contents(half.id), before)
        assert.strictEqual((yield* sessions.list()).items.length, 1)
      })
    )
  }

  it.effect("IM-23: what the import left open is neither settled nor listed as interrupted", () =>
    Effect.gen(function* () {
      const sessions = yield* Sessions
      const half = yield* stopped
      assert.strictEqual(half.activity?.state, "running")
      const before = yield* contents(half.id)
      assert.isFalse(yield* sessions.settle(half.id))
      assert.deepStrictEqual(yield* sessions.interrupted, [])
      assert.deepStrictEqual(yield* contents(half.id), before)
    })
  )
})

it.effect("IM-23: a session whose import has stopped can be read and removed", () =>
  Effect.gen(function* () {
    const sessions = yield* Sessions
    const { id } = yield* stopped
    assert.isAbove((yield* sessions.messages({ sessionID: id })).items.length, 0)
    yield* sessions.remove(id)
    assert.deepStrictEqual((yield* sessions.list()).items, [])
    assert.strictEqual((yield* importText(text)).status, "imported")
  }).pipe(Effect.provide(runtime()))
)
