/** What reads, transactions and owners do when the database is away for a moment, or a connection breaks. */
import { assert, it } from "@effect/vitest"
import * as SqlClient from "@effect/sql/SqlClient"
import { Clock, Context, Duration, Effect, Fiber, Layer, Queue } from "effect"
import { describe } from "vitest"
import { SessionOwner } from "../../packages/log/src/coordination/SessionOwner.ts"
import * as SqlSessionOwner from "../../packages/log/src/coordination/SqlSessionOwner.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import { OutsideClock } from "../../packages/log/src/log/SqlEventLog.ts"
import { immediately, Patience, retryBusy, retryRepeatable } from "../../packages/log/src/storage/Transaction.ts"
import { SessionStore } from "../../packages/log/src/store/SessionStore.ts"
import * as Daybook from "../../packages/embedded/src/Daybook.ts"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import * as Postgres from "../../packages/postgres/src/Postgres.ts"
import { dataOf, tool } from "../runner/support/Runs.ts"
import { newSession, say } from "../support/Harness.ts"
import * as ScriptedModel from "../support/ScriptedModel.ts"
import { begin, session } from "../support/Logs.ts"
import { lacks } from "../support/Parts.ts"
import { addressOf, freshSchema, query } from "../support/Postgres.ts"
import * as LossyProxy from "./support/Proxy.ts"

const connecting = (settings: Postgres.Settings) => Layer.build(Postgres.layerConnections(settings))

/** A node behind a proxy, with a session. */
const behindProxyWith = (connectionsOf: typeof connecting) =>
  Effect.gen(function* () {
    const settings = yield* freshSchema
    const proxy = yield* LossyProxy.make(addressOf(settings))
    const connections = yield* connectionsOf({ ...settings, url: proxy.url })
    const context = yield* Layer.build(Layer.provideMerge(Postgres.layerSql(), Layer.succeedContext(connections)))
    const id = session()
    yield* Effect.provide(begin(id), context)
    const sql = Context.get(context, SqlClient.SqlClient)
    const rows = query(addressOf(settings), `SELECT count(*)::int AS count FROM ${settings.schema}.log_writer`)
    return { settings, proxy, context, id, sql, rows }
  })

const behindProxy = behindProxyWith(connecting)

/** The work of a transaction with two statements, the second of which loses its connection the first time. */
const twoStatements = (sql: SqlClient.SqlClient, proxy: LossyProxy.Proxy) => {
  const runs = { begun: 0 }
  const work = Effect.gen(function* () {
    runs.begun += 1
    yield* sql`INSERT INTO log_writer (writer, number) VALUES ('first', 1)`
    if (runs.begun === 1) proxy.lose("statement")
    yield* sql`INSERT INTO log_writer (writer, number) VALUES ('second', 1)`
  })
  return { runs, work }
}

const insert = (sql: SqlClient.SqlClient) =>
  immediately(sql)(sql`INSERT INTO log_writer (writer, number) VALUES ('once', 1) ON CONFLICT DO NOTHING`)

/** As many statements as a prompt with two turns sends, and more. */
const statements = 40

/** A clock on which each sleep is over at once, and has taken its time. */
const hurried = () => {
  const live = Clock.make()
  let slept = 0
  const clock: Clock.Clock = {
    ...live,
    [Clock.ClockTypeId]: Clock.ClockTypeId,
    unsafeCurrentTimeMillis: () => slept,
    unsafeCurrentTimeNanos: () => BigInt(Math.round(slept * 1e6)),
    currentTimeMillis: Effect.sync(() => slept),
    currentTimeNanos: Effect.sync(() => BigInt(Math.round(slept * 1e6))),
    sleep: (duration) => Effect.sync(() => void (slept += Duration.toMillis(duration)))
  }
  return { clock, slept: () => slept }
}

/** A node whose database is away from now on, a read that fails, and for how long it waited. */
const cutOff = Effect.gen(function* () {
  const { clock, slept } = hurried()
  const { context, id, proxy } = yield* behindProxyWith((settings) =>
    Effect.provideService(connecting(settings), OutsideClock, clock)
  )
  proxy.cut()
  return { proxy, read: Effect.flip(Context.get(context, EventLog).read({ sessionID: id })), slept }
})

describe.skipIf(lacks("postgres"))("PostgreSQL that is away", () => {
  it.scopedLive("PG-16: reads and transactions that find no connection wait for the database", () =>
    Effect.gen(function* () {
      const { context, id, proxy, rows, sql } = yield* behindProxy
      proxy.cut()
      const waiting = yield* Effect.fork(
        Effect.all(
          [
            Context.get(context, EventLog).read({ sessionID: id }),
            Context.get(context, SessionStore).get(id),
            Context.get(context, SessionStore).leaf(id),
            retryBusy(insert(sql))
          ],
          { concurrency: "unbounded" }
        )
      )
      yield* Queue.takeN(proxy.refused, 8)
      proxy.mend()
      const [page, { id: found }] = yield* Fiber.join(waiting)
      assert.deepStrictEqual([page.events.length, found], [1, id])
      assert.deepStrictEqual(yield* rows, [{ count: 2 }])
    })
  )

  it.scopedLive("PG-16: a read whose connection breaks is repeated", () =>
    Effect.gen(function* () {
      const { context, id, proxy } = yield* behindProxy
      proxy.lose("statement")
      const page = yield* Context.get(context, EventLog).read({ sessionID: id })
      assert.strictEqual(page.events.length, 1)
    })
  )

  it.scopedLive("PG-16: a transaction whose connection breaks before its commit is repeated as a whole", () =>
    Effect.gen(function* () {
      const { proxy, rows, sql } = yield* behindProxy
      const { runs, work } = twoStatements(sql, proxy)
      yield* retryBusy(immediately(sql)(work))
      assert.strictEqual(runs.begun, 2)
      assert.deepStrictEqual(yield* rows, [{ count: 3 }])
    })
  )

  it.scopedLive("PG-16: a statement of a transaction is not repeated alone", () =>
    Effect.gen(function* () {
      const { proxy, sql } = yield* behindProxy
      let sent = 0
      const statement = Effect.zipRight(
        Effect.sync(() => void (sent += 1)),
        sql`SELECT 1`
      )
      const lost = Effect.zipRight(
        Effect.sync(() => proxy.lose("statement")),
        retryBusy(statement)
      )
      yield* Effect.flip(immediately(sql)(lost))
      assert.strictEqual(sent, 1)
    })
  )

  for (const loss of ["answer", "commit"] as const) {
    it.scopedLive(`PG-16: a transaction that lost its ${loss} is repeated only if it may run twice`, () =>
      Effect.gen(function* () {
        const { proxy, rows, sql } = yield* behindProxy
        proxy.lose(loss)
        const error = yield* Effect.flip(retryBusy(insert(sql)))
        assert.deepInclude(error, { _tag: "SqlError" })
        assert.deepStrictEqual(yield* rows, [{ count: loss === "answer" ? 2 : 1 }])
        proxy.lose(loss)
        yield* retryRepeatable(insert(sql))
        assert.deepStrictEqual(yield* rows, [{ count: 2 }])
      })
    )
  }

  it.scopedLive("PG-16: all wait for the same ten seconds, and each that comes later tries once", () =>
    Effect.gen(function* () {
      const { proxy, read, slept } = yield* cutOff
      assert.deepInclude(yield* read, { _tag: "LogUnavailable", reason: "away" })
      assert.isAtLeast(slept(), 8_000)
      const before = slept()
      yield* Queue.takeAll(proxy.refused)
      assert.deepInclude(yield* read, { _tag: "LogUnavailable", reason: "away" })
      assert.strictEqual(slept(), before)
      // The connection that listens for commits tries too.
      assert.isBelow(yield* Queue.size(proxy.refused), 10)
    })
  )

  it.scopedLive("CU-56: a prompt is answered, whichever of its statements loses its connection", () =>
    Effect.gen(function* () {
      const settings = yield* freshSchema
      const proxy = yield* LossyProxy.make(addressOf(settings))
      const database = Postgres.config({ ...settings, url: proxy.url })
      const runtime = yield* Layer.build(Layer.provideMerge(Daybook.layer({ database }), ScriptedModel.layer()))
      yield* Effect.gen(function* () {
        const [model, sessions] = [yield* ScriptedModel.ScriptedModel, yield* Sessions]
        let ran = 0
        yield* tool("quick", () => Effect.sync(() => `done ${(ran += 1)}`))
        for (let after = 0; after < statements; after += 1) {
          const { id } = yield* newSession()
          yield* model.answer(ScriptedModel.calls(ScriptedModel.callParts(`c${after}`, "quick", {})))
          yield* model.answer(ScriptedModel.says("Done."))
          proxy.lose("statement", after)
          yield* say(id, "go")
          yield* sessions.wait(id)
          const settled = yield* dataOf(id, "session.next.activity.settled")
          assert.deepStrictEqual(
            settled.map(({ outcome, error }) => ({ after, outcome, error })),
            [{ after, outcome: "completed", error: undefined }]
          )
          assert.strictEqual(ran, after + 1, `runs of the tool, with statement ${after} lost`)
          assert.lengthOf(yield* dataOf(id, "session.next.step.started"), 2)
        }
      }).pipe(Effect.provide(runtime))
    })
  )

  it.scopedLive("PG-18: a request with less patience fails sooner, while others wait", () =>
    Effect.gen(function* () {
      const { read, slept } = yield* cutOff
      yield* Effect.provideService(read, Patience, Duration.seconds(2))
      assert.isBelow(slept(), 4_000)
      yield* read
      assert.isAtLeast(slept(), 8_000)
    })
  )

  it.scopedLive("PG-17: a claim whose answer is lost is the owner's, and knows of the hand-over before it", () =>
    Effect.gen(function* () {
      const { context, id, proxy } = yield* behindProxy
      const owner = Effect.map(
        Layer.build(Layer.provide(SqlSessionOwner.layer(), Layer.succeedContext(context))),
        Context.get(SessionOwner)
      )
      const [one, two] = [yield* owner, yield* owner]
      const { handOver, token } = yield* one.acquire(id)
      const next = { activityID: "act_1", turns: 1 }
      yield* handOver(next)
      proxy.lose("answer")
      const claimed = yield* two.acquire(id)
      assert.strictEqual(claimed.token.epoch, token.epoch + 1)
      assert.deepStrictEqual(claimed.handed, next)
    })
  )
})
