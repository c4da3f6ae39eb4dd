/** Logs of pi 1.x become sessions that run: what a person removed from the context stays away from the model. */
import { assert, it } from "@effect/vitest"
import { Chunk, Effect, Layer, Stream, Struct } from "effect"
import { layerStore } from "../../../packages/log/src/Store.ts"
import { MessageID, SessionID } from "../../../packages/log/src/domain/Identifiers.ts"
import { draft } from "../../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../../packages/log/src/log/EventLog.ts"
import { entryOf } from "../../../packages/formats/src/entry/Entry.ts"
import * as SessionContext from "../../../packages/formats/src/entry/SessionContext.ts"
import { messageIDOf } from "../../../packages/formats/src/import/Drafts.ts"
import { Sessions } from "../../../packages/core/src/session/Sessions.ts"
import { summary } from "../../compaction/support/Talks.ts"
import { memoryLog } from "../../support/Database.ts"
import { allUserTexts, runtime, say, userTexts } from "../../support/Harness.ts"
import { says, ScriptedModel } from "../../support/ScriptedModel.ts"
import { linesOf } from "../support/EntryTexts.ts"
import { allKinds, answer, call, edit, type Given, piLog, result, text, user } from "../support/PiLogs.ts"
import { exported, importText, piecesOf } from "../support/RoundTrips.ts"

const store = Layer.provideMerge(layerStore, memoryLog)

/** Imports the log, prompts its session, and returns what the model was shown. */
const continued = Effect.fnUntraced(function* (entries: ReadonlyArray<Given>) {
  const [sessions, model] = [yield* Sessions, yield* ScriptedModel]
  const report = yield* importText(linesOf(piLog(entries)))
  yield* model.answer(says("Fine."))
  yield* say(report.sessionID, "And now?")
  const request = yield* model.request
  yield* sessions.wait(report.sessionID)
  return { report, request, shown: JSON.stringify(request.prompt) }
})

/** A prompt and an answer that called a tool, both with a secret, and a prompt after them. */
const conversation = [
  user("u1", 1, text("the secret prompt")),
  answer("a1", 2, [...text("the secret answer"), call("call_1", { path: "secret.txt" })]),
  result("r1", 3, "call_1", text("the secret result")),
  answer("a2", 4, text("It is read.")),
  user("u2", 5, text("Go on.")),
  answer("a3", 6, text("I did."))
]

it.effect("FM-440, FM-441, FM-442: each kind of entry of pi 1.x is read without a problem", () =>
  Effect.gen(function* () {
    const pieces = Chunk.toReadonlyArray(yield* Stream.runCollect(piecesOf(linesOf(allKinds("/tmp")))))
    assert.deepStrictEqual(
      pieces.map((piece) => ("key" in piece ? `${piece.key} ${piece._tag}` : piece._tag)),
      [
        "Head",
        "m1 ModelChange",
        "t1 Opaque",
        "s1 Opaque",
        "u1 User",
        "a1 Answer",
        "r1 Result",
        "a2 Answer",
        "e1 Edit",
        "a3 Answer",
        "g1 Usage",
        "e2 Edit",
        "s2 Opaque",
        "c1 Opaque",
        "n1 Note",
        "b1 Command",
        "l1 Label",
        "i1 Title",
        "y1 BranchSummary",
        "a4 Answer",
        "k1 Compaction",
        "u2 User"
      ]
    )
  })
)

it.effect("FM-447: a message that lacks its content is read with an empty one", () =>
  Effect.gen(function* () {
    const roles = [{ role: "system" }, { role: "user", content: null }, { role: "assistant" }]
    const log = piLog(
      roles.map((message, n) => ({ type: "message", id: `e${n}`, message: { ...message, timestamp: n } }))
    )
    const pieces = Chunk.toReadonlyArray(yield* Stream.runCollect(piecesOf(linesOf(log))))
    assert.deepStrictEqual(pieces.map(Struct.get("_tag")), ["Head", "Opaque", "User", "Answer"])
    const { messages } = SessionContext.build(log.slice(1).map(entryOf))
    assert.deepStrictEqual(
      messages.map((message) => ("content" in message ? message.content : undefined)),
      ["", [], []]
    )
  })
)

it.effect("IM-30: a log of pi 1.x, imported and exported as pi, has the same lines", () =>
  Effect.gen(function* () {
    const source = linesOf(allKinds("/tmp"))
    const report = yield* importText(source)
    assert.deepStrictEqual(report.problems, {})
    const { text } = yield* exported(report.sessionID, "pi")
    assert.deepStrictEqual(text.split("\n"), source.split("\n"))
  }).pipe(Effect.provide(store))
)

it.effect(
  "IM-12: what answers, results, summaries and usage records of pi 1.x spent adds up in session and report",
  () =>
    Effect.gen(function* () {
      const { sessionID, usage } = yield* importText(linesOf(allKinds("/tmp")))
      const requests = 8
      assert.deepStrictEqual(usage, {
        input: 4 * 100 + 30 + 7 + 11 + 13,
        output: requests * 10,
        reasoning: requests * 3,
        cacheRead: requests * 4,
        cacheWrite: requests * 2,
        cost: 4 * 0.25 + 0.5 + 1 + 2 + 4
      })
      const { cost, tokens } = yield* (yield* Sessions).get(sessionID)
      assert.strictEqual(cost, usage.cost)
      assert.deepStrictEqual(tokens, {
        input: usage.input + usage.cacheRead + usage.cacheWrite,
        output: usage.output,
        reasoning: usage.reasoning,
        cache: { read: usage.cacheRead, write: usage.cacheWrite }
      })
    }).pipe(Effect.provide(runtime()))
)

it("FM-445: the context of a log has system messages in place, edited messages, and the compaction's own", () => {
  const entries = allKinds("/tmp").slice(1).map(entryOf)
  const shown = (leaf: string) =>
    SessionContext.build(entries, leaf).messages.map((message) => {
      const { content, role, summary } = { content: undefined, summary: undefined, ...message }
      return `${role} ${JSON.stringify(summary ?? content)}`
    })
  assert.deepStrictEqual(shown("s2").slice(2), [
    `assistant ${JSON.stringify(entries[4]?.body?.type === "message" && "content" in entries[4].body.message && entries[4].body.message.content)}`,
    'toolResult [{"type":"text","text":"the new words"}]',
    'assistant [{"type":"text","text":"It says so."}]',
    'system "Be brief."'
  ])
  assert.deepStrictEqual(shown("u2"), ['system "Checkpoint."', 'compactionSummary "All was read."', 'user "And now?"'])
})

it.effect("CP-440, IM-440: a prompt, an answer and a result that a person removed are not shown to the model", () =>
  Effect.gen(function* () {
    const { report, request, shown } = yield* continued([
      ...conversation,
      edit("e1", "u1", null),
      edit("e2", "r1", null),
      edit("e3", "a3", null)
    ])
    assert.deepStrictEqual(report.problems, {})
    assert.deepStrictEqual(userTexts(request).slice(-2), ["Go on.", "And now?"])
    for (const words of ["the secret prompt", "the secret result", "I did."]) assert.notInclude(shown, words)
    for (const words of ["the secret answer", "call_1", "[The result was removed from the context.]"])
      assert.include(shown, words)
  }).pipe(Effect.provide(runtime()))
)

it.effect("CP-440, IM-440: what a person replaced is shown to the model in its new form, in its place", () =>
  Effect.gen(function* () {
    const { request, shown } = yield* continued([
      ...conversation,
      { type: "custom_message", id: "n1", customType: "ext", content: "the secret note", display: true },
      edit("e1", "u1", { content: "the first prompt" }),
      edit("e2", "u1", { content: "the new prompt" }),
      edit("e3", "r1", "the new result"),
      edit("e4", "a1", { content: [...text("the new answer"), call("call_1", { path: "new.txt" })] }),
      edit("e5", "n1", { content: text("the new note") })
    ])
    assert.deepStrictEqual(userTexts(request), ["the new prompt", "Go on.", "the new note", "And now?"])
    for (const words of ["the new result", "the new answer", "new.txt", "It is read."]) assert.include(shown, words)
    for (const words of ["the secret", "secret.txt", "the first prompt"]) assert.notInclude(shown, words)
  }).pipe(Effect.provide(runtime()))
)

it.effect("CP-440: an answer without its call has no result either", () =>
  Effect.gen(function* () {
    const { shown } = yield* continued([...conversation, edit("e1", "a1", { content: "the new answer" })])
    assert.include(shown, "the new answer")
    for (const words of ["call_1", "the secret result", "secret.txt"]) assert.notInclude(shown, words)
  }).pipe(Effect.provide(runtime()))
)

it.effect("CP-441: people still read what was removed, beside the edit", () =>
  Effect.gen(function* () {
    const sessions = yield* Sessions
    const { sessionID } = yield* importText(
      linesOf(piLog([...conversation, edit("e1", "u1", null), edit("e2", "r1", { content: "the new result" })]))
    )
    const [prompt, first] = (yield* sessions.messages({ sessionID })).items
    assert.deepInclude(prompt, { type: "user", text: "the secret prompt", edits: [{}] })
    assert.deepInclude(first, {
      edits: [{ callID: "call_1", content: [{ type: "text", text: "the new result" }] }]
    })
    assert.include(JSON.stringify(first), "the secret result")
  }).pipe(Effect.provide(runtime()))
)

it.effect(
  "CP-442: where history continues before an edit, the message is shown as it was, and a fork has the edits",
  () =>
    Effect.gen(function* () {
      const [sessions, model] = [yield* Sessions, yield* ScriptedModel]
      const report = yield* importText(
        linesOf(
          piLog([...conversation, edit("e1", "u1", null), user("u3", 9, text("More.")), answer("a4", 10, text("Ok."))])
        )
      )
      const id = SessionID.make(report.sessionID)
      const next = Effect.fnUntraced(function* (of: SessionID, words: string) {
        yield* model.answer(says("Fine."))
        yield* say(of, words)
        const request = yield* model.request
        yield* sessions.wait(of)
        return userTexts(request)
      })
      const { session } = yield* sessions.fork({ sessionID: id })
      assert.deepStrictEqual(yield* next(session.id, "in the fork"), ["Go on.", "More.", "in the fork"])
      yield* sessions.branch({ sessionID: id, messageID: messageIDOf(id, "a2") })
      assert.deepStrictEqual(yield* next(id, "before it"), ["the secret prompt", "before it"])
      yield* sessions.branch({ sessionID: id, messageID: messageIDOf(id, "a4") })
      assert.deepStrictEqual(yield* next(id, "after it"), ["Go on.", "More.", "after it"])
    }).pipe(Effect.provide(runtime()))
)

it.effect("CP-440: summaries of a compaction and of a branch do not hold what was removed", () =>
  Effect.gen(function* () {
    const [sessions, model] = [yield* Sessions, yield* ScriptedModel]
    const entries = [...conversation, edit("e1", "u2", null), edit("e2", "r1", null), user("u3", 9, text("More."))]
    const log = linesOf(piLog([...entries, answer("a4", 10, text("Ok."))]))
    /** What the model was asked to summarize. */
    const asked = Effect.fnUntraced(function* (ask: (id: SessionID) => Effect.Effect<unknown, unknown>) {
      const { sessionID } = yield* importText(log, { asNew: true })
      yield* model.answer(says(summary("To read")))
      yield* ask(SessionID.make(sessionID))
      yield* sessions.wait(sessionID)
      return allUserTexts(yield* model.request).join("\n")
    })
    const compacted = yield* asked((id) => sessions.compact(id))
    const branched = yield* asked((id) =>
      sessions.branch({ sessionID: id, messageID: messageIDOf(id, "u1"), summary: true })
    )
    for (const summarized of [compacted, branched]) {
      assert.include(summarized, "the secret answer")
      for (const gone of ["Go on.", "the secret result"]) assert.notInclude(summarized, gone)
    }
  }).pipe(Effect.provide(runtime({ compaction: { keepRecentTokens: 5 } })))
)

it.effect("IM-42, IM-440: an edit that a log got after its import holds, and the lines stay the source's", () =>
  Effect.gen(function* () {
    const [sessions, model] = [yield* Sessions, yield* ScriptedModel]
    const source = linesOf(piLog([...conversation, edit("e1", "u1", null), edit("e2", "r1", "the new result")]))
    yield* importText(linesOf(piLog(conversation)))
    const report = yield* importText(source)
    assert.strictEqual(report.status, "grown")
    assert.deepStrictEqual((yield* exported(report.sessionID, "pi")).text.split("\n"), source.split("\n"))
    yield* model.answer(says("Fine."))
    yield* say(report.sessionID, "And now?")
    const request = yield* model.request
    yield* sessions.wait(report.sessionID)
    assert.deepStrictEqual(userTexts(request), ["Go on.", "And now?"])
    const shown = JSON.stringify(request.prompt)
    assert.include(shown, "the new result")
    assert.notInclude(shown, "the secret result")
    // What the model was shown can be shown again.
    const again = yield* sessions.request({ sessionID: report.sessionID, at: Number.MAX_SAFE_INTEGER })
    assert.notInclude(JSON.stringify(again.messages), "the secret result")
  }).pipe(Effect.provide(runtime()))
)

it.effect("IM-441: edits are exported in every dialect, and hold again after an import", () =>
  Effect.gen(function* () {
    const sessions = yield* Sessions
    const entries = [
      ...conversation,
      edit("e1", "u1", null),
      edit("e2", "r1", "the new result"),
      edit("e3", "a1", { content: [...text("the new answer"), call("call_1", { path: "new.txt" })] }),
      { type: "label", id: "l1", targetId: "a1", label: "here" }
    ]
    const { sessionID } = yield* importText(linesOf(piLog(entries)))
    // A fork has no source: its log is written from its events alone.
    const { session } = yield* sessions.fork({ sessionID })
    const before = JSON.stringify(yield* sessions.context(sessionID))
    for (const dialect of ["pi", "xcsh"] as const) {
      const { report, text } = yield* exported(session.id, dialect)
      assert.deepStrictEqual(report?.dropped, { "session.next.forked": 1 })
      const again = yield* importText(text, { asNew: true })
      assert.deepStrictEqual(again.problems, {})
      const shown = JSON.stringify(yield* sessions.context(again.sessionID))
      for (const words of ["the secret prompt", "the secret result", "the secret answer", "secret.txt"]) {
        assert.notInclude(before, words)
        assert.notInclude(shown, words)
      }
      for (const words of ["the new result", "the new answer", "new.txt"]) assert.include(shown, words)
    }
  }).pipe(Effect.provide(runtime()))
)

it.effect("MD-790: what one model is not shown is exported in every dialect, and holds again after an import", () =>
  Effect.gen(function* () {
    const [log, sessions] = [yield* EventLog, yield* Sessions]
    const { sessionID } = yield* importText(linesOf(piLog(conversation)))
    const { session } = yield* sessions.fork({ sessionID })
    const parts = Effect.fnUntraced(function* (sessionID: SessionID) {
      const { items } = yield* sessions.messages({ sessionID })
      return items.map(({ id, withheld = [] }) => ({ id, withheld }))
    })
    const ids = (yield* parts(session.id)).map(({ id }) => id)
    const model = { providerID: "p", id: "m" }
    const withhold = (at: number, part: object) =>
      draft("session.next.part.withheld", {
        messageID: ids[at] ?? MessageID.make("msg_none"),
        kind: "text",
        model,
        ...part
      })
    yield* log.append(session.id, [
      withhold(0, { reason: "flagged" }),
      withhold(1, { callID: "call_1", reason: "flagged" }),
      withhold(1, { callID: "call_1", kind: "input", reason: "flagged" }),
      withhold(3, { reason: "flagged" }),
      withhold(3, {})
    ])
    const before = (yield* parts(session.id)).map(({ withheld }) => withheld)
    assert.deepStrictEqual(
      before.map(({ length }) => length),
      [1, 2, 0, 0, 0]
    )
    for (const dialect of ["pi", "xcsh"] as const) {
      const { report, text } = yield* exported(session.id, dialect)
      assert.deepStrictEqual(report?.dropped, { "session.next.forked": 1 })
      const again = yield* importText(text, { asNew: true })
      assert.deepStrictEqual(again.problems, {})
      const after = (yield* parts(again.sessionID)).map(({ withheld }) => withheld)
      assert.deepStrictEqual(after, before)
      if (dialect === "xcsh")
        assert.deepStrictEqual((yield* exported(again.sessionID, dialect)).text.split("\n"), text.split("\n"))
    }
  }).pipe(Effect.provide(runtime()))
)

it.effect("FM-443, IM-440: an edit without a target is reported and changes nothing", () =>
  Effect.gen(function* () {
    const { report, request } = yield* continued([
      ...conversation,
      edit("e1", "gone", null),
      edit("e2", "e1", null),
      edit("e3", "u2", null, { parentId: "a2" }),
      user("u9", 9, text("Last."), { parentId: "a3" })
    ])
    assert.deepStrictEqual(report.problems, { "missing-target": 2, "edit-without-target": 1 })
    assert.deepStrictEqual(userTexts(request), ["the secret prompt", "Go on.", "Last.", "And now?"])
  }).pipe(Effect.provide(runtime()))
)

it.effect("FM-446: after omp's reset of the context the model is not shown what precedes it", () =>
  Effect.gen(function* () {
    const { request } = yield* continued([
      ...conversation,
      { type: "reset_boundary", id: "x1" },
      { type: "model_usage", id: "x2", usage: { input: 1, output: 1, cost: { total: 1 } } },
      user("u9", 9, text("Anew."))
    ])
    assert.deepStrictEqual(userTexts(request), ["Anew.", "And now?"])
  }).pipe(Effect.provide(runtime()))
)

it.effect("FM-444: an event stream is refused by the reader of entry logs too", () =>
  Effect.gen(function* () {
    const [head] = allKinds("/tmp")
    const events = [{ type: "agent_start" }, { type: "message_end", message: { role: "user", content: "go" } }]
    const error = yield* Effect.flip(importText(linesOf([head ?? {}, ...events])))
    assert.strictEqual(error._tag, "EventStream")
  }).pipe(Effect.provide(store))
)
