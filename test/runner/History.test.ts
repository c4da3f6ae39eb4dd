/**
 * The history that is kept between turns. Method: events of every kind that the model's view depends on are appended in
 * random order; after each step the kept history is compared with one that is read anew, and what was read is counted.
 */
import { assert, it } from "@effect/vitest"
import { Effect, FastCheck, Ref, Struct } from "effect"
import * as History from "../../packages/core/src/runner/History.ts"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import { MessageID, type SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { type Draft, draft } from "../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import { SessionStore } from "../../packages/log/src/store/SessionStore.ts"
import { cases } from "../support/Cases.ts"
import { newSession, runtime, scene } from "../support/Harness.ts"

const model = { providerID: "scripted", id: "one" }
const message = (n: number) => MessageID.make(`msg_${n}`)
const tokens = { input: 1, output: 1, reasoning: 0, cache: { read: 0, write: 0 } }

/** One step of a session's life, as events; `n` makes its ids. `open` leaves a part for a later step to close. */
const steps: { readonly [kind: string]: (n: number) => ReadonlyArray<Draft> } = {
  prompt: (n) => [
    draft("session.next.prompt.admitted", { messageID: message(n), prompt: { text: `say ${n}` }, delivery: "steer" }),
    draft("session.next.prompt.promoted", { messageID: message(n), prompt: { text: `say ${n}` }, timeCreated: n })
  ],
  waiting: (n) => [
    draft("session.next.prompt.admitted", { messageID: message(n), prompt: { text: `wait ${n}` }, delivery: "queue" })
  ],
  answer: (n) => {
    const assistantMessageID = message(n)
    const call = { assistantMessageID, callID: "c" }
    return [
      draft("session.next.step.started", { assistantMessageID, agent: "build", model }),
      draft("session.next.text.started", { assistantMessageID, textID: `t${n}` }),
      draft("session.next.text.ended", { assistantMessageID, textID: `t${n}`, text: `text ${n}` }),
      draft("session.next.tool.input.started", { ...call, name: "read" }),
      draft("session.next.tool.input.ended", { ...call, text: "{}" }),
      draft("session.next.tool.called", { ...call, tool: "read", input: {}, provider: { executed: false } }),
      draft("session.next.tool.progress", { ...call, structured: {}, content: [] }),
      draft("session.next.step.ended", { assistantMessageID, finish: "tool-calls", cost: 1, tokens }),
      draft("session.next.tool.success", { ...call, structured: {}, content: [], provider: { executed: false } })
    ]
  },
  failed: (n) => [
    draft("session.next.step.started", { assistantMessageID: message(n), agent: "build", model }),
    draft("session.next.step.failed", { assistantMessageID: message(n), error: { type: "provider", message: "no" } })
  ],
  updated: (n) => [draft("session.next.context.updated", { messageID: message(n), text: `now ${n}` })],
  moved: (n) => [draft("session.next.moved", { location: { directory: `/work/${n}` } })],
  shell: (n) => [
    draft("session.next.shell.started", { messageID: message(n), callID: `s${n}`, command: "ls" }),
    draft("session.next.shell.ended", { callID: `s${n}`, output: "a" })
  ],
  switched: (n) => [draft("session.next.model.switched", { messageID: message(n), model })],
  compacted: (n) => [
    draft("session.next.compaction.ended", { messageID: message(n), reason: "auto", text: `sum ${n}`, recent: "" })
  ]
}

const append = Effect.fnUntraced(function* (sessionID: SessionID, drafts: ReadonlyArray<Draft>) {
  const log = yield* EventLog
  const [first, ...rest] = drafts
  if (first !== undefined) yield* log.append(sessionID, [first, ...rest])
})

/** What was read: whole histories from the rows, and events from the log. */
const counted = Effect.fnUntraced(function* (bounds: History.Bounds = { sessions: 64, chars: 1_000_000 }) {
  const log = yield* EventLog
  const store = yield* SessionStore
  const reads = yield* Ref.make({ histories: 0, events: 0 })
  const history = yield* History.makeBounded(bounds).pipe(
    Effect.provideService(EventLog, {
      ...log,
      read: (options) =>
        Effect.tap(log.read(options), ({ events }) =>
          Ref.update(reads, (all) => ({ ...all, events: all.events + events.length }))
        )
    }),
    Effect.provideService(SessionStore, {
      ...store,
      contextRows: (sessionID, baselineSeq) =>
        Effect.zipRight(
          Ref.update(reads, (all) => ({ ...all, histories: all.histories + 1 })),
          store.contextRows(sessionID, baselineSeq)
        )
    })
  )
  return { history, reads: Ref.getAndSet(reads, { histories: 0, events: 0 }) }
})

const kinds = FastCheck.array(FastCheck.constantFrom(...Object.keys(steps)), { minLength: 1, maxLength: 8 })

it.scoped("EP-10: the kept history is the one that the rows give, whatever happened since", () =>
  Effect.gen(function* () {
    let n = 0
    for (const [life, renew] of FastCheck.sample(FastCheck.tuple(kinds, FastCheck.nat(9)), {
      numRuns: cases(24),
      seed: 7
    })) {
      const { id, log } = yield* scene()
      const store = yield* SessionStore
      const { history } = yield* counted()
      let baselineSeq = 0
      yield* history.load(id, baselineSeq)
      for (const [index, kind] of life.entries()) {
        n += 1
        yield* append(id, steps[kind]?.(n) ?? [])
        // Now and then the baseline is rendered anew, and holds the System messages so far.
        if (index === renew) baselineSeq = yield* log.latest(id)
        const kept = yield* history.load(id, baselineSeq)
        assert.deepStrictEqual(kept, yield* (yield* History.make).load(id, baselineSeq), life.join())
        assert.deepStrictEqual(kept, yield* store.context(id, baselineSeq))
      }
    }
  }).pipe(Effect.provide(runtime()))
)

it.scoped("EP-10: a later load reads the new events and nothing else; a compaction starts it anew once", () =>
  Effect.gen(function* () {
    const { id } = yield* newSession()
    const { history, reads } = yield* counted()
    const life = ["prompt", "answer", "updated", "moved", "failed"]
    for (const [index, kind] of life.entries()) yield* append(id, steps[kind]?.(index) ?? [])
    yield* history.load(id, 0)
    assert.deepStrictEqual(yield* reads, { histories: 1, events: 0 })
    yield* history.load(id, 0)
    assert.deepStrictEqual(yield* reads, { histories: 0, events: 0 })
    yield* append(id, steps["prompt"]?.(10) ?? [])
    yield* history.load(id, 0)
    assert.deepStrictEqual(yield* reads, { histories: 0, events: 2 })
    yield* append(id, steps["compacted"]?.(11) ?? [])
    yield* append(id, steps["answer"]?.(12) ?? [])
    const shown = yield* history.load(id, 0)
    assert.strictEqual((yield* reads).histories, 1)
    assert.deepStrictEqual(
      shown.map(({ type }) => type),
      // The System message of before stays visible: the baseline does not contain it.
      ["system", "compaction", "assistant"]
    )
    yield* append(id, steps["failed"]?.(13) ?? [])
    yield* history.load(id, 0)
    assert.deepStrictEqual(yield* reads, { histories: 0, events: 2 })
  }).pipe(Effect.provide(runtime()))
)

it.scoped("EX-R9: a session that is removed and made again with as many events shows nothing of its life before", () =>
  Effect.gen(function* () {
    const { id } = yield* newSession()
    const { history } = yield* counted()
    const [log, sessions] = [yield* EventLog, yield* Sessions]
    const told = (text: string, n: number) => draft("session.next.synthetic", { messageID: message(n), text })
    yield* append(id, [told("old 1", 1), told("old 2", 2)])
    yield* history.load(id, 0)
    yield* log.remove(id)
    yield* sessions.create({ id, location: { directory: "/work" } })
    yield* append(id, [told("new 1", 3), told("new 2", 4)])
    const texts = (yield* history.load(id, 0)).map((shown) => (shown.type === "synthetic" ? shown.text : shown.type))
    assert.deepStrictEqual(texts, ["new 1", "new 2"])
    yield* log.remove(id)
    const gone = yield* Effect.flip(history.load(id, 0))
    assert.deepInclude(gone, { _tag: "SessionNotFound", sessionID: id })
  }).pipe(Effect.provide(runtime()))
)

it.scoped("EP-10: a call that settles after the compaction which hid it does not harm the history", () =>
  Effect.gen(function* () {
    const { id } = yield* newSession()
    const { history } = yield* counted()
    const answer = steps["answer"]?.(1) ?? []
    yield* append(id, answer.slice(0, -1))
    yield* append(id, steps["compacted"]?.(2) ?? [])
    yield* history.load(id, 0)
    yield* append(id, answer.slice(-1))
    assert.deepStrictEqual((yield* history.load(id, 0)).map(Struct.get("type")), ["compaction"])
  }).pipe(Effect.provide(runtime()))
)

for (const [bound, bounds] of [
  ["number", { sessions: 2, chars: 1_000_000 }],
  ["size", { sessions: 64, chars: 3_000 }]
] as const) {
  it.scoped(
    `EX-R16, EX-R9: what is kept is bounded by ${bound}: the session that was used longest ago is read again`,
    () =>
      Effect.gen(function* () {
        const ids: Array<SessionID> = []
        const { history, reads } = yield* counted(bounds)
        for (const n of [1, 2, 3]) {
          const { id } = yield* newSession()
          ids.push(id)
          // A bit more than a third of what may be kept.
          yield* append(id, [draft("session.next.synthetic", { messageID: message(n), text: "x".repeat(1_100) })])
          yield* history.load(id, 0)
        }
        assert.strictEqual((yield* reads).histories, 3)
        const [first, second, third] = ids
        if (first === undefined || second === undefined || third === undefined) return
        for (const id of [second, third]) yield* history.load(id, 0)
        assert.strictEqual((yield* reads).histories, 0)
        yield* history.load(first, 0)
        yield* history.load(second, 0)
        assert.strictEqual((yield* reads).histories, 2)
      }).pipe(Effect.provide(runtime()))
  )
}

it.scoped("EX-R16, EX-R9: the session that is being worked on is kept, however large it is", () =>
  Effect.gen(function* () {
    const { id } = yield* newSession()
    const { history, reads } = yield* counted({ sessions: 64, chars: 10 })
    yield* append(id, [draft("session.next.synthetic", { messageID: message(1), text: "x".repeat(1_000) })])
    yield* history.load(id, 0)
    yield* history.load(id, 0)
    assert.strictEqual((yield* reads).histories, 1)
  }).pipe(Effect.provide(runtime()))
)
