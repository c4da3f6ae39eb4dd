/**
 * Exports of sessions whose calls were open when their log was imported: what recovery settles must not stand apart from
 * its call, for providers refuse that. The request of pi is its own context of the exported log. Spec: IM-422 to IM-424.
 */
import { assert, it } from "@effect/vitest"
import { Array as Arr, Effect, FastCheck as fc, Layer, Runtime } from "effect"
import { Sessions } from "../../../packages/core/src/session/Sessions.ts"
import { messageIDOf } from "../../../packages/formats/src/import/Drafts.ts"
import type { JsonRecord } from "../../../packages/log/src/domain/Json.ts"
import type { MessageID, SessionID } from "../../../packages/log/src/domain/Identifiers.ts"
import { type Draft, draft } from "../../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../../packages/log/src/log/EventLog.ts"
import { layerStore } from "../../../packages/log/src/Store.ts"
import { SessionStore } from "../../../packages/log/src/store/SessionStore.ts"
import { cases } from "../../support/Cases.ts"
import { memoryLog } from "../../support/Database.ts"
import { runtime, say } from "../../support/Harness.ts"
import { created, message as newMessage, session as newSession } from "../../support/Logs.ts"
import { says, ScriptedModel } from "../../support/ScriptedModel.ts"
import { linesOf } from "../support/EntryTexts.ts"
import { orphansOf, requestOf } from "../support/PiRequests.ts"
import { exported, exportedThread, importText } from "../support/RoundTrips.ts"

const time = (n: number) => 1_760_000_000_000 + n * 1_000

interface Made {
  readonly id: string
  readonly parent: string | null
  readonly role: "user" | "answer" | "called"
}

/** A log of pi with these messages; the call of one that calls is named after it and has no result. */
const logOf = (number: number, made: ReadonlyArray<Made>): ReadonlyArray<JsonRecord> => [
  {
    type: "session",
    version: 3,
    id: `0198c0de-0000-7000-8000-${String(number).padStart(12, "0")}`,
    timestamp: new Date(time(0)).toISOString(),
    cwd: "/tmp"
  },
  ...made.map(({ id, parent, role }, n) => ({
    type: "message",
    id,
    parentId: parent,
    timestamp: new Date(time(n)).toISOString(),
    message:
      role === "user"
        ? { role, content: id, timestamp: time(n) }
        : {
            role: "assistant",
            content: [
              { type: "text", text: id },
              ...(role === "called" ? [{ type: "toolCall", id: `call_${id}`, name: "bash", arguments: {} }] : [])
            ],
            provider: "p",
            model: "m",
            stopReason: role === "called" ? "toolUse" : "stop",
            timestamp: time(n)
          }
  }))
]

/** The roles of a thread's messages. */
const rolesOf = (thread: string) =>
  thread
    .trimEnd()
    .split("\n")
    .map((line) => (JSON.parse(line) as JsonRecord)["role"])

/** Answers the next request and waits for it. */
const continued = Effect.fnUntraced(function* (sessionID: SessionID) {
  const model = yield* ScriptedModel
  yield* model.answer(says("welcome"))
  yield* say(sessionID, "hello")
  yield* (yield* Sessions).wait(sessionID)
})

it.effect("IM-422: the result of a call that history has passed hangs at its call, and history goes on beside it", () =>
  Effect.gen(function* () {
    const source = linesOf(
      logOf(1, [
        { id: "one", parent: null, role: "user" },
        { id: "work", parent: "one", role: "called" },
        { id: "two", parent: "work", role: "user" },
        { id: "done", parent: "two", role: "answer" }
      ])
    )
    const { sessionID } = yield* importText(source)
    yield* continued(sessionID)
    const { text } = yield* exported(sessionID, "pi")
    assert.isTrue(text.startsWith(source))
    assert.deepStrictEqual(requestOf(text), ["one", "work calls call_work", "two", "done", "hello", "welcome"])
    const result = text.split("\n").find((line) => line.includes('"toolResult"'))
    assert.include(result ?? "", '"parentId":"work"')
    assert.deepStrictEqual(rolesOf((yield* exportedThread(sessionID)).text), [
      "user",
      "assistant",
      "user",
      "assistant",
      "user",
      "assistant"
    ])
  }).pipe(Effect.provide(runtime()))
)

it.effect("IM-422: after a branch to an answer with an open call, the log goes on behind the result of the call", () =>
  Effect.gen(function* () {
    const source = linesOf(
      logOf(2, [
        { id: "one", parent: null, role: "user" },
        { id: "work", parent: "one", role: "called" },
        { id: "other", parent: "one", role: "answer" }
      ])
    )
    const { sessionID } = yield* importText(source)
    yield* (yield* Sessions).branch({ sessionID, messageID: messageIDOf(sessionID, "work") })
    yield* continued(sessionID)
    const { text } = yield* exported(sessionID, "pi")
    const shown = ["one", "work calls call_work", "result call_work", "hello", "welcome"]
    assert.deepStrictEqual(requestOf(text), shown)
    assert.deepStrictEqual(rolesOf((yield* exportedThread(sessionID)).text), [
      "user",
      "assistant",
      "toolResult",
      "user",
      "assistant"
    ])
  }).pipe(Effect.provide(runtime()))
)

const unit = fc.record({
  role: fc.constantFrom("user" as const, "answer" as const, "called" as const),
  at: fc.nat(),
  forks: fc.boolean()
})

it.effect("IM-422: whatever the tree, its leaf and the order of results, no result is apart from its call", () =>
  Effect.gen(function* () {
    const services = yield* Effect.runtime<EventLog | SessionStore>()
    let number = 10
    const checked = (
      units: ReadonlyArray<typeof unit extends fc.Arbitrary<infer A> ? A : never>,
      moves: ReadonlyArray<number>
    ) =>
      Effect.gen(function* () {
        const [log, store] = [yield* EventLog, yield* SessionStore]
        const made = units.map(({ at, forks, role }, n): Made => {
          const parent = n === 0 ? null : `m${forks ? at % n : n - 1}`
          return { id: `m${n}`, parent, role }
        })
        const { sessionID } = yield* importText(linesOf(logOf(++number, made)))
        const idOf = (id: string) => messageIDOf(sessionID, id)
        const parents = new Map(made.map(({ id, parent }) => [id, parent]))
        const open = made.filter(({ role }) => role === "called")
        for (const [n, move] of moves.entries()) {
          const target = made[move % made.length]
          if (target === undefined) continue
          const messageID = idOf(target.id)
          const place = yield* store.place(sessionID, messageID)
          const settled = open.splice(0, 1 + (move % 2))
          const results = settled.map(({ id }) =>
            draft("session.next.tool.failed", {
              assistantMessageID: idOf(id),
              callID: `call_${id}`,
              error: { type: "tool.interrupted", message: "cut off" },
              provider: { executed: false }
            })
          )
          const to = draft("session.next.leaf.moved", { messageID, path: place?.through ?? [] })
          const said = draft("session.next.synthetic", { messageID: newMessage(), text: `said ${n}` })
          const inOrder: ReadonlyArray<Draft> = move % 3 === 0 ? [...results, to, said] : [to, ...results, said]
          if (Arr.isNonEmptyReadonlyArray(inOrder)) yield* log.append(sessionID, inOrder)
          const { text } = yield* exported(sessionID, "pi")
          const request = requestOf(text)
          assert.deepStrictEqual(orphansOf(request), [], text)
          const words = request
            .filter((shown) => !shown.startsWith("result "))
            .map((shown) => shown.split(" calls ")[0])
          const path: Array<string> = []
          for (let at: string | null = target.id; at !== null; at = parents.get(at) ?? null) path.unshift(at)
          assert.deepStrictEqual(words, [...path, `said ${n}`], text)
        }
      })
    yield* Effect.promise(() =>
      fc.assert(
        fc.asyncProperty(fc.array(unit, { minLength: 1, maxLength: 8 }), fc.array(fc.nat(), { maxLength: 4 }), (a, b) =>
          Runtime.runPromise(services, checked(a, b))
        ),
        { numRuns: cases(25) }
      )
    )
  }).pipe(Effect.provide(Layer.provideMerge(layerStore, memoryLog)))
)

/** An answer with these calls. */
const calling = (assistantMessageID: MessageID, ...calls: ReadonlyArray<string>): ReadonlyArray<Draft> => [
  draft("session.next.step.started", { assistantMessageID, agent: "build", model: { providerID: "p", id: "m" } }),
  ...calls.flatMap((callID) => [
    draft("session.next.tool.input.started", { assistantMessageID, callID, name: "bash" }),
    draft("session.next.tool.called", {
      assistantMessageID,
      callID,
      tool: "bash",
      input: {},
      provider: { executed: false }
    })
  ]),
  draft("session.next.step.ended", {
    assistantMessageID,
    finish: "tool-calls",
    cost: 0,
    tokens: { input: 0, output: 0, reasoning: 0, cache: { read: 0, write: 0 } }
  })
]

it.effect("IM-423: what came while calls ran is written behind their results", () =>
  Effect.gen(function* () {
    const [log, id, answer] = [yield* EventLog, newSession(), newMessage()]
    const result = (callID: string) =>
      draft("session.next.tool.success", {
        assistantMessageID: answer,
        callID,
        structured: {},
        content: [{ type: "text", text: callID }],
        provider: { executed: false }
      })
    const note = (text: string) => draft("session.next.synthetic", { messageID: newMessage(), text })
    yield* log.append(id, [
      created,
      note("go"),
      ...calling(answer, "a", "b"),
      note("during a"),
      result("b"),
      draft("session.next.renamed", { title: "Named" }),
      result("a"),
      note("after")
    ])
    const { text } = yield* exported(id, "pi")
    assert.deepStrictEqual(requestOf(text), ["go", " calls a calls b", "result b", "result a", "during a", "after"])
  }).pipe(Effect.provide(Layer.provideMerge(layerStore, memoryLog)))
)
