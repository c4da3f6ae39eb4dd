/** Texts that are longer than one part of a message may be. */
import { Response } from "@effect/ai"
import { it } from "@effect/vitest"
import { Effect, Either, FastCheck } from "effect"
import { assert } from "vitest"
import * as Recorder from "../../packages/core/src/runner/recorder/TurnRecorder.ts"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import { MessageID, SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { fitting, joined, longestText } from "../../packages/log/src/domain/LongText.ts"
import type { SessionEvent } from "../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import { newSession, runtime, say } from "../support/Harness.ts"
import { finish, ref, says, ScriptedModel, streams } from "../support/ScriptedModel.ts"

const info = { ref, name: "one", contextTokens: 0, outputTokens: 0 }

/** What the recorder makes of one text in these deltas. */
const recorded = (deltas: ReadonlyArray<string>) => {
  let state = Recorder.start(SessionID.make("ses_1"), MessageID.make("msg_1"), info)
  const parts = [
    Response.makePart("text-start", { id: "t" }),
    ...deltas.map((delta) => Response.makePart("text-delta", { id: "t", delta })),
    Response.makePart("text-end", { id: "t" })
  ]
  const steps = parts.map((part) => {
    const step = Either.getOrThrow(Recorder.record(state, part))
    state = step.state
    return step
  })
  const drafts = steps.flatMap((step) => step.drafts)
  return {
    steps,
    drafts,
    ended: drafts.flatMap((draft) => (draft.type === "session.next.text.ended" ? [draft.data] : [])),
    live: steps.flatMap((step) =>
      step.live.flatMap((event) => (event.type === "session.next.text.delta" ? [event.data] : []))
    )
  }
}

const delta = FastCheck.tuple(
  FastCheck.integer({ min: 1, max: 3 * longestText }),
  FastCheck.constantFrom("a", "é", "😀")
).map(([length, unit]) => unit.repeat(Math.ceil(length / unit.length)))

it("EX-R11: the parts of a text, and the deltas of each, are the text, and no surrogate pair is split", () => {
  FastCheck.assert(
    FastCheck.property(FastCheck.array(delta, { maxLength: 5 }), (deltas) => {
      const { ended, live } = recorded(deltas)
      assert.isTrue(ended.map(({ text }) => text).join("") === deltas.join(""))
      for (const { text, textID } of ended) {
        assert.isAtMost(text.length, longestText)
        assert.isFalse(/\p{Surrogate}/u.test(text))
        assert.isTrue(live.flatMap((each) => (each.textID === textID ? [each.delta] : [])).join("") === text)
      }
      assert.strictEqual(new Set(ended.map(({ textID }) => textID)).size, ended.length)
    }),
    { numRuns: 50, endOnFailure: true }
  )
})

it("EX-R11: what a delta makes the recorder hand on does not grow with the text before it", () => {
  const piece = "0123456789".repeat(100)
  const { drafts, steps } = recorded(Array.from({ length: 4000 }, () => piece))
  const handled = steps.map(({ drafts, live }) => JSON.stringify(drafts).length + JSON.stringify(live).length)
  assert.isAtMost(Math.max(...handled), longestText + 10 * piece.length)
  // All in all each code unit is handed on twice: live, and in its part.
  assert.isAtMost(
    handled.reduce((sum, each) => sum + each, 0),
    2.5 * 4000 * piece.length
  )
  assert.strictEqual(
    drafts.filter(({ type }) => type === "session.next.text.ended").length,
    Math.ceil((4000 * piece.length) / longestText)
  )
})

it.live("EX-R11: a message has a long text as one part, and so has the request that shows it", () =>
  Effect.gen(function* () {
    const [model, sessions, log] = [yield* ScriptedModel, yield* Sessions, yield* EventLog]
    const session = yield* newSession()
    const text = `${"long ".repeat(80_000)}end`
    yield* model.answer(says(text))
    yield* Effect.zipRight(say(session.id, "hello"), sessions.wait(session.id))
    const events: Array<SessionEvent> = []
    for (let after = -1, more = true; more;) {
      const page = yield* log.read({ sessionID: session.id, after })
      events.push(...page.events)
      after = page.cursor
      more = page.hasMore
    }
    const stored = events.flatMap((event) => (event.type === "session.next.text.ended" ? [event.data.text.length] : []))
    assert.deepStrictEqual(stored, [longestText, longestText, longestText, text.length - 3 * longestText])
    const { items } = yield* sessions.messages({ sessionID: session.id })
    const parts = items.flatMap((message) => (message.type === "assistant" ? message.content : []))
    assert.isTrue(parts.length === 1 && parts[0]?.type === "text" && parts[0].text === text)
    yield* model.request
    yield* model.answer(says("short"))
    yield* Effect.zipRight(say(session.id, "go on"), sessions.wait(session.id))
    const { prompt } = yield* model.request
    const shown = prompt.content.flatMap((message) => (message.role === "assistant" ? message.content : []))
    assert.isTrue(shown.length === 1 && shown[0]?.type === "text" && shown[0].text === text)
  }).pipe(Effect.provide(runtime()))
)

it.live("EX-R11: texts that a model gives as several stay as many, however long the others are", () =>
  Effect.gen(function* () {
    const [model, sessions] = [yield* ScriptedModel, yield* Sessions]
    const session = yield* newSession()
    const short = "x".repeat(longestText - 2)
    const part = (id: string, text: string) => [
      { type: "text-start" as const, id },
      { type: "text-delta" as const, id, delta: text },
      { type: "text-end" as const, id }
    ]
    yield* model.answer(streams(...part("a", short), ...part("b", "y"), finish()))
    yield* Effect.zipRight(say(session.id, "hello"), sessions.wait(session.id))
    const { items } = yield* sessions.messages({ sessionID: session.id })
    const parts = items.flatMap((message) => (message.type === "assistant" ? message.content : []))
    assert.deepStrictEqual(
      parts.map((each) => (each.type === "text" ? each.text?.length : undefined)),
      [short.length, 1]
    )
  }).pipe(Effect.provide(runtime()))
)

/** Texts as readers of messages have them. */
const asRead = (...texts: ReadonlyArray<string>) =>
  joined(
    texts,
    (text) => text,
    (_, text) => text
  )

it("EX-R11: a full part is joined with the next, and one that is a code unit short only where a pair would be split", () => {
  const text = `${"a".repeat(longestText - 1)}😀b`
  const first = fitting(0, text)
  assert.strictEqual(first.length, longestText - 1)
  assert.deepStrictEqual(asRead(first, text.slice(first.length)), [text])
  const full = "a".repeat(longestText)
  assert.deepStrictEqual(asRead(full, "b", "c"), [`${full}b`, "c"])
  for (const next of ["b", "", "\uD83D", "\uDE00"]) assert.deepStrictEqual(asRead(first, next), [first, next])
})

it("EX-R11: a text of an older log that is longer than a part is whole, and no other is joined with it", () => {
  for (const more of [1, 2, longestText]) {
    const old = "a".repeat(longestText + more)
    assert.deepStrictEqual(asRead(old, "b"), [old, "b"])
    assert.deepStrictEqual(asRead("b", old, old), ["b", old, old])
  }
})
