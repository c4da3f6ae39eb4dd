/** Forks and summaries of branches, from the facade down. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Stream, Struct } from "effect"
import { Sessions } from "../../../packages/core/src/session/Sessions.ts"
import { MessageID, SessionID } from "../../../packages/log/src/domain/Identifiers.ts"
import { draft } from "../../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../../packages/log/src/log/EventLog.ts"
import { SessionStore } from "../../../packages/log/src/store/SessionStore.ts"
import { readAll } from "../../support/Logs.ts"
import {
  allUserTexts,
  answerTo,
  eventTypes,
  exchange,
  newSession,
  type Runtimes,
  say,
  scene,
  userTexts
} from "../../support/Harness.ts"
import { fill, pruned, turns } from "../../support/Pruning.ts"
import { callParts, calls, failure, says } from "../../support/ScriptedModel.ts"

export const forking = ({ runtime }: Runtimes) => {
  const messages = Effect.fnUntraced(function* (sessionID: SessionID) {
    return (yield* (yield* Sessions).messages({ sessionID, branch: "all", limit: 500 })).items
  })

  const answers = (sessionID: SessionID) =>
    Effect.map(messages(sessionID), (items) => items.filter(({ type }) => type === "assistant").map(({ id }) => id))

  const at = (all: ReadonlyArray<MessageID>, index: number): MessageID => all[index] ?? MessageID.make("msg_none")

  /** Messages without what differs between a session and its fork. */
  const plain = (items: ReadonlyArray<object>) =>
    items.map((item) => Object.fromEntries(Object.entries(item).filter(([key]) => key !== "id" && key !== "seq")))

  const suite = <E>(title: string, body: Effect.Effect<void, E, Layer.Layer.Success<ReturnType<typeof runtime>>>) =>
    it.scopedLive(title, () => Effect.provide(body, runtime()))

  describe("fork", () => {
    suite(
      "HP-30, HP-31, HP-33: a fork repeats the history with new ids, counts nothing, and leaves its source as it is",
      Effect.gen(function* () {
        const { id, model, sessions } = yield* scene()
        yield* model.answer(calls(callParts("c1", "todo", { items: [{ text: "first", status: "pending" }] })))
        yield* answerTo(id, "one", "1")
        yield* Effect.zipRight(model.request, model.request)
        yield* exchange(id, "left", "2")
        const all = yield* answers(id)
        yield* sessions.label({ sessionID: id, messageID: at(all, 1), label: "here" })
        yield* sessions.branch({ sessionID: id, messageID: at(all, 1) })
        yield* exchange(id, "three", "3")
        yield* say(id, "waits", { resume: false })
        const before = yield* readAll(id)

        const { session } = yield* sessions.fork({ sessionID: id })
        assert.deepStrictEqual(yield* readAll(id), before)
        assert.deepStrictEqual([session.cost, session.tokens.input], [0, 0])
        assert.strictEqual(session.forked?.from, id)
        const path = (yield* sessions.messages({ sessionID: id })).items
        const copy = yield* messages(session.id)
        assert.deepStrictEqual(plain(copy), plain(path))
        const ids = new Set(path.map((message) => message.id))
        assert.isFalse(copy.some((message) => ids.has(message.id)))
        const { items } = yield* sessions.tree({ sessionID: session.id })
        assert.deepStrictEqual(
          items.flatMap(({ label }) => label ?? []),
          ["here"]
        )
        assert.deepStrictEqual(yield* sessions.inbox(session.id), [])
        assert.deepStrictEqual((yield* sessions.todos(session.id)).map(Struct.get("text")), ["first"])
        assert.deepStrictEqual(userTexts(yield* exchange(session.id, "four", "4")), ["one", "three", "four"])
        const usage = yield* sessions.usage(session.id)
        assert.isAbove(usage.own.tokens.input, 0)
        assert.isBelow(usage.own.tokens.input, (yield* sessions.get(id)).tokens.input)
      })
    )

    suite(
      "HP-30: a fork ends at the given message, and before a given prompt",
      Effect.gen(function* () {
        const { id, sessions } = yield* scene()
        yield* exchange(id, "one", "1")
        yield* exchange(id, "two", "2")
        const first = yield* sessions.fork({ sessionID: id, messageID: at(yield* answers(id), 0), title: "other" })
        assert.strictEqual(first.session.title, "other")
        assert.strictEqual((yield* messages(first.session.id)).length, (yield* messages(id)).length - 2)
        const prompt = (yield* messages(id)).findLast(({ type }) => type === "user")
        const second = yield* sessions.fork({ sessionID: id, messageID: prompt?.id })
        assert.deepStrictEqual(second.prompt, { text: "two" })
        assert.deepStrictEqual(plain(yield* messages(second.session.id)), plain(yield* messages(first.session.id)))
        const unknown = yield* Effect.flip(sessions.fork({ sessionID: id, messageID: "msg_none" }))
        assert.strictEqual(unknown._tag, "MessageNotFound")
        const taken = yield* Effect.flip(sessions.fork({ sessionID: id, id: id }))
        assert.strictEqual(taken._tag, "InvalidInput")
      })
    )

    suite(
      "HP-31: a compaction keeps in the fork what it kept, whatever the numbers of its events",
      Effect.gen(function* () {
        const sessions = yield* Sessions
        const log = yield* EventLog
        const store = yield* SessionStore
        const { id } = yield* newSession()
        yield* exchange(id, "one", "1")
        yield* exchange(id, "two", "2")
        const kept = (yield* messages(id)).findLast(({ type }) => type === "user")?.seq ?? 0
        const compaction = { reason: "auto" as const, text: "so far", recent: "", firstKeptSeq: kept }
        yield* log.append(id, [
          draft("session.next.compaction.ended", { messageID: MessageID.make("msg_checkpoint"), ...compaction })
        ])
        const { session } = yield* sessions.fork({ sessionID: id })
        const shown = (of: SessionID) =>
          Effect.map(store.context(of, Number.MAX_SAFE_INTEGER), (all) => all.map(({ type }) => type))
        assert.deepStrictEqual(yield* shown(id), ["compaction", "user"])
        assert.deepStrictEqual(yield* shown(session.id), ["compaction", "user"])
      })
    )

    suite(
      "HP-33: what is open in the source is settled in the fork, and not charged to it",
      Effect.gen(function* () {
        const { id, model, sessions } = yield* scene()
        yield* model.answer(Stream.never)
        yield* say(id, "one")
        yield* model.request
        const { session } = yield* sessions.fork({ sessionID: id })
        assert.strictEqual(session.cost, 0)
        const types = yield* eventTypes(session.id)
        assert.strictEqual(types.at(-1), "session.next.forked")
        assert.notInclude(
          (yield* messages(session.id)).map(
            (message) => message.type === "assistant" && message.completedAt === undefined
          ),
          true
        )
        yield* sessions.interrupt(id)
      })
    )
  })

  describe("what a fork takes from its source", () => {
    suite(
      "HP-32: folder, family, budget and title are those of the source, agent and model those of the history's end",
      Effect.gen(function* () {
        const sessions = yield* Sessions
        const parent = yield* newSession()
        const source = yield* sessions.create({ location: parent.location, parentID: parent.id, title: "fix" })
        const { id } = source
        yield* exchange(id, "one", "1")
        yield* sessions.switchModel(id, { providerID: "scripted", id: "two" })
        yield* exchange(id, "two", "2")
        const end = at(yield* answers(id), 1)
        yield* sessions.switchModel(id, { providerID: "scripted", id: "one" })
        yield* sessions.setBudget(id, { tokens: 100_000 })
        const { session } = yield* sessions.fork({ sessionID: id, messageID: end })
        assert.deepInclude(session, {
          location: source.location,
          parentID: parent.id,
          title: "fix",
          budget: { tokens: 100_000 }
        })
        assert.strictEqual(session.model?.id, "two")
        const named = yield* sessions.fork({ sessionID: id, title: "other" })
        assert.strictEqual(named.session.title, "other")
        assert.strictEqual(named.session.model?.id, "one")
      })
    )

    suite(
      "HP-34: a history whose events were pruned is not forked, and leaves no session",
      Effect.gen(function* () {
        const { id, sessions } = yield* scene()
        yield* fill(id, turns(3))
        yield* pruned(id)
        const before = (yield* sessions.list()).items.length
        const refused = yield* Effect.flip(sessions.fork({ sessionID: id }))
        assert.strictEqual(refused._tag, "CursorExpired")
        assert.strictEqual((yield* sessions.list()).items.length, before)
      })
    )
  })

  describe("a summary of the branch that is left", () => {
    suite(
      "HP-26, HP-27: it is the first message of the new branch, covers what is left without tool results, and is charged",
      Effect.gen(function* () {
        const { id, model, sessions } = yield* scene()
        yield* exchange(id, "one", "1")
        yield* model.answer(calls(callParts("c1", "todo", { items: [{ text: "a secret", status: "pending" }] })))
        yield* answerTo(id, "two", "tried it")
        yield* Effect.zipRight(model.request, model.request)
        const before = yield* sessions.get(id)
        const leaf = (yield* sessions.tree({ sessionID: id })).leafID
        const first = at(yield* answers(id), 0)
        // The model leaves sections out, so it is asked once more.
        yield* model.answer(says("## Goal\nTo try"))
        yield* model.answer(says("## Goal\nTo try"))
        const branched = yield* sessions.branch({ sessionID: id, messageID: first, summary: true })
        const [asked] = [yield* model.request, yield* model.request]
        const text = allUserTexts(asked).join("\n")
        assert.include(text, "[User]: two")
        assert.include(text, "tried it")
        assert.include(text, "[Tool result]: (left out)")
        assert.notInclude(text, "[User]: one")
        const after = yield* sessions.get(id)
        assert.isAbove(after.tokens.input, before.tokens.input)
        assert.strictEqual(branched.leafID, branched.summaryID)
        const node = (yield* sessions.tree({ sessionID: id })).items.find(({ id }) => id === branched.summaryID)
        assert.deepInclude(node, { type: "branch-summary", parentID: first, leaf: true })
        const summary = (yield* messages(id)).find(({ type }) => type === "branch-summary")
        assert.strictEqual(summary?.type === "branch-summary" ? summary.from : undefined, leaf)
        const shown = allUserTexts(yield* exchange(id, "three", "3"))
        assert.isTrue(shown.some((each) => each.startsWith("<branch-summary>") && each.includes("To try")))
        assert.notInclude(shown, "two")
      })
    )

    suite(
      "HP-28: a summary that fails moves nothing",
      Effect.gen(function* () {
        const { id, model, sessions } = yield* scene()
        yield* exchange(id, "one", "1")
        yield* exchange(id, "two", "2")
        const first = at(yield* answers(id), 0)
        yield* model.answer(Stream.fail(failure("no")))
        const error = yield* Effect.flip(sessions.branch({ sessionID: id, messageID: first, summary: true }))
        assert.strictEqual(error._tag, "BranchNotSummarized")
        yield* model.request
        assert.notInclude(yield* eventTypes(id), "session.next.leaf.moved")
        assert.deepStrictEqual(userTexts(yield* exchange(id, "three", "3")), ["one", "two", "three"])
      })
    )

    suite(
      "HP-27: a branch in which nothing was said gets a fixed note, and no model is asked",
      Effect.gen(function* () {
        const { id, model, sessions } = yield* scene()
        yield* exchange(id, "one", "1")
        yield* sessions.switchModel(id, { providerID: "scripted", id: "two" })
        const branched = yield* sessions.branch({ sessionID: id, messageID: at(yield* answers(id), 0), summary: true })
        assert.strictEqual(yield* model.pending, 0)
        const made = (yield* messages(id)).find((message) => message.id === branched.summaryID)
        assert.strictEqual(
          made?.type === "branch-summary" ? made.summary : undefined,
          "Nothing had been said in the branch that was left."
        )
      })
    )
  })
}
