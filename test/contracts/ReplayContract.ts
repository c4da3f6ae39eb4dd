/** Taking events over from another log (RP-1..RP-6). */
import { assert, it } from "@effect/vitest"
import { Effect, Stream, TestClock } from "effect"
import { EventID, SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { EventLog, type ForeignEvent } from "../../packages/log/src/log/EventLog.ts"
import type { LogStore } from "./LogStore.ts"
import { admitted, begin, created, foreign, message, readAll, renamed, session } from "./Samples.ts"

/** A log of four events, taken out of the store again. */
const exported = Effect.fnUntraced(function* (id: SessionID) {
  const log = yield* EventLog
  yield* log.append(id, [created, renamed("a"), admitted(message(), "later", "queue"), renamed("b")])
  const events = yield* foreign(id)
  yield* log.remove(id)
  return { events }
})

const changed = (events: ReadonlyArray<ForeignEvent>, at: number, change: Partial<ForeignEvent>) =>
  events.map((event, index) => (index === at ? { ...event, ...change } : event))

/** Registers the tests of this contract for one kind of store. */
export const replayContract = <R, E>({ contents, layer, name }: LogStore<R, E>): void =>
  it.layer(layer)(`replay, ${name}`, (it) => {
    it.effect("RP-1: replaying what is there already changes nothing, whatever the order of keys", () =>
      Effect.gen(function* () {
        const [log, id] = [yield* EventLog, session()]
        const { events } = yield* exported(id)
        yield* log.replay(events)
        const before = yield* contents
        yield* log.replay(events)
        const reversed = changed(events, 2, {
          data: Object.fromEntries(Object.entries(events[2]?.data ?? {}).toReversed())
        })
        yield* log.replay(reversed.slice(1, 3))
        assert.deepStrictEqual(yield* contents, before)
      })
    )

    it.effect("RP-1: another id, type or payload at a stored place is a divergence and changes nothing", () =>
      Effect.gen(function* () {
        const [log, id] = [yield* EventLog, session()]
        const { events } = yield* exported(id)
        yield* log.replay(events.slice(0, 3))
        const before = yield* contents
        const divergences = [
          changed(events, 1, { id: EventID.make("evt_other") }),
          changed(events, 1, { type: "session.next.interrupt.requested.1", data: {} }),
          changed(events, 1, { data: { title: "another" } })
        ]
        for (const divergent of divergences) {
          const refused = yield* Effect.flip(log.replay(divergent))
          assert.deepInclude(refused, { _tag: "ReplayRefused", reason: "divergence", seq: 1 })
        }
        assert.deepStrictEqual(yield* contents, before)
      })
    )

    it.effect("RP-2: events of two sessions in one replay are refused", () =>
      Effect.gen(function* () {
        const log = yield* EventLog
        const [one, two] = [session(), session()]
        const { events: first } = yield* exported(one)
        const { events: second } = yield* exported(two)
        const refused = yield* Effect.flip(log.replay([...first, ...second]))
        assert.deepInclude(refused, { _tag: "ReplayRefused", reason: "mixed-sessions", seq: 0 })
        assert.strictEqual(yield* log.latest(one), -1)
      })
    )

    it.effect("RP-3: an event id that another session holds is refused, and nothing is stored", () =>
      Effect.gen(function* () {
        const [log, id, other] = [yield* EventLog, session(), session()]
        const { events } = yield* exported(id)
        const [holder] = yield* begin(other)
        const refused = yield* Effect.flip(log.replay(changed(events, 3, { id: holder.id })))
        assert.deepInclude(refused, { _tag: "ReplayRefused", reason: "event-id-taken", seq: 3 })
        assert.strictEqual(yield* log.latest(id), -1)
      })
    )

    it.effect("RP-3: an event id used twice within one replay is refused, and nothing is stored", () =>
      Effect.gen(function* () {
        const [log, id] = [yield* EventLog, session()]
        const { events } = yield* exported(id)
        const twice = changed(events, 3, { id: events[1]?.id ?? EventID.make("evt_none") })
        const refused = yield* Effect.flip(log.replay(twice))
        assert.deepInclude(refused, { _tag: "ReplayRefused", reason: "event-id-taken", seq: 3 })
        assert.strictEqual(yield* log.latest(id), -1)
      })
    )

    it.effect("RP-3: a payload that names another session than its envelope is refused", () =>
      Effect.gen(function* () {
        const [log, id] = [yield* EventLog, session()]
        const { events } = yield* exported(id)
        const data = { title: "a", sessionID: "ses_elsewhere" }
        const refused = yield* Effect.flip(log.replay(changed(events, 1, { data })))
        assert.deepInclude(refused, { _tag: "ReplayRefused", reason: "session-mismatch", seq: 1 })
        assert.strictEqual(yield* log.latest(id), -1)
      })
    )

    it.effect("EV-5: an event without a proper session id, or without any envelope, is an InvalidDurableEvent", () =>
      Effect.gen(function* () {
        const log = yield* EventLog
        const { events } = yield* exported(session())
        const before = yield* contents
        const broken: ReadonlyArray<unknown> = [
          { ...events[0], sessionID: undefined },
          { ...events[0], sessionID: 7 },
          { ...events[0], sessionID: "ses_a/b" },
          { ...events[0], seq: -1 },
          { ...events[0], data: "text" },
          null
        ]
        for (const event of broken) {
          // What arrives from a file or a network is not what the type says.
          const refused = yield* Effect.flip(log.replay([event as ForeignEvent]))
          assert.strictEqual(refused._tag, "InvalidDurableEvent")
        }
        const payload = yield* Effect.flip(log.replay(changed(events, 1, { data: { title: 7 } })))
        assert.strictEqual(payload._tag, "InvalidDurableEvent")
        assert.deepStrictEqual(yield* contents, before)
      })
    )

    it.effect("RP-4: a type that this build does not know is refused on replay", () =>
      Effect.gen(function* () {
        const [log, id] = [yield* EventLog, session()]
        const { events } = yield* exported(id)
        const refused = yield* Effect.flip(log.replay(changed(events, 1, { type: "session.next.renamed.99" })))
        assert.deepInclude(refused, { _tag: "ReplayRefused", reason: "unknown-type", seq: 1 })
        assert.strictEqual(yield* log.latest(id), -1)
      })
    )

    it.effect("RP-5: tails of the session are woken by a replay only when it is asked for", () =>
      Effect.gen(function* () {
        const [log, id] = [yield* EventLog, session()]
        const { events } = yield* exported(id)
        yield* log.replay(events.slice(0, 1))
        const tail = yield* log.tailMarked({ sessionID: id, after: 0 }).pipe(Stream.toQueueOfElements())
        yield* Effect.flatten(tail.take)
        yield* log.replay(events.slice(1, 2))
        // Every other fiber has settled: the tail waits.
        yield* TestClock.adjust("1 millis")
        assert.strictEqual(yield* tail.size, 0)
        yield* log.replay(events.slice(2), { notify: true })
        const seen = yield* Effect.all([tail.take, tail.take, tail.take].map(Effect.flatten))
        assert.deepStrictEqual(
          seen.map((item) => (item.type === "replay.complete" ? -1 : item.seq)),
          [1, 2, 3]
        )
      }).pipe(Effect.scoped)
    )

    it.effect("RP-6: a claimed session without events is still no session", () =>
      Effect.gen(function* () {
        const [log, id] = [yield* EventLog, session()]
        yield* log.claimReplay(id, "one")
        assert.strictEqual(yield* log.latest(id), -1)
        assert.strictEqual((yield* Effect.flip(log.read({ sessionID: id })))._tag, "SessionNotFound")
        assert.strictEqual((yield* Effect.flip(Stream.runHead(log.tail({ sessionID: id }))))._tag, "SessionNotFound")
        yield* log.append(id, [created], { expectedSeq: -1 })
        assert.strictEqual((yield* readAll(id)).length, 1)
      })
    )
  })
