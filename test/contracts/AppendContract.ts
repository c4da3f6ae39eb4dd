/** What an append promises (EV-1..EV-10, LG-1, LG-3). */
import { assert, it } from "@effect/vitest"
import { Effect, Exit, Logger, Queue, Stream, Struct } from "effect"
import { draft } from "../../packages/log/src/events/SessionEvents.ts"
import { EventLog, EventRefused } from "../../packages/log/src/log/EventLog.ts"
import type { LogStore } from "./LogStore.ts"
import { admitted, begin, created, message, readAll, renamed, session } from "./Samples.ts"

const unstorable = draft("session.next.step.ended", {
  assistantMessageID: message(),
  finish: "stop",
  cost: Number.NaN,
  tokens: { input: 1, output: 1, reasoning: 0, cache: { read: 0, write: 0 } }
})

/** Registers the tests of this contract for one kind of store. */
export const appendContract = <R, E>({ contents, layer, name }: LogStore<R, E>): void =>
  it.layer(layer)(`append, ${name}`, (it) => {
    it.effect("EV-2: an event that does not fit its schema, or JSON, stores nothing and names the field", () =>
      Effect.gen(function* () {
        const [log, id] = [yield* EventLog, session()]
        yield* begin(id)
        const before = yield* contents
        const unfit = yield* Effect.flip(log.append(id, [renamed("kept?"), unstorable]))
        assert.strictEqual(unfit._tag, "InvalidDurableEvent")
        assert.include(unfit.message, "cost")
        const circle: Record<string, unknown> = {}
        circle["self"] = circle
        const call = { assistantMessageID: message(), callID: "c", tool: "read", provider: { executed: false } }
        const cyclic = yield* Effect.flip(
          log.append(id, [draft("session.next.tool.called", { ...call, input: circle })])
        )
        assert.strictEqual(cyclic._tag, "InvalidDurableEvent")
        assert.deepStrictEqual(yield* contents, before)
      })
    )

    it.effect("LG-80: events have the times that the caller gives; a time that an id cannot hold stores nothing", () =>
      Effect.gen(function* () {
        const [log, id] = [yield* EventLog, session()]
        const stored = yield* log.append(id, [created, renamed("a"), renamed("b")], { times: [1000, 1000, 2000] })
        assert.deepStrictEqual(stored.map(Struct.get("created")), [1000, 1000, 2000])
        assert.deepStrictEqual(yield* readAll(id), stored)
        const before = yield* contents
        for (const times of [[1], [1, -1], [1, 1.5], [1, Number.NaN], [1, 2 ** 48]]) {
          const unfit = yield* Effect.flip(log.append(id, [renamed("c"), renamed("d")], { times }))
          assert.strictEqual(unfit._tag, "InvalidDurableEvent")
        }
        assert.deepStrictEqual(yield* contents, before)
      })
    )

    it.effect("EV-2: an event that its projections refuse stores nothing", () =>
      Effect.gen(function* () {
        const [log, id] = [yield* EventLog, session()]
        yield* begin(id)
        const before = yield* contents
        const orphan = draft("session.next.text.ended", { assistantMessageID: message(), textID: "t", text: "x" })
        assert.strictEqual((yield* Effect.flip(log.append(id, [renamed("kept?"), orphan])))._tag, "EventRefused")
        assert.strictEqual((yield* Effect.flip(log.append(session(), [renamed("no session")])))._tag, "EventRefused")
        assert.strictEqual((yield* Effect.flip(log.append(id, [created])))._tag, "EventRefused")
        const retried = draft("session.next.retried", { attempt: 1, error: { message: "m", isRetryable: true } })
        assert.strictEqual((yield* Effect.flip(log.append(session(), [retried])))._tag, "EventRefused")
        assert.deepStrictEqual(yield* contents, before)
      })
    )

    it.effect("EV-4: sequence numbers start at 0, grow by 1 per session, and are independent between sessions", () =>
      Effect.gen(function* () {
        const log = yield* EventLog
        const ids = Array.from({ length: 8 }, () => session())
        yield* Effect.forEach(ids, (id) => begin(id), { concurrency: "unbounded" })
        const turns = Array.from({ length: 200 }, (_, n) => ids[(n * 7) % 8] ?? session())
        yield* Effect.forEach(turns, (id, n) => log.append(id, [renamed(`${n}`)]), { concurrency: "unbounded" })
        for (const id of ids) {
          const events = yield* readAll(id)
          assert.deepStrictEqual(
            events.map(({ seq }) => seq),
            Array.from({ length: 26 }, (_, n) => n)
          )
          assert.deepStrictEqual(
            events.map(({ position }) => position),
            events.map(({ position }) => position).sort((a, b) => a - b)
          )
        }
      })
    )

    it.effect("EV-6: tails are woken, then listeners called, before the append returns and after the commit", () =>
      Effect.gen(function* () {
        const [log, id] = [yield* EventLog, session()]
        const heard: Array<number> = []
        yield* begin(id)
        yield* Effect.scoped(
          Effect.gen(function* () {
            const tail = yield* log.tailMarked({ sessionID: id, after: 0 }).pipe(Stream.toQueueOfElements())
            yield* Queue.take(tail)
            yield* log.listen((events) =>
              Effect.gen(function* () {
                const reader = yield* Effect.orDie(log.read({ sessionID: id, after: 0 }))
                heard.push(...events.map(({ seq }) => seq), reader.events.length)
              })
            )
            yield* log.append(id, [renamed("a")])
            assert.deepStrictEqual(heard, [1, 1])
            const woken = yield* Effect.flatten(Queue.take(tail))
            assert.strictEqual(woken.type, "session.next.renamed")
          })
        )
        yield* log.append(id, [renamed("b")])
        assert.deepStrictEqual(heard, [1, 1])
      }).pipe(Effect.scoped)
    )

    it.effect("EV-7: a listener's defect is logged and isolated; its interruption propagates; the events stay", () =>
      Effect.gen(function* () {
        const [log, id] = [yield* EventLog, session()]
        yield* begin(id)
        const heard: Array<string> = []
        const logged: Array<unknown> = []
        const logger = Logger.replace(
          Logger.defaultLogger,
          Logger.make(({ message }) => logged.push(message))
        )
        yield* Effect.scoped(
          Effect.gen(function* () {
            yield* log.listen(() => Effect.die("first is broken"))
            yield* log.listen(() => {
              throw new Error("second throws")
            })
            yield* log.listen((events) => Effect.sync(() => heard.push(...events.map(({ type }) => type))))
            yield* log.append(id, [renamed("a")])
          })
        ).pipe(Effect.provide(logger))
        assert.deepStrictEqual(heard, ["session.next.renamed"])
        assert.strictEqual(logged.length, 2)
        const interrupted = yield* Effect.scoped(
          Effect.zipRight(
            log.listen(() => Effect.interrupt),
            Effect.exit(log.append(id, [renamed("b")]))
          )
        )
        assert.isTrue(Exit.isInterrupted(interrupted))
        assert.strictEqual(yield* log.latest(id), 2)
      })
    )

    it.effect("EV-8: an append ignores who replays the session", () =>
      Effect.gen(function* () {
        const [log, id] = [yield* EventLog, session()]
        yield* begin(id)
        yield* log.claimReplay(id, "importer")
        yield* log.append(id, [renamed("local")])
        assert.strictEqual(yield* log.latest(id), 1)
      })
    )

    it.effect("EV-10: a position is not used again, even when the newest session was removed", () =>
      Effect.gen(function* () {
        const [log, id] = [yield* EventLog, session()]
        const [first] = yield* begin(id)
        yield* log.remove(id)
        const [second] = yield* begin(id)
        assert.isAbove(second.position, first.position)
      })
    )

    it.effect("LG-3: an append on an old sequence number is refused, alone or beside others, and stores nothing", () =>
      Effect.gen(function* () {
        const [log, id] = [yield* EventLog, session()]
        yield* begin(id)
        const append = (title: string) => Effect.exit(log.append(id, [renamed(title)], { expectedSeq: 0 }))
        const outcomes = yield* Effect.all([append("a"), append("b"), append("c")], { concurrency: "unbounded" })
        assert.deepStrictEqual(outcomes.map(Exit.isSuccess), [true, false, false])
        const refused = yield* Effect.flip(log.append(id, [renamed("d")], { expectedSeq: 0 }))
        assert.deepInclude(refused, { _tag: "SeqConflict", sessionID: id, expected: 0, actual: 1 })
        assert.strictEqual((yield* readAll(id)).length, 2)
      })
    )

    it.effect("CR-2: of ten appends that create one session, one succeeds and nine learn where it stands", () =>
      Effect.gen(function* () {
        const [log, id] = [yield* EventLog, session()]
        const create = Effect.either(log.append(id, [created], { expectedSeq: -1 }))
        const outcomes = yield* Effect.all(
          Array.from({ length: 10 }, () => create),
          { concurrency: "unbounded" }
        )
        assert.strictEqual(outcomes.filter(({ _tag }) => _tag === "Right").length, 1)
        for (const outcome of outcomes) {
          if (outcome._tag === "Left") assert.deepInclude(outcome.left, { _tag: "SeqConflict", actual: 0 })
        }
        assert.strictEqual((yield* readAll(id)).length, 1)
      })
    )

    it.effect("IN-6: a message may not take the id of an admitted prompt, nor a prompt that of a message", () =>
      Effect.gen(function* () {
        const [log, id, input, synthetic] = [yield* EventLog, session(), message(), message()]
        const note = (messageID: typeof input) => draft("session.next.synthetic", { messageID, text: "note" })
        yield* begin(id)
        yield* log.append(id, [admitted(input), note(synthetic)])
        const before = yield* contents
        const elsewhere = session()
        yield* begin(elsewhere)
        const refusals = [
          log.append(id, [note(input)]),
          log.append(elsewhere, [note(input)]),
          log.append(id, [admitted(synthetic)]),
          log.append(elsewhere, [admitted(synthetic)]),
          log.append(id, [admitted(input)]),
          log.append(id, [note(synthetic)])
        ]
        for (const refusal of refusals) assert.instanceOf(yield* Effect.flip(refusal), EventRefused)
        yield* log.remove(elsewhere)
        assert.deepStrictEqual(yield* contents, before)
      })
    )

    it.effect(
      "LG-31, LG-1: what an append returns is what a reader gets, whatever the caller's objects hold or become",
      () =>
        Effect.gen(function* () {
          const [log, id, assistant] = [yield* EventLog, session(), message()]
          const input: Record<string, unknown> = { when: new Date(0), gone: undefined, list: [undefined, Number.NaN] }
          const provider = { executed: false }
          const stored = yield* log.append(id, [
            created,
            draft("session.next.tool.input.started", { callID: "c", name: "read", assistantMessageID: assistant }),
            draft("session.next.tool.called", {
              provider,
              input,
              tool: "read",
              callID: "c",
              assistantMessageID: assistant
            })
          ])
          input["later"] = "changed"
          assert.deepStrictEqual(yield* readAll(id), stored)
        })
    )
  })
