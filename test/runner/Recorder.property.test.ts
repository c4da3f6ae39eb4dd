/**
 * The recorder over any stream. Method: streams are generated with their order kept, by interleaving what each fragment
 * and each call sends; then the order is broken in one place. What is checked does not use the recorder's own state.
 */
import { assert, it } from "@effect/vitest"
import { Either, FastCheck } from "effect"
import type { StreamPart } from "../../packages/core/src/model/ProviderStream.ts"
import * as Recorder from "../../packages/core/src/runner/recorder/TurnRecorder.ts"
import { EventID, MessageID, SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { type Draft, draft, type SessionEvent } from "../../packages/log/src/events/SessionEvents.ts"
import * as MemoryTables from "../../packages/log/src/projection/MemoryTables.ts"
import { project } from "../../packages/log/src/projection/Projection.ts"

type Part = StreamPart

const sessionID = SessionID.make("ses_a")
const messageID = MessageID.make("msg_a")
const info = { ref: { providerID: "p", id: "m" }, name: "m", contextTokens: 0, outputTokens: 0 }
const fresh = Recorder.start(sessionID, messageID, info)

/** A part as the library decodes it. */
const part = (fields: object): Part => ({ metadata: {}, ...fields }) as unknown as Part

const pieces = FastCheck.array(FastCheck.string({ maxLength: 5 }), { maxLength: 4 })

/** One fragment, one after the other under the same provider id, as providers do. */
const fragments = (kind: "text" | "reasoning") =>
  FastCheck.array(FastCheck.tuple(pieces, FastCheck.boolean()), { maxLength: 3 }).map((all) =>
    all.flatMap(([deltas, ends], index) => [
      part({ type: `${kind}-start`, id: "0" }),
      ...deltas.map((delta) => part({ type: `${kind}-delta`, id: "0", delta })),
      // Only the last may stay open.
      ...(ends || index < all.length - 1 ? [part({ type: `${kind}-end`, id: "0" })] : [])
    ])
  )

const call = (id: string) =>
  FastCheck.record({
    deltas: pieces,
    streamed: FastCheck.boolean(),
    executed: FastCheck.boolean(),
    stops: FastCheck.integer({ min: 0, max: 4 }),
    params: FastCheck.oneof(
      FastCheck.json().map((text): unknown => JSON.parse(text)),
      FastCheck.constant(undefined)
    ),
    isFailure: FastCheck.boolean()
  }).map(({ deltas, executed, isFailure, params, stops, streamed }) => {
    const own = { id, name: `tool-${id}`, providerExecuted: executed }
    const steps = [
      ...(streamed
        ? [
            [
              part({ type: "tool-params-start", ...own }),
              ...deltas.map((delta) => part({ type: "tool-params-delta", id, delta }))
            ],
            [part({ type: "tool-params-end", id })]
          ]
        : []),
      [part({ type: "tool-call", ...own, params })],
      ...(executed ? [[part({ type: "tool-result", ...own, result: 1, encodedResult: 1, isFailure })]] : [])
    ]
    return steps.slice(0, stops).flat()
  })

/** Merges lists, each in its own order. */
const interleave = (lists: ReadonlyArray<ReadonlyArray<Part>>, picks: ReadonlyArray<number>): ReadonlyArray<Part> => {
  const rest = lists.map((list) => [...list])
  const merged: Array<Part> = []
  for (let turn = 0; rest.some((list) => list.length > 0); turn++) {
    const waiting = rest.filter((list) => list.length > 0)
    const next = waiting[(picks[turn % Math.max(1, picks.length)] ?? 0) % waiting.length]?.shift()
    if (next !== undefined) merged.push(next)
  }
  return merged
}

const finish = part({ type: "finish", reason: "stop", usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2 } })

const valid = FastCheck.tuple(
  FastCheck.tuple(fragments("text"), fragments("reasoning"), call("a"), call("b"), call("c")),
  FastCheck.array(FastCheck.nat(), { minLength: 1, maxLength: 30 }),
  FastCheck.boolean()
).map(([lists, picks, finishes]) => [...interleave(lists, picks), ...(finishes ? [finish] : [])])

/** Records everything, then ends the turn as the runner does. */
const recordAll = (parts: ReadonlyArray<Part>) => {
  let state = fresh
  const drafts: Array<Draft> = []
  const faults: Array<Recorder.ProtocolFault> = []
  for (const next of parts) {
    const step = Recorder.record(state, next)
    if (Either.isLeft(step)) {
      faults.push(step.left)
      break
    }
    state = step.right.state
    drafts.push(...step.right.drafts)
    // What a local tool would store.
    const local = step.right.call
    if (local !== undefined && local.callID !== "b") {
      const base = { assistantMessageID: messageID, callID: local.callID, provider: { executed: false } }
      drafts.push(draft("session.next.tool.success", { ...base, structured: {}, content: [] }))
      state = Recorder.settled(state, local.callID)
    }
  }
  const closed = Recorder.close(state)
  const failed = Recorder.failUnsettled(closed.state, () => true, { type: "test", message: "left" })
  return { drafts: [...drafts, ...closed.drafts, ...failed.drafts], faults, state: failed.state }
}

const stored = (drafts: ReadonlyArray<Draft>): ReadonlyArray<SessionEvent> =>
  [
    draft("session.created", { location: { directory: "/a" } }),
    draft("session.next.step.started", { assistantMessageID: messageID, agent: "build", model: info.ref }),
    ...drafts
  ].map(
    (each, seq) =>
      // A draft with an envelope is the event of its type.
      ({
        ...each,
        id: EventID.make(`evt_${seq}`),
        sessionID,
        seq,
        position: seq,
        created: seq,
        version: 1
      }) as SessionEvent
  )

/** The events of one kind of part, by the part's id. */
const textIDs = (drafts: ReadonlyArray<Draft>, type: "started" | "ended") =>
  drafts.flatMap((each) =>
    each.type === `session.next.text.${type}`
      ? [(each.data as { readonly textID: string }).textID]
      : each.type === `session.next.reasoning.${type}`
        ? [(each.data as { readonly reasoningID: string }).reasoningID]
        : []
  )

const countsOf = (drafts: ReadonlyArray<Draft>, pick: (each: Draft) => string | undefined) => {
  const counts = new Map<string, number>()
  for (const key of drafts.map(pick)) if (key !== undefined) counts.set(key, (counts.get(key) ?? 0) + 1)
  return [...counts.values()]
}

const callOf =
  (...types: ReadonlyArray<string>) =>
  (each: Draft) =>
    types.includes(each.type) ? (each.data as { readonly callID: string }).callID : undefined

const textOf = (parts: ReadonlyArray<Part>, kind: "text" | "reasoning") =>
  parts.flatMap((each) => (each.type === `${kind}-delta` && "delta" in each ? [each.delta] : [])).join("")

const wellFormed = (parts: ReadonlyArray<Part>, drafts: ReadonlyArray<Draft>) => {
  const started = textIDs(drafts, "started")
  assert.strictEqual(new Set(started).size, started.length, "part ids are unique")
  assert.deepStrictEqual([...textIDs(drafts, "ended")].sort(), [...started].sort(), "each started part ended once")
  const settled = callOf("session.next.tool.success", "session.next.tool.failed")
  for (const pick of [callOf("session.next.tool.input.started"), callOf("session.next.tool.called"), settled]) {
    assert.isTrue(countsOf(drafts, pick).every((count) => count === 1))
  }
  assert.strictEqual(
    countsOf(drafts, settled).length,
    countsOf(drafts, callOf("session.next.tool.input.started")).length,
    "each call that began has one end"
  )
  for (const kind of ["text", "reasoning"] as const) {
    const texts = drafts.flatMap((each) =>
      each.type === `session.next.${kind}.ended` ? [(each.data as { readonly text: string }).text] : []
    )
    assert.strictEqual(texts.join(""), textOf(parts, kind))
  }
  const tables = MemoryTables.make()
  for (const event of stored(drafts)) {
    const applied = tables.apply(project(event))
    assert.isTrue(Either.isRight(applied), JSON.stringify(Either.getLeft(applied)))
  }
}

it.prop(
  "TU-14: any interleaving in order gives well-formed events, each fragment and call ended once",
  [valid],
  ([parts]) => {
    const { drafts, faults } = recordAll(parts)
    assert.deepStrictEqual(faults, [])
    wellFormed(parts, drafts)
  }
)

it.prop(
  "TU-15: with one part moved, doubled or left out, the recorder gives a fault or well-formed events; it never throws",
  [valid, FastCheck.nat(), FastCheck.nat(), FastCheck.constantFrom("move", "double", "drop")],
  ([parts, from, to, how]) => {
    const at = from % Math.max(1, parts.length)
    const chosen = parts.slice(at, at + 1)
    const without = [...parts.slice(0, at), ...parts.slice(at + 1)]
    const base = how === "double" ? parts : without
    const there = to % (base.length + 1)
    const mutated = how === "drop" ? without : [...base.slice(0, there), ...chosen, ...base.slice(there)]
    const { drafts, faults } = recordAll(mutated)
    // What was recorded up to a fault is well-formed as well: only the texts' deltas stop there.
    const recorded = faults.length === 0 ? mutated : mutated.slice(0, longest(mutated))
    wellFormed(recorded, drafts)
  }
)

/** How many parts are recorded before the first fault. */
const longest = (parts: ReadonlyArray<Part>): number => {
  let state = fresh
  for (const [index, next] of parts.entries()) {
    const step = Recorder.record(state, next)
    if (Either.isLeft(step)) return index
    state = step.right.state
  }
  return parts.length
}

it.prop("TU-15: what no order allows is a fault", [valid], ([parts]) => {
  const starts = parts.findIndex(({ type }) => type === "text-start")
  const called = parts.find(({ type }) => type === "tool-call")
  const faultsOf = (...more: ReadonlyArray<Part>) =>
    recordAll([...parts.filter(({ type }) => type !== "finish"), ...more]).faults
  if (called !== undefined) assert.strictEqual(faultsOf(called).length, 1)
  if (starts >= 0) {
    const doubled = [...parts.slice(0, starts + 1), ...parts.slice(starts)]
    assert.strictEqual(recordAll(doubled).faults.length, 1)
  }
  assert.strictEqual(faultsOf(part({ type: "text-delta", id: "unknown", delta: "x" })).length, 1)
  assert.strictEqual(faultsOf(part({ type: "tool-params-end", id: "unknown" })).length, 1)
  assert.strictEqual(faultsOf(finish, part({ type: "text-start", id: "late" })).length, 1)
  assert.strictEqual(
    faultsOf(part({ type: "tool-call", id: "", name: "x", params: {}, providerExecuted: false })).length,
    1
  )
})

it.prop("TO-7: after an error part nothing is recorded", [valid, valid], ([before, after]) => {
  const error = part({ type: "error", error: "no" })
  const kept = before.filter(({ type }) => type !== "finish")
  assert.deepStrictEqual(recordAll([...kept, error, ...after]).drafts, recordAll(kept).drafts)
})

it("TU-12: a usage that is no count is not known, and never makes an event that cannot be stored", () => {
  const usage = { inputTokens: Number.NaN, outputTokens: -3, totalTokens: undefined, cachedInputTokens: Infinity }
  const { drafts } = recordAll([part({ type: "finish", reason: "stop", usage })])
  const [ended] = drafts
  assert.deepInclude(ended?.data, { tokens: { input: 0, output: 0, reasoning: 0, cache: { read: 0, write: 0 } } })
})

it("EX-B5: the input of a call counts once, whether it was streamed or came whole", () => {
  const own = { id: "c", name: "tool-c", providerExecuted: false }
  const whole = part({ type: "tool-call", ...own, params: { path: "a.md" } })
  const streamed = [
    part({ type: "tool-params-start", ...own }),
    part({ type: "tool-params-delta", id: "c", delta: '{"path":' }),
    part({ type: "tool-params-delta", id: "c", delta: '"a.md"}' }),
    part({ type: "tool-params-end", id: "c" }),
    whole
  ]
  for (const parts of [[whole], streamed]) {
    const { received } = parts.reduce((state, one) => Either.getOrThrow(Recorder.record(state, one)).state, fresh)
    assert.strictEqual(received.all, '{"path":"a.md"}'.length)
  }
})
