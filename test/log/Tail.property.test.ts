/**
 * Method: two logs on one file, as two processes would have them, each with a tail. Random commands append through
 * either, one by one or at once, and stop a tail and start it again at its cursor. However they fall, each tail must end
 * with the whole log, once, in order. Waiting is for events only.
 */
import { assert, it } from "@effect/vitest"
import { Context, Deferred, Effect, FastCheck as fc, Fiber, Layer, type Scope, Stream } from "effect"
import type { SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { EventLog, type ReadError } from "../../packages/log/src/log/EventLog.ts"
import { cases } from "../support/Cases.ts"
import { logAt, temporaryDatabase } from "../support/Database.ts"
import { begin, readAll, renamed, session } from "../support/Logs.ts"

type Log = Context.Tag.Service<typeof EventLog>

const command = fc.oneof(
  fc.record({ do: fc.constant("append" as const), log: fc.nat(1), events: fc.integer({ min: 1, max: 4 }) }),
  fc.record({ do: fc.constant("both" as const), times: fc.integer({ min: 1, max: 4 }) }),
  fc.record({ do: fc.constant("restart" as const), log: fc.nat(1) }),
  fc.record({ do: fc.constant("yield" as const) }),
  fc.record({ do: fc.constant("burst" as const), log: fc.nat(1) })
)

type Command = typeof command extends fc.Arbitrary<infer A> ? A : never

/** A tail that keeps what it saw, and can be stopped and started again at its cursor. */
const makeFollower = (log: Log, sessionID: SessionID) => {
  const seen: Array<number> = []
  const follow = (until: number): Effect.Effect<void, ReadError> =>
    (seen.at(-1) ?? -1) >= until
      ? Effect.void
      : log.tail({ sessionID, after: seen.at(-1) ?? -1 }).pipe(
          Stream.tap(({ seq }) => Effect.sync(() => seen.push(seq))),
          Stream.takeUntil(({ seq }) => seq >= until),
          Stream.runDrain
        )
  let fiber: Fiber.RuntimeFiber<void, ReadError> | undefined
  const stop = Effect.suspend(() => (fiber === undefined ? Effect.void : Fiber.interrupt(fiber)))
  const start: Effect.Effect<void, never, Scope.Scope> = Effect.map(
    Effect.forkScoped(Effect.suspend(() => follow(Infinity))),
    (started) => {
      fiber = started
    }
  )
  return { seen, follow, stop, restart: Effect.zipRight(stop, start) }
}

const title = (n: number) => renamed(`${n}`)

it.scopedLive("TL-4: whoever appends, and wherever tails stop and start, each sees every event once, in order", () =>
  Effect.gen(function* () {
    const filename = yield* temporaryDatabase
    const first = Context.get(yield* Layer.build(logAt(filename)), EventLog)
    const second = Context.get(yield* Layer.build(logAt(filename)), EventLog)
    const logs = [first, second] as const
    const run = Effect.fnUntraced(function* (commands: ReadonlyArray<Command>) {
      const id = session()
      yield* Effect.provideService(begin(id), EventLog, first)
      const followers = logs.map((log) => makeFollower(log, id))
      yield* Effect.forEach(followers, ({ restart }) => restart)
      for (const [n, next] of commands.entries()) {
        switch (next.do) {
          case "append":
            yield* (logs[next.log] ?? first).append(id, [
              title(n),
              ...Array.from({ length: next.events - 1 }, () => title(n))
            ])
            break
          case "burst":
            yield* (logs[next.log] ?? first).append(id, [title(n), ...Array.from({ length: 700 }, () => title(n))])
            break
          case "both":
            yield* Effect.forEach(
              Array.from({ length: next.times }).flatMap(() => logs),
              (log) => log.append(id, [title(n)]),
              { concurrency: "unbounded" }
            )
            break
          case "restart":
            yield* followers[next.log]?.restart ?? Effect.void
            break
          case "yield":
            yield* Effect.yieldNow()
        }
      }
      const whole = yield* Effect.provideService(readAll(id), EventLog, second)
      const expected = whole.map(({ seq }) => seq)
      for (const follower of followers) {
        // Stopped wherever it is, and finished from there.
        yield* follower.stop
        yield* follower.follow(expected.length - 1)
        assert.deepStrictEqual(follower.seen, expected)
      }
    }, Effect.scoped)
    const property = fc.asyncProperty(fc.array(command, { minLength: 5, maxLength: 25 }), (commands) =>
      Effect.runPromise(run(commands))
    )
    yield* Effect.promise(() => fc.assert(property, { numRuns: cases(10) }))
  })
)

it.scopedLive("TL-8: a tail that is never stopped gets to the end by wakes alone, whoever committed last", () =>
  Effect.gen(function* () {
    const filename = yield* temporaryDatabase
    const first = Context.get(yield* Layer.build(logAt(filename)), EventLog)
    const second = Context.get(yield* Layer.build(logAt(filename)), EventLog)
    const run = Effect.fnUntraced(function* (turns: ReadonlyArray<boolean>) {
      const id = session()
      yield* Effect.provideService(begin(id), EventLog, first)
      const follower = makeFollower(first, id)
      const following = yield* Effect.fork(follower.follow(turns.length))
      for (const [n, ours] of turns.entries()) yield* (ours ? first : second).append(id, [title(n)])
      yield* Fiber.join(following)
      assert.deepStrictEqual(
        follower.seen,
        Array.from({ length: turns.length + 1 }, (_, n) => n)
      )
    })
    const property = fc.asyncProperty(fc.array(fc.boolean(), { minLength: 1, maxLength: 20 }), (turns) =>
      Effect.runPromise(run(turns))
    )
    yield* Effect.promise(() => fc.assert(property, { numRuns: cases(10) }))
  })
)

it.scopedLive("TL-6: a tail ends when another process removes its session and makes it again", () =>
  Effect.gen(function* () {
    const filename = yield* temporaryDatabase
    const first = Context.get(yield* Layer.build(logAt(filename)), EventLog)
    const second = Context.get(yield* Layer.build(logAt(filename)), EventLog)
    const id = session()
    yield* Effect.provideService(begin(id, 5), EventLog, first)
    const [reached, gate] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
    const seen: Array<number> = []
    const following = yield* first.tail({ sessionID: id }).pipe(
      Stream.runForEach(({ seq }) => {
        seen.push(seq)
        return seq === 5 ? Effect.zipRight(Deferred.succeed(reached, undefined), Deferred.await(gate)) : Effect.void
      }),
      Effect.flip,
      Effect.fork
    )
    yield* Deferred.await(reached)
    yield* second.remove(id)
    yield* Effect.provideService(begin(id, 20), EventLog, second)
    yield* Deferred.succeed(gate, undefined)
    assert.strictEqual((yield* Fiber.join(following))._tag, "SessionNotFound")
    assert.deepStrictEqual(seen, [0, 1, 2, 3, 4, 5])
  })
)
