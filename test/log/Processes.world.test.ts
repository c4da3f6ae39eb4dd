/** Two real processes on one file. What is waited for is a message or an event, never a time. */
import { assert, describe, it } from "@effect/vitest"
import { Chunk, Effect, Queue, type Scope, Stream } from "effect"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import { type Child, childProgram, startChild } from "../support/Child.ts"
import { logAt, temporaryDatabase } from "../support/Database.ts"
import { begin, readAll, renamed, session } from "../support/Logs.ts"
import { startsTogether } from "../support/Starts.ts"

const expectStored = Effect.fnUntraced(function* (child: Child, seq: number) {
  assert.deepStrictEqual(yield* child.answer, { is: "stored", seq })
})

/** A session that has begun in a log of this process; `start` opens the same file in another one. */
const beside = <A, E>(
  use: (
    start: ReturnType<typeof startChild>,
    id: ReturnType<typeof session>,
    log: EventLog["Type"]
  ) => Effect.Effect<A, E, EventLog | Scope.Scope>
) =>
  Effect.gen(function* () {
    const [program, filename, id] = [yield* childProgram(), yield* temporaryDatabase, session()]
    yield* Effect.gen(function* () {
      yield* begin(id)
      yield* use(startChild(program.outfile, filename), id, yield* EventLog)
    }).pipe(Effect.provide(logAt(filename)))
  })

// They wait for processes and locks, each on a file of its own.
describe.concurrent("two processes", () => {
  it.scopedLive("TL-8: a tail notices what another process commits, between its own commits too", () =>
    beside((start, id, log) =>
      Effect.gen(function* () {
        const tail = yield* log.tail({ sessionID: id }).pipe(Stream.toQueueOfElements())
        const next = Effect.map(Effect.flatten(Queue.take(tail)), ({ seq }) => seq)
        assert.strictEqual(yield* next, 0)
        const child = yield* start
        const titles = ["one", "two", "three"]
        yield* child.tell({ do: "append", sessionID: id, titles })
        assert.deepStrictEqual(yield* Effect.all([next, next, next]), [1, 2, 3])
        for (const seq of [1, 2, 3]) yield* expectStored(child, seq)
        yield* log.append(id, [renamed("ours")])
        yield* child.tell({ do: "append", sessionID: id, titles })
        assert.deepStrictEqual(yield* Effect.all([next, next, next, next]), [4, 5, 6, 7])
      })
    )
  )

  it.scopedLive("LG-12: appends of two processes to one session interleave without gap or loss", () =>
    beside((start, id, log) =>
      Effect.gen(function* () {
        const child = yield* start
        yield* child.tell({ do: "open" })
        assert.deepStrictEqual(yield* child.answer, { is: "opened" })
        const titles = Array.from({ length: 100 }, (_, n) => `theirs ${n}`)
        yield* child.tell({ do: "append", sessionID: id, titles })
        const ours = yield* Effect.forEach(titles, (_, n) => log.append(id, [renamed(`ours ${n}`)]))
        const theirs = yield* Effect.replicateEffect(child.answer, titles.length)
        const events = yield* readAll(id)
        assert.deepStrictEqual(
          events.map(({ seq }) => seq),
          Array.from({ length: 201 }, (_, n) => n)
        )
        const acknowledged = [
          ...ours.map(([{ seq }]) => seq),
          ...theirs.map((answer) => (answer.is === "stored" ? answer.seq : -1))
        ]
        assert.strictEqual(new Set(acknowledged).size, 200)
        assert.isFalse(acknowledged.includes(-1))
      })
    )
  )

  it.scopedLive("TL-7: a follower killed at any point and started again at its cursor sees the rest, once", () =>
    beside((start, id, log) =>
      Effect.gen(function* () {
        const writing = Effect.forEach(Array.from({ length: 59 }), (_, n) => log.append(id, [renamed(`${n}`)]))
        yield* Effect.forkScoped(writing)
        const seen: Array<string> = []
        let cursor = -1
        // Killed after so many events, while the log grows.
        for (const stop of [3, 17, 31, 45, 59]) {
          yield* Effect.scoped(
            Effect.gen(function* () {
              const child = yield* start
              yield* child.tell({ do: "follow", sessionID: id, after: cursor })
              while (cursor < Math.min(59, stop)) {
                const answer = yield* child.answer
                if (answer.is !== "event") return yield* Effect.dieMessage(JSON.stringify(answer))
                seen.push(answer.id)
                cursor = answer.seq
              }
              yield* child.kill
            })
          )
        }
        assert.deepStrictEqual(
          seen,
          (yield* readAll(id)).map((event) => String(event.id))
        )
        const whole = yield* log.tail({ sessionID: id }).pipe(Stream.take(60), Stream.runCollect)
        assert.deepStrictEqual(
          Chunk.toReadonlyArray(whole).map((event) => String(event.id)),
          seen
        )
      })
    )
  )

  it.scopedLive("EV-11: an append waits for a lock that another process holds, and goes through when it is free", () =>
    beside((start, id, log) =>
      Effect.gen(function* () {
        const child = yield* start
        yield* child.tell({ do: "hold" })
        assert.deepStrictEqual(yield* child.answer, { is: "held" })
        const appending = yield* Effect.fork(log.append(id, [renamed("waits")]))
        const reading = yield* log.read({ sessionID: id })
        assert.strictEqual(reading.cursor, 0)
        yield* child.tell({ do: "release" })
        const [event] = yield* appending
        assert.strictEqual(event.seq, 1)
      })
    )
  )

  it.scopedLive(
    "EV-11: a lock held beyond patience is a typed busy error for everybody who waits, and stores nothing",
    () =>
      beside((start, id, log) =>
        Effect.gen(function* () {
          const child = yield* start
          yield* child.tell({ do: "hold" })
          assert.deepStrictEqual(yield* child.answer, { is: "held" })
          const append = Effect.flip(log.append(id, [renamed("waits")]))
          const failures = yield* Effect.all([append, append, append], { concurrency: "unbounded" })
          for (const failure of failures) assert.deepInclude(failure, { _tag: "LogUnavailable", reason: "busy" })
          yield* child.tell({ do: "release" })
          assert.deepStrictEqual(yield* child.answer, { is: "released" })
          yield* log.append(id, [renamed("now")])
          assert.strictEqual(yield* log.latest(id), 1)
        })
      )
  )

  it.scopedLive("ST-6: processes that open a new file at once all open it, again and again", () => startsTogether(4, 5))
})
