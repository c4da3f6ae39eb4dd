/**
 * Method: random commands append to a few sessions, remove them and create them again; between them two consumers of the
 * feed run, one in transactions and one outside the database, and crash at a random call, before or after its effect, or
 * fail once. In the end both states must equal the log: every event of every living session, once, in order.
 */
import type { SqlClient } from "@effect/sql"
import { assert, it } from "@effect/vitest"
import { Effect, FastCheck as fc, Layer, Runtime, Schedule } from "effect"
import * as Consumer from "../../packages/log/src/consumer/Consumer.ts"
import type { SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import type { SessionEvent } from "../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import * as Store from "../../packages/log/src/Store.ts"
import { cases } from "../support/Cases.ts"
import { memoryLog } from "../support/Database.ts"
import { derive, derived, derivedTable, forget } from "../support/Derived.ts"
import { created, readAll, renamed, session, unique } from "../support/Logs.ts"

const store = Layer.provideMerge(derivedTable, Layer.provideMerge(Store.layerStore, memoryLog))

const command = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant("append" as const), of: fc.nat(2), count: fc.integer({ min: 1, max: 4 }) })
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("remove" as const), of: fc.nat(2) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant("run" as const),
      batchSize: fc.integer({ min: 1, max: 5 }),
      /** The call at which the consumer crashes or fails. */
      at: fc.nat(6),
      fault: fc.constantFrom("crash before", "crash after", "fail after", "none")
    })
  }
)
type Command = typeof command extends fc.Arbitrary<infer A> ? A : never
type Run = Extract<Command, { readonly do: "run" }>

/** Breaks one of the calls. */
const breaking = ({ at, fault }: Run) => {
  let calls = 0
  return <E, R>(effect: Effect.Effect<unknown, E, R>): Effect.Effect<unknown, E | string, R> =>
    Effect.suspend(() => {
      if (calls++ !== at || fault === "none") return effect
      if (fault === "crash before") return Effect.interrupt
      return Effect.zipRight(effect, fault === "crash after" ? Effect.interrupt : Effect.fail("once"))
    })
}

/** State outside the database, keyed by session. Positions are the idempotency keys. */
const makeOutside = () => {
  const state = new Map<SessionID, Array<number>>()
  const applied = new Set<number>()
  return {
    state,
    apply: (events: ReadonlyArray<SessionEvent>) =>
      Effect.sync(() => {
        for (const { position, seq, sessionID } of events) {
          if (applied.has(position)) continue
          assert.isTrue(
            [...applied].every((other) => other < position),
            "an event came after a later one"
          )
          applied.add(position)
          state.set(sessionID, [...(state.get(sessionID) ?? []), seq])
        }
      }),
    onRemoved: (sessionID: SessionID) => Effect.sync(() => state.delete(sessionID))
  }
}

const calm: Run = { do: "run", batchSize: 5, at: 0, fault: "none" }

it.live(
  "CN-2, CN-3, CN-5: after any interleaving of appends, removals, crashes and repetitions, states equal the log",
  () =>
    Effect.gen(function* () {
      const log = yield* EventLog
      const follow = (name: string, outside: ReturnType<typeof makeOutside>) =>
        Effect.fnUntraced(function* (command: Run) {
          const options = {
            start: "end",
            follow: false,
            batchSize: command.batchSize,
            retry: Schedule.recurs(1)
          } as const
          const [one, two] = [breaking(command), breaking(command)]
          const inside = Consumer.runInTransaction({
            ...options,
            name: `${name}-inside`,
            apply: (events) => one(Effect.forEach(events, ({ seq, sessionID }) => derive(sessionID, seq))),
            onRemoved: (sessionID) => one(forget(sessionID))
          })
          const beside = Consumer.run({
            ...options,
            name: `${name}-outside`,
            apply: (events) => two(outside.apply(events)),
            onRemoved: (sessionID) => two(outside.onRemoved(sessionID))
          })
          for (const consumer of [inside, beside]) {
            // A crash is an interruption here; anything else is a fault of the consumer.
            const exit = yield* Effect.exit(consumer)
            if (command.fault === "none" || command.fault === "fail after") yield* exit
          }
        })

      const run = Effect.fnUntraced(function* (commands: ReadonlyArray<Command>) {
        const ids = [session(), session(), session()] as const
        const outside = makeOutside()
        const consume = follow(unique(), outside)
        const living = new Set<SessionID>()
        yield* consume(calm)
        for (const command of commands) {
          if (command.do === "run") {
            yield* consume(command)
            continue
          }
          const id = ids[command.of] ?? ids[0]
          if (command.do === "remove") {
            yield* log.remove(id)
            living.delete(id)
          } else {
            const titles = Array.from({ length: command.count }, (_, n) => renamed(`${n}`))
            yield* living.has(id) ? log.append(id, [renamed("more"), ...titles]) : log.append(id, [created, ...titles])
            living.add(id)
          }
        }
        yield* consume(calm)
        for (const id of ids) {
          const stored = living.has(id) ? (yield* readAll(id)).map(({ seq }) => seq) : []
          assert.deepStrictEqual(yield* derived(id), stored)
          assert.deepStrictEqual(outside.state.get(id) ?? [], stored)
        }
      })

      const runtime = yield* Effect.runtime<EventLog | Consumer.ConsumerStore | SqlClient.SqlClient>()
      const property = fc.asyncProperty(fc.array(command, { minLength: 5, maxLength: 30 }), (commands) =>
        Runtime.runPromise(runtime)(run(commands))
      )
      yield* Effect.promise(() => fc.assert(property, { numRuns: cases(16) }))
    }).pipe(Effect.provide(store))
)
