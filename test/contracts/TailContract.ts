/** Replay and following (TL-1..TL-10). Order is held by queues and gates, never by time. */
import { assert, it } from "@effect/vitest"
import { Chunk, Deferred, Effect, Exit, Fiber, Option, Queue, Scope, Stream, TestClock } from "effect"
import { draft, type LiveEvent, type SessionEvent } from "../../packages/log/src/events/SessionEvents.ts"
import { EventLog, type LiveRelay, type ReadError, type ReplayComplete } from "../../packages/log/src/log/EventLog.ts"
import type { LogStore } from "./LogStore.ts"
import { begin, created, message, readAll, renamed, session } from "./Samples.ts"

export type Item = SessionEvent | ReplayComplete

export type Following = Queue.Dequeue<Exit.Exit<Item, Option.Option<ReadError>>>

export const take = (tail: Following): Effect.Effect<Item, Option.Option<ReadError>> => Effect.flatten(Queue.take(tail))

/** Follows until the marker; gives what came before it. */
const untilMarker = Effect.fnUntraced(function* (tail: Following) {
  const seqs: Array<number> = []
  for (;;) {
    const item = yield* take(tail)
    if (item.type === "replay.complete") return { seqs, cursor: item.cursor }
    seqs.push(item.seq)
  }
})

/** A tail whose items arrive one by one in a queue that holds back when it is full. */
export const following = (
  options: { readonly sessionID: SessionEvent["sessionID"]; readonly after?: number },
  capacity = 4096
): Effect.Effect<Following, never, EventLog | Scope.Scope> =>
  Effect.flatMap(EventLog, (log) => log.tailMarked(options).pipe(Stream.toQueueOfElements({ capacity })))

export const takeSeqs = (tail: Following, count: number) =>
  Effect.replicateEffect(
    Effect.map(take(tail), (item) => (item.type === "replay.complete" ? -1 : item.seq)),
    count
  )

/** Every other fiber waits for something. */
export const settled = TestClock.adjust("1 millis")

const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, n) => from + n)

/** Registers the tests of this contract for one kind of store. */
export const tailContract = <R, E>({ layer, name }: LogStore<R, E>): void =>
  it.layer(layer)(`tails, ${name}`, (it) => {
    it.scoped("TL-1: a tail replays what is after its cursor, then follows, without gap or repetition", () =>
      Effect.gen(function* () {
        const [log, id] = [yield* EventLog, session()]
        yield* begin(id, 700)
        const tail = yield* following({ sessionID: id, after: 9 })
        assert.deepStrictEqual(yield* untilMarker(tail), { seqs: range(10, 700), cursor: 700 })
        for (let n = 0; n < 5; n++) yield* log.append(id, [renamed("more")])
        assert.deepStrictEqual(yield* takeSeqs(tail, 5), range(701, 705))
      })
    )

    it.scoped("TL-4: a commit before the first read, and one while a read is held back, arrive exactly once", () =>
      Effect.gen(function* () {
        const [log, id] = [yield* EventLog, session()]
        yield* begin(id, 600)
        // Room for one item: the tail stands still in its first page.
        const tail = yield* following({ sessionID: id }, 1)
        assert.deepStrictEqual(yield* takeSeqs(tail, 1), [0])
        for (let n = 0; n < 30; n++) yield* log.append(id, [renamed("during replay")])
        const seen = yield* takeSeqs(tail, 631)
        assert.deepStrictEqual(
          seen.filter((seq) => seq >= 0),
          range(1, 630)
        )
        assert.strictEqual(seen.filter((seq) => seq < 0).length, 1)
      })
    )

    it.scoped("TL-4: 64 rapid commits arrive at a slow tail complete, in order, once", () =>
      Effect.gen(function* () {
        const [log, id] = [yield* EventLog, session()]
        yield* begin(id)
        const tail = yield* following({ sessionID: id, after: 0 }, 1)
        yield* untilMarker(tail)
        yield* Effect.all(
          range(1, 64).map((n) => log.append(id, [renamed(`${n}`)])),
          { concurrency: "unbounded" }
        )
        assert.deepStrictEqual(yield* takeSeqs(tail, 64), range(1, 64))
        yield* log.append(id, [renamed("last")])
        assert.deepStrictEqual(yield* takeSeqs(tail, 1), [65])
      })
    )

    it.scoped("TL-5: live events reach live subscribers only; a tail sees durable events and nothing else", () =>
      Effect.gen(function* () {
        const [log, id, assistantMessageID] = [yield* EventLog, session(), message()]
        yield* begin(id)
        const tail = yield* following({ sessionID: id, after: 0 })
        yield* untilMarker(tail)
        const live = yield* log.live({ sessionID: id }).pipe(Stream.toQueueOfElements())
        yield* settled
        const delta: LiveEvent = {
          type: "session.next.text.delta",
          sessionID: id,
          data: { assistantMessageID, textID: "t", delta: "x" }
        }
        yield* log.publishLive(delta)
        yield* log.publishLive({ ...delta, sessionID: session() })
        yield* log.append(id, [renamed("durable")])
        yield* log.publishLive({ ...delta, data: { ...delta.data, delta: "y" } })
        assert.deepStrictEqual(yield* takeSeqs(tail, 1), [1])
        const deltas = yield* Effect.replicateEffect(Effect.flatten(Queue.take(live)), 2)
        assert.deepStrictEqual(
          deltas.map((event) => event.type === "session.next.text.delta" && event.data.delta),
          ["x", "y"]
        )
        assert.strictEqual(yield* log.latest(id), 1)
        assert.strictEqual((yield* readAll(id)).length, 2)
      })
    )

    it.scoped("TL-5: who subscribed hears what is published from then on, before it listens as well", () =>
      Effect.gen(function* () {
        const [log, id, assistantMessageID] = [yield* EventLog, session(), message()]
        const delta = (text: string): LiveEvent => ({
          type: "session.next.text.delta",
          sessionID: id,
          data: { assistantMessageID, textID: "t", delta: text }
        })
        yield* log.publishLive(delta("missed"))
        const { live, soFar } = yield* log.subscribe({ sessionID: id })
        yield* log.publishLive(delta("heard"))
        assert.deepStrictEqual([...(yield* Stream.runCollect(Stream.take(live, 1)))], [delta("heard")])
        // No text is under way: nothing started in the log.
        assert.isEmpty(soFar)
      })
    )

    it.scoped("CU-5: while a relay is there, each subscriber that begins hears its session's live events", () =>
      Effect.gen(function* () {
        const [log, id, assistantMessageID] = [yield* EventLog, session(), message()]
        const relaying = yield* Scope.make()
        const relay: LiveRelay = (sessionID, tell) =>
          Effect.sync(() =>
            tell({
              type: "session.next.text.delta",
              sessionID,
              data: { assistantMessageID, textID: "t", delta: "elsewhere" }
            })
          )
        yield* Scope.extend(log.relayLive(relay), relaying)
        const heard = yield* Stream.runHead(log.live({ sessionID: id }))
        assert.deepStrictEqual(
          Option.map(heard, ({ data, sessionID }) => [sessionID, "delta" in data && data.delta]),
          Option.some([id, "elsewhere"])
        )
        yield* Scope.close(relaying, Exit.void)
        const { live } = yield* log.subscribe({ sessionID: id })
        const own: LiveEvent = {
          type: "session.next.text.delta",
          sessionID: id,
          data: { assistantMessageID, textID: "t", delta: "here" }
        }
        yield* Effect.yieldNow()
        yield* log.publishLive(own)
        assert.deepStrictEqual([...(yield* Stream.runCollect(Stream.take(live, 1)))], [own])
      })
    )

    it.scoped("LG-29: who subscribes in the middle of a text is given its deltas so far, and each later one once", () =>
      Effect.gen(function* () {
        const [log, id, other, assistantMessageID] = [yield* EventLog, session(), session(), message()]
        for (const each of [id, other]) yield* begin(each)
        const say = (text: string, textID = "t") =>
          log.publishLive({
            type: "session.next.text.delta",
            sessionID: id,
            data: { assistantMessageID, textID, delta: text }
          })
        const soFar = (of = id) => Effect.scoped(Effect.map(log.subscribe({ sessionID: of }), ({ soFar }) => soFar))
        const model = { providerID: "scripted", id: "one" }
        yield* log.append(id, [draft("session.next.step.started", { assistantMessageID, agent: "build", model })])
        yield* log.append(id, [draft("session.next.text.started", { assistantMessageID, textID: "t" })])
        yield* say("stray", "unknown")
        const text = { type: "text" as const, assistantMessageID }
        assert.deepStrictEqual(yield* soFar(), [{ ...text, id: "t", said: "" }])
        yield* say("He")
        yield* say("l")
        const { live, soFar: given } = yield* log.subscribe({ sessionID: id })
        const heard: Array<unknown> = []
        const hearing = yield* Scope.make()
        const hear = log.hear(id, (before) => {
          heard.push(before)
          return ({ data }) => heard.push(data)
        })
        yield* Scope.extend(hear, hearing)
        yield* say("lo")
        yield* Scope.close(hearing, Exit.void)
        assert.deepStrictEqual(heard, [given, { assistantMessageID, textID: "t", delta: "lo" }])
        assert.deepStrictEqual(given, [{ ...text, id: "t", said: "Hel" }])
        const [next] = [...(yield* Stream.runCollect(Stream.take(live, 1)))]
        assert.deepInclude(next?.data, { delta: "lo" })
        assert.isEmpty(yield* soFar(other))
        yield* log.append(id, [draft("session.next.text.ended", { assistantMessageID, textID: "t", text: "Hello" })])
        yield* say("late")
        assert.lengthOf(heard, 2)
        assert.isEmpty(yield* soFar())
        yield* log.append(id, [draft("session.next.text.started", { assistantMessageID, textID: "u" })])
        yield* say("x".repeat(1_048_576), "u")
        assert.strictEqual((yield* soFar())[0]?.said?.length, 1_048_576)
        yield* say("y", "u")
        assert.deepStrictEqual(yield* soFar(), [{ ...text, id: "u", said: undefined }])
        yield* log.remove(id)
        assert.isEmpty(yield* soFar())
      })
    )

    it.scoped(
      "LG-90: who follows gets what is stored, the seam, and the deltas of a text between its start and its end",
      () =>
        Effect.gen(function* () {
          const [log, id, assistantMessageID] = [yield* EventLog, session(), message()]
          yield* begin(id)
          const say = (textID: string, delta: string) =>
            log.publishLive({
              type: "session.next.text.delta",
              sessionID: id,
              data: { assistantMessageID, textID, delta }
            })
          const store = (type: "started" | "ended", textID: string) =>
            log.append(id, [
              type === "started"
                ? draft("session.next.text.started", { assistantMessageID, textID })
                : draft("session.next.text.ended", { assistantMessageID, textID, text: "Hello" })
            ])
          yield* log.append(id, [
            draft("session.next.step.started", {
              assistantMessageID,
              agent: "build",
              model: { providerID: "scripted", id: "one" }
            })
          ])
          yield* store("started", "t")
          yield* say("t", "He")
          const items = yield* Stream.toQueueOfElements(log.follow({ sessionID: id, after: 1 }))
          const next = Effect.map(Effect.flatten(Queue.take(items)), (item) => {
            if (item.type === "replay.complete") return item.cursor
            return item.type === "session.next.text.delta" ? item.data.delta : item.type.split(".").at(-1)
          })
          assert.deepStrictEqual(yield* Effect.replicateEffect(next, 3), ["started", 2, "He"])
          yield* say("t", "llo")
          assert.strictEqual(yield* next, "llo")
          // The text has not started in the log.
          yield* say("u", "early")
          yield* store("ended", "t")
          assert.strictEqual(yield* next, "ended")
          yield* say("t", "late")
          yield* store("started", "u")
          assert.deepStrictEqual(yield* Effect.replicateEffect(next, 2), ["started", "early"])
          yield* log.remove(id)
          assert.strictEqual((yield* Effect.flip(next)).pipe(Option.getOrThrow)._tag, "SessionNotFound")
        })
    )

    it.effect("TL-6: reading or following an unknown session fails with SessionNotFound", () =>
      Effect.gen(function* () {
        const [log, id] = [yield* EventLog, session()]
        const failures = [
          yield* Effect.flip(log.read({ sessionID: id })),
          yield* Effect.flip(Stream.runDrain(log.tail({ sessionID: id })))
        ]
        for (const failure of failures) assert.deepInclude(failure, { _tag: "SessionNotFound", sessionID: id })
      })
    )

    it.scoped("TL-6: a tail ends with SessionNotFound when its session is removed; tails of other sessions go on", () =>
      Effect.gen(function* () {
        const [log, id, other] = [yield* EventLog, session(), session()]
        yield* begin(id)
        yield* begin(other)
        const [tail, otherTail] = [yield* following({ sessionID: id }), yield* following({ sessionID: other })]
        yield* untilMarker(tail)
        yield* untilMarker(otherTail)
        yield* log.remove(id)
        const ended = yield* Effect.flip(take(tail))
        assert.strictEqual(Option.getOrThrow(ended)._tag, "SessionNotFound")
        yield* log.append(other, [renamed("on")])
        assert.deepStrictEqual(yield* takeSeqs(otherTail, 1), [1])
      })
    )

    it.scoped("TL-6: a tail of a session that was removed and made again ends, however long the new one is", () =>
      Effect.gen(function* () {
        const [log, id] = [yield* EventLog, session()]
        yield* begin(id, 5)
        // It stands still in its first page while the session changes under it.
        const tail = yield* following({ sessionID: id }, 1)
        assert.deepStrictEqual(yield* takeSeqs(tail, 1), [0])
        yield* log.remove(id)
        yield* begin(id, 20)
        assert.deepStrictEqual(yield* takeSeqs(tail, 6), [1, 2, 3, 4, 5, -1])
        const ended = yield* Effect.flip(take(tail))
        assert.strictEqual(Option.getOrThrow(ended)._tag, "SessionNotFound")
        const again = yield* following({ sessionID: id })
        assert.deepStrictEqual(yield* untilMarker(again), { seqs: range(0, 20), cursor: 20 })
      })
    )

    it.effect("TL-7: read up to any N, come back with after = N: the two parts are the whole", () =>
      Effect.gen(function* () {
        const [log, id] = [yield* EventLog, session()]
        yield* begin(id, 40)
        const whole = yield* readAll(id)
        for (const n of range(0, 40)) {
          const first = yield* Stream.runCollect(Stream.take(log.tail({ sessionID: id }), n))
          const cursor = Option.match(Chunk.last(first), { onNone: () => -1, onSome: ({ seq }) => seq })
          const rest = yield* Stream.runCollect(Stream.take(log.tail({ sessionID: id, after: cursor }), 41 - n))
          assert.deepStrictEqual([...first, ...rest], whole)
        }
      })
    )

    it.scoped("TL-9: the marker comes once, also after a burst of more than a page", () =>
      Effect.gen(function* () {
        const [log, id] = [yield* EventLog, session()]
        yield* begin(id, 2)
        const tail = yield* following({ sessionID: id })
        assert.deepStrictEqual(yield* untilMarker(tail), { seqs: [0, 1, 2], cursor: 2 })
        const [first, ...rest] = range(3, 1600).map((n) => renamed(`${n}`))
        yield* log.append(id, [first ?? created, ...rest])
        assert.deepStrictEqual(yield* takeSeqs(tail, 1598), range(3, 1600))
        yield* log.append(id, [renamed("last")])
        assert.deepStrictEqual(yield* takeSeqs(tail, 1), [1601])
      })
    )

    it.scoped("TL-10: a live subscriber that falls behind its bound is ended, the others go on", () =>
      Effect.gen(function* () {
        const [log, id, assistantMessageID] = [yield* EventLog, session(), message()]
        const gate = yield* Deferred.make<void>()
        const subscribed = yield* Queue.unbounded<void>()
        const follow = (capacity: number, wait: Effect.Effect<void>) =>
          Effect.forkScoped(
            log.live({ sessionID: id, capacity }).pipe(
              Stream.mapEffect((event) => Effect.as(wait, event)),
              Stream.onStart(Queue.offer(subscribed, undefined)),
              Stream.take(10),
              Stream.runCount
            )
          )
        const slow = yield* follow(4, Deferred.await(gate))
        const quick = yield* follow(64, Effect.void)
        yield* Effect.replicateEffect(Queue.take(subscribed), 2)
        yield* settled
        for (const n of range(1, 10)) {
          yield* log.publishLive({
            type: "session.next.text.delta",
            sessionID: id,
            data: { assistantMessageID, textID: "t", delta: `${n}` }
          })
        }
        assert.strictEqual(yield* Fiber.join(quick), 10)
        yield* Deferred.succeed(gate, undefined)
        const ended = yield* Effect.flip(Fiber.join(slow))
        assert.deepInclude(ended, { _tag: "SubscriberOverflow", capacity: 4 })
      })
    )

    it.scoped("TL-10: a tail that stands still holds back nobody: appends and other tails go on", () =>
      Effect.gen(function* () {
        const [log, id] = [yield* EventLog, session()]
        yield* begin(id)
        const still = yield* following({ sessionID: id }, 1)
        const quick = yield* following({ sessionID: id, after: 0 })
        yield* untilMarker(quick)
        for (let n = 0; n < 2000; n += 100) {
          const [first, ...rest] = range(1, 100).map(() => renamed("x"))
          yield* log.append(id, [first ?? created, ...rest])
        }
        assert.deepStrictEqual(yield* takeSeqs(quick, 2000), range(1, 2000))
        const seen = yield* takeSeqs(still, 2002)
        assert.deepStrictEqual(
          seen.filter((seq) => seq >= 0),
          range(0, 2000)
        )
      })
    )

    it.scoped("LG-11: the feed gives all sessions' events in one order after a position, then follows", () =>
      Effect.gen(function* () {
        const [log, one, two] = [yield* EventLog, session(), session()]
        const [first] = yield* begin(one)
        const feed = yield* log.feed({ after: first.position - 1 }).pipe(Stream.toQueueOfElements())
        yield* begin(two)
        yield* log.append(one, [renamed("a")])
        yield* log.append(two, [renamed("b")])
        const seen = yield* Effect.replicateEffect(Effect.flatten(Queue.take(feed)), 4)
        assert.deepStrictEqual(
          seen.map(({ seq, sessionID }) => [sessionID, seq]),
          [
            [one, 0],
            [two, 0],
            [one, 1],
            [two, 1]
          ]
        )
        const positions = seen.map(({ position }) => position)
        assert.deepStrictEqual(positions, range(first.position, first.position + 3))
        const ahead = yield* Effect.flip(Stream.runHead(log.feed({ after: first.position + 1000 })))
        assert.strictEqual(ahead._tag, "CursorAhead")
      })
    )

    it.effect("LG-7: a page is bounded, says where to go on, and whether anything follows", () =>
      Effect.gen(function* () {
        const [log, id] = [yield* EventLog, session()]
        yield* begin(id, 600)
        const bounded = yield* log.read({ sessionID: id, limit: 100_000 })
        assert.deepInclude(bounded, { cursor: 511, hasMore: true })
        assert.strictEqual(bounded.events.length, 512)
        assert.deepInclude(yield* log.read({ sessionID: id, after: 511 }), { cursor: 600, hasMore: false })
        assert.deepInclude(yield* log.read({ sessionID: id, after: 590, limit: 10 }), { cursor: 600, hasMore: false })
        const { incarnation } = yield* log.head(id)
        assert.deepEqual(yield* log.read({ sessionID: id, after: 600 }), {
          events: [],
          cursor: 600,
          incarnation,
          hasMore: false
        })
        for (const [limit, rows] of [
          [0, 1],
          [-5, 1],
          [2.9, 2],
          [Infinity, 512],
          [Number.NaN, 512]
        ] as const) {
          assert.strictEqual((yield* log.read({ sessionID: id, limit })).events.length, rows)
        }
      })
    )
  })
