/** Consumers of logs that were pruned or changed outside Daybook, and failures of the database. */
import { SqlClient, SqlError } from "@effect/sql"
import { assert, it } from "@effect/vitest"
import { Effect, Layer, Schedule } from "effect"
import * as Consumer from "../../packages/log/src/consumer/Consumer.ts"
import type { SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import type { SessionEvent } from "../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import * as Store from "../../packages/log/src/Store.ts"
import { drain } from "../contracts/ConsumerContract.ts"
import { memoryLog } from "../support/Database.ts"
import { begin, renamed, session, storeAs, unique } from "../support/Logs.ts"

const store = Layer.provideMerge(Store.layerStore, memoryLog)

const prune = Effect.fnUntraced(function* (id: SessionID, floor: number) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`DELETE FROM event WHERE session = (SELECT session FROM event_sequence WHERE session_id = ${id}) AND seq <= ${floor}`
  yield* sql`UPDATE event_sequence SET floor = ${floor} WHERE session_id = ${id}`
})

const statusOf = (name: string) => Effect.flatMap(Consumer.ConsumerStore, (consumers) => consumers.get(name))

it.effect("CN-16: a failure of the database ends the consumer as it is, and is not the event's fault", () =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const id = session()
    yield* begin(id)
    const name = unique()
    const full = new SqlError.SqlError({ cause: Object.assign(new Error("full"), { code: "SQLITE_FULL" }) })
    const ended = yield* Effect.flip(
      drain(Consumer.runInTransaction({ name, sessionID: id, onPoison: "skip", apply: () => full }))
    )
    assert.deepInclude(ended, { _tag: "LogUnavailable", reason: "disk-full" })
    assert.deepInclude(yield* statusOf(name), { cursor: -1, skipped: 0, state: "idle" })
    yield* sql`CREATE TABLE derived (seq INTEGER UNIQUE)`
    const twice = sql`INSERT INTO derived VALUES (1), (1)`
    yield* drain(
      Consumer.runInTransaction({ name, sessionID: id, onPoison: "skip", retry: Schedule.stop, apply: () => twice })
    )
    assert.deepInclude(yield* statusOf(name), { cursor: 0, skipped: 1 })
  }).pipe(Effect.provide(store))
)

it.effect("CN-19: an append in a consumer's transaction is refused instead of waiting for itself", () =>
  Effect.gen(function* () {
    const log = yield* EventLog
    const id = session()
    yield* begin(id)
    const options = { name: unique(), sessionID: id, follow: false, retry: Schedule.stop }
    const append = log.append(id, [renamed("from the consumer")])
    const stopped = yield* Effect.flip(Consumer.runInTransaction({ ...options, apply: () => append }))
    assert.strictEqual(stopped._tag, "ConsumerStopped")
    assert.include(stopped.message, "wait for itself")
    yield* append
    assert.strictEqual(yield* log.latest(id), 1)
  }).pipe(Effect.provide(store))
)

it.layer(store)("consumers of pruned sessions", (it) => {
  it.effect("CN-12: after pruning, the snapshot replaces the state and the consumer continues at the floor", () =>
    Effect.gen(function* () {
      const id = session()
      yield* begin(id, 9)
      yield* prune(id, 5)
      const state: Array<number> = []
      const name = unique()
      yield* drain(
        Consumer.run({
          name,
          sessionID: id,
          apply: (events) => Effect.sync(() => void state.push(...events.map(({ seq }) => seq))),
          fromSnapshot: ({ floor }) => Effect.sync(() => void state.splice(0, state.length, -floor))
        })
      )
      assert.deepStrictEqual(state, [-5, 6, 7, 8, 9])
      assert.deepInclude(yield* statusOf(name), { cursor: 9, lag: 0 })
    })
  )

  it.effect("CN-12: in a transaction, a snapshot that fails leaves neither state nor cursor", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* sql`CREATE TABLE derived (floor INTEGER)`
      const id = session()
      yield* begin(id, 3)
      yield* prune(id, 2)
      const options = { name: unique(), sessionID: id, apply: () => Effect.void, retry: Schedule.recurs(0) }
      const write = ({ floor }: { readonly floor: number }) => sql`INSERT INTO derived VALUES (${floor})`
      const failing = Consumer.runInTransaction({
        ...options,
        onPoison: "skip",
        fromSnapshot: (error) => Effect.zipRight(write(error), Effect.fail(new Error("half")))
      })
      const stopped = yield* Effect.flip(drain(failing))
      assert.strictEqual(stopped._tag, "ConsumerStopped")
      assert.deepStrictEqual(yield* sql`SELECT * FROM derived`, [])
      assert.deepInclude(yield* statusOf(options.name), { cursor: -1, state: "stopped" })
      yield* drain(Consumer.runInTransaction({ ...options, fromSnapshot: write }))
      assert.deepStrictEqual(yield* sql`SELECT * FROM derived`, [{ floor: 2 }])
      assert.deepInclude(yield* statusOf(options.name), { cursor: 3, state: "idle" })
    })
  )

  it.effect("CN-12: a consumer without a snapshot ends with CursorExpired", () =>
    Effect.gen(function* () {
      const id = session()
      yield* begin(id, 3)
      yield* prune(id, 1)
      const ended = yield* Effect.flip(drain(Consumer.run({ name: unique(), sessionID: id, apply: () => Effect.void })))
      assert.deepInclude(ended, { _tag: "CursorExpired", cursor: -1, floor: 1 })
    })
  )

  it.effect("CN-17: an unreadable event stops the consumer, or is skipped with a record", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const id = session()
      yield* begin(id, 3)
      yield* sql`UPDATE event SET data = '{"title":"changed"}' WHERE session = (SELECT session FROM event_sequence WHERE session_id = ${id}) AND seq = 2`
      const seen: Array<number> = []
      const options = {
        sessionID: id,
        apply: (events: ReadonlyArray<SessionEvent>) =>
          Effect.sync(() => void seen.push(...events.map(({ seq }) => seq)))
      }
      const stopped = yield* Effect.flip(drain(Consumer.run({ ...options, name: unique() })))
      assert.deepInclude(stopped, { _tag: "ConsumerStopped" })
      const name = unique()
      yield* drain(Consumer.run({ ...options, name, onPoison: "skip" }))
      assert.deepStrictEqual(seen, [0, 1, 0, 1, 3])
      const [skipped] = yield* Consumer.skipped(name)
      assert.deepInclude(skipped, { cursor: 2, seq: 2, sessionID: id })
      assert.include(skipped?.details, "daybook doctor")
    })
  )

  it.effect("CN-4: an event of an unknown type moves the cursor without a call", () =>
    Effect.gen(function* () {
      const id = session()
      yield* begin(id, 2)
      yield* storeAs(id, 2, { type: "session.next.future.7" })
      const seen: Array<number> = []
      const apply = (events: ReadonlyArray<SessionEvent>) =>
        Effect.sync(() => void seen.push(...events.map(({ seq }) => seq)))
      const name = unique()
      yield* drain(Consumer.run({ name, sessionID: id, apply }))
      assert.deepStrictEqual(seen, [0, 1])
      assert.deepInclude(yield* statusOf(name), { cursor: 2, lag: 0 })
    })
  )
})
