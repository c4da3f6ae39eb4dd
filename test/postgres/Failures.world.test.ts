/** What the log on PostgreSQL does when connections break, the server is away, and nodes start together. */
import { assert, it } from "@effect/vitest"
import { Clock, Context, Effect, Fiber, Layer, Queue, Redacted, Stream } from "effect"
import { describe } from "vitest"
import { SessionStore } from "../../packages/log/src/store/SessionStore.ts"
import { changesOf } from "../../packages/log/src/log/Appends.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import { OutsideClock } from "../../packages/log/src/log/SqlEventLog.ts"
import { line } from "../../packages/postgres/src/Connections.ts"
import { insertAt, makeTypes } from "../../packages/postgres/src/Events.ts"
import * as Postgres from "../../packages/postgres/src/Postgres.ts"
import { writes } from "../../packages/postgres/src/Tables.ts"
import { begin, foreign, readAll, renamed, session } from "../support/Logs.ts"
import { lacks } from "../support/Parts.ts"
import { addressOf, freshSchema, query } from "../support/Postgres.ts"
import { turn } from "../support/TurnLogs.ts"
import * as LossyProxy from "./support/Proxy.ts"

const node = (settings: Postgres.Settings) => Layer.build(Postgres.layer(settings))

/** A node behind a proxy. */
const behindProxy = Effect.gen(function* () {
  const settings = yield* freshSchema
  const proxy = yield* LossyProxy.make(addressOf(settings))
  const context = yield* node({ ...settings, url: proxy.url })
  return { settings, proxy, context, log: Context.get(context, EventLog) }
})

const titles = (context: Context.Context<EventLog>, id: ReturnType<typeof session>) =>
  Effect.map(Effect.provide(readAll(id), context), (events) =>
    events.flatMap(({ data }) => ("title" in data && typeof data.title === "string" ? [data.title] : []))
  )

describe.skipIf(lacks("postgres"))("PostgreSQL", () => {
  for (const [loss, what] of [
    ["answer", "took place"],
    ["commit", "did not take place"],
    ["late", "reached the server late"]
  ] as const) {
    for (const [trips, before] of [
      ["three round trips", []],
      ["one round trip", ["a", "b"]]
    ] as const) {
      it.scopedLive(`PG-7: an append of ${trips} whose commit ${what}, and was not answered, is stored once`, () =>
        Effect.gen(function* () {
          const { context, log, proxy } = yield* behindProxy
          const id = session()
          yield* Effect.provide(begin(id), context)
          for (const title of before) yield* log.append(id, [renamed(title)])
          proxy.lose(loss)
          const [stored] = yield* log.append(id, [renamed("lost")])
          yield* log.append(id, [renamed("next")])
          assert.strictEqual(stored.seq, before.length + 1)
          assert.deepStrictEqual(yield* titles(context, id), [...before, "lost", "next"])
        })
      )
    }
  }

  for (const loss of ["answer", "commit"] as const) {
    it.scopedLive(
      `PG-7: an append whose ${loss} is lost, and then the answer to what became of it, is stored once`,
      () =>
        Effect.gen(function* () {
          const { context, log, proxy } = yield* behindProxy
          const id = session()
          yield* Effect.provide(begin(id), context)
          proxy.lose(loss)
          proxy.loseOutcome()
          const [stored] = yield* log.append(id, [renamed("lost")])
          const [next] = yield* log.append(id, [renamed("next")])
          assert.deepStrictEqual([stored.seq, next.seq], [1, 2])
          assert.deepStrictEqual(yield* titles(context, id), ["lost", "next"])
        })
    )
  }

  it.scopedLive(
    "PG-7: a server that lost the number of a node's last commit, as in a failover, stores what the node appends",
    () =>
      Effect.gen(function* () {
        const settings = yield* freshSchema
        const context = yield* node(settings)
        const [log, id] = [Context.get(context, EventLog), session()]
        yield* Effect.provide(begin(id), context)
        for (const title of ["a", "b"]) yield* log.append(id, [renamed(title)])
        yield* query(addressOf(settings), `UPDATE ${settings.schema}.log_writer SET number = number - 2`)
        for (const title of ["c", "d"]) yield* log.append(id, [renamed(title)])
        assert.deepStrictEqual(yield* titles(context, id), [..."abcd"])
      })
  )

  it.scopedLive("PG-8: appends wait for a database that comes back, and each is stored once", () =>
    Effect.gen(function* () {
      const { context, log, proxy } = yield* behindProxy
      const id = session()
      yield* Effect.provide(begin(id), context)
      proxy.cut()
      const waiting = yield* Effect.fork(
        Effect.forEach(["a", "b", "c"], (title) => log.append(id, [renamed(title)]), { concurrency: "unbounded" })
      )
      yield* Queue.takeN(proxy.refused, 2)
      proxy.mend()
      yield* Fiber.join(waiting)
      assert.deepStrictEqual((yield* titles(context, id)).toSorted(), ["a", "b", "c"])
    })
  )

  it.scopedLive(
    "PG-14, PG-9: a tail goes on when the database comes back, with what another node stored meanwhile",
    () =>
      Effect.gen(function* () {
        const { log, proxy, settings } = yield* behindProxy
        const other = yield* node(settings)
        const id = session()
        yield* Effect.provide(begin(id), other)
        const seen = yield* Queue.unbounded<number>()
        yield* Effect.forkScoped(Stream.runForEach(log.tail({ sessionID: id }), ({ seq }) => Queue.offer(seen, seq)))
        assert.strictEqual(yield* Queue.take(seen), 0)
        proxy.cut()
        yield* Context.get(other, EventLog).append(id, [renamed("a"), renamed("b")])
        proxy.mend()
        assert.deepStrictEqual([yield* Queue.take(seen), yield* Queue.take(seen)], [1, 2])
        yield* Context.get(other, EventLog).append(id, [renamed("c")])
        assert.strictEqual(yield* Queue.take(seen), 3)
      })
  )

  it.scopedLive("PG-9: a notice wakes a tail on another node, which looks for itself no second time", () =>
    Effect.gen(function* () {
      const settings = yield* freshSchema
      const writer = yield* node(settings)
      const live = Clock.make()
      const stopped = new Proxy(live, {
        get: (target, property) => (property === "sleep" ? () => Effect.never : Reflect.get(target, property))
      })
      const reader = yield* Effect.provideService(node(settings), OutsideClock, stopped)
      const id = session()
      yield* Effect.provide(begin(id), writer)
      const seen = yield* Queue.unbounded<number>()
      const tail = Context.get(reader, EventLog).tail({ sessionID: id })
      yield* Effect.forkScoped(Stream.runForEach(tail, ({ seq }) => Queue.offer(seen, seq)))
      assert.strictEqual(yield* Queue.take(seen), 0)
      for (const seq of [1, 2, 3]) {
        yield* Context.get(writer, EventLog).append(id, [renamed(`${seq}`)])
        assert.strictEqual(yield* Queue.take(seen), seq)
      }
    })
  )

  it.scopedLive("PG-9: a tail finds what another node stored without a notice", () =>
    Effect.gen(function* () {
      const settings = yield* freshSchema
      const [writer, reader] = [yield* node(settings), yield* node(settings)]
      const [source, id] = [yield* node(yield* freshSchema), session()]
      yield* Effect.provide(begin(id, 1), source)
      const events = yield* Effect.provide(foreign(id), source)
      yield* Context.get(writer, EventLog).replay(events.slice(0, 1))
      const seen = yield* Queue.unbounded<number>()
      const tail = Context.get(reader, EventLog).tail({ sessionID: id })
      yield* Effect.forkScoped(Stream.runForEach(tail, ({ seq }) => Queue.offer(seen, seq)))
      assert.strictEqual(yield* Queue.take(seen), 0)
      yield* Context.get(writer, EventLog).replay(events.slice(1))
      assert.strictEqual(yield* Queue.take(seen), 1)
    })
  )

  it.scopedLive("PG-4: an append after the node's own takes one round trip, and after another node's stays true", () =>
    Effect.gen(function* () {
      const { context, log, proxy, settings } = yield* behindProxy
      const other = Context.get(yield* node(settings), EventLog)
      const id = session()
      yield* Effect.provide(begin(id), context)
      yield* log.append(id, [renamed("a")])
      yield* log.append(id, [renamed("b")])
      yield* log.append(id, [renamed("c")])
      assert.strictEqual(proxy.trips.at(-1), 1)

      yield* other.append(id, [renamed("d")])
      const stale = yield* Effect.flip(log.append(id, [renamed("refused")], { expectedSeq: 3 }))
      assert.deepInclude(stale, { _tag: "SeqConflict", actual: 4 })
      const [next] = yield* log.append(id, [renamed("e")])
      assert.deepInclude(next, { seq: 5, position: 6 })
      yield* log.append(id, [renamed("f")])
      yield* log.append(id, [renamed("g")])
      assert.strictEqual(proxy.trips.at(-1), 1)

      yield* query(addressOf(settings), `SET search_path = ${settings.schema}; SELECT next_session()`)
      const [stored] = yield* log.append(id, [renamed("x")])
      assert.deepInclude(stored, { seq: 8, position: 9 })

      const owner = { ownerID: "owner", epoch: 1 }
      const claim = (epoch: number) =>
        query(
          addressOf(settings),
          `UPDATE ${settings.schema}.event_sequence SET owner_id = 'owner', owner_epoch = ${epoch}`
        )
      yield* claim(1)
      yield* log.append(id, [renamed("h")], { owner })
      yield* log.append(id, [renamed("i")], { owner })
      assert.strictEqual(proxy.trips.at(-1), 1)
      yield* claim(2)
      assert.deepInclude(yield* Effect.flip(log.append(id, [renamed("late")], { owner })), { _tag: "OwnerLost" })
      assert.deepStrictEqual(yield* titles(context, id), [..."abcdefgxhi"])
    })
  )

  it.scopedLive("PG-26: an append finds rows by their keys in tables without statistics", () =>
    Effect.gen(function* () {
      const settings = yield* freshSchema
      const context = yield* node(settings)
      const { begin: send } = yield* line({
        url: Redacted.make(addressOf(settings)),
        schema: settings.schema ?? "",
        connections: 1
      })
      const id = session()
      yield* Effect.provide(begin(id), context)
      for (const event of turn(1, { prompt: "go on", answer: "done", outputs: ["long"] }))
        yield* Context.get(context, EventLog).append(id, [event])
      const events = yield* Effect.provide(readAll(id), context)
      const head = { session: 1, session_id: id, seq: 0, incarnation: 1, owner_id: null, owner_epoch: 0 }
      const numbers = { position: 1, session: 1 }
      const mark = { writer: "writer", before: 0, number: 2 }
      const statements = [
        insertAt(makeTypes(), new Map([[id, head]]), { before: numbers, numbers, heads: [head], rows: [] }, mark, {
          text: "",
          values: ["", ""]
        }),
        ...events.flatMap((event) => writes(changesOf([event]), new Map([[id, 1]])))
      ]
      const explained = statements.map(({ text, values = [] }) => ({ text: `EXPLAIN ${text}`, values }))
      const plans = yield* Effect.promise(() => send(explained))
      const said = plans.map(({ rows }) => JSON.stringify(rows))
      assert.isAbove(said.length, 8)
      assert.deepStrictEqual(
        said.filter((plan) => /Seq Scan|Bitmap|_unsettled|_waiting/.test(plan)),
        []
      )
    })
  )

  it.scopedLive("PG-25: a transaction whose connection ended continues on no other one", () =>
    Effect.gen(function* () {
      const { context, log, proxy, settings } = yield* behindProxy
      const other = Context.get(yield* node(settings), EventLog)
      const id = session()
      yield* Effect.provide(begin(id), context)
      proxy.endBegun(() => Effect.runPromise(other.append(id, [renamed("a"), renamed("b")])))
      const [stored] = yield* log.append(id, [renamed("c")])
      assert.deepInclude(stored, { seq: 3, position: 4 })
      assert.deepStrictEqual(yield* titles(context, id), ["a", "b", "c"])
      const [last] = yield* other.append(id, [renamed("d")])
      assert.strictEqual(last.seq, 4)
    })
  )

  it.scopedLive("PG-3: positions of two nodes have no gaps", () =>
    Effect.gen(function* () {
      const settings = yield* freshSchema
      const nodes = [yield* node(settings), yield* node(settings)]
      const appends = nodes.flatMap((context) =>
        Array.from({ length: 40 }, () => Effect.provide(begin(session(), 2), context))
      )
      const stored = yield* Effect.all(appends, { concurrency: "unbounded" })
      const positions = stored.flat().map(({ position }) => position)
      assert.deepStrictEqual(
        positions.toSorted((a, b) => a - b),
        Array.from({ length: 240 }, (_, index) => index + 1)
      )
    })
  )

  it.scopedLive("PG-10: nodes that start at once make one schema", () =>
    Effect.gen(function* () {
      const settings = yield* freshSchema
      const nodes = yield* Effect.all(
        Array.from({ length: 5 }, () => node(settings)),
        { concurrency: "unbounded" }
      )
      const identities = new Set(nodes.map((context) => Context.get(context, EventLog).identity))
      assert.strictEqual(identities.size, 1)
    })
  )

  it.scopedLive("PG-10: the schema of a newer Daybook is refused, and a name that is none", () =>
    Effect.gen(function* () {
      const settings = yield* freshSchema
      yield* Effect.scoped(node(settings))
      yield* query(
        addressOf(settings),
        `INSERT INTO ${settings.schema}.migration (migration_id, name) VALUES (99, 'later')`
      )
      const newer = yield* Effect.flip(Effect.scoped(node(settings)))
      assert.deepInclude(newer, { _tag: "DatabaseError", reason: "newer-version" })
      for (const wrong of [
        { ...settings, schema: "a; drop" },
        { ...settings, url: "nowhere" }
      ]) {
        const refused = yield* Effect.flip(Effect.scoped(node(wrong)))
        assert.deepInclude(refused, { _tag: "DatabaseError", reason: "cannot-open" })
      }
    })
  )

  it.scopedLive("PG-10: a schema may have the name of a word of SQL", () =>
    Effect.gen(function* () {
      const settings = { ...(yield* freshSchema), schema: "order" }
      const remove = query(addressOf(settings), 'DROP SCHEMA IF EXISTS "order" CASCADE')
      yield* Effect.acquireRelease(remove, () => remove)
      yield* Effect.scoped(node(settings))
      const [found] = yield* query(addressOf(settings), 'SELECT position FROM "order".log_head')
      assert.isDefined(found)
    })
  )

  it.scopedLive("PG-10: a role that may use a schema, and make none, works there", () =>
    Effect.gen(function* () {
      const settings = yield* freshSchema
      const role = `role_${settings.schema}`
      const url = new URL(addressOf(settings))
      const administer = (...texts: ReadonlyArray<string>) => query(addressOf(settings), ...texts)
      yield* Effect.acquireRelease(
        administer(`CREATE ROLE ${role} LOGIN`, `CREATE SCHEMA ${settings.schema} AUTHORIZATION ${role}`),
        () => administer(`DROP OWNED BY ${role} CASCADE`, `DROP ROLE ${role}`)
      )
      url.username = role
      const limited = { ...settings, url: url.href }
      yield* Effect.scoped(node(limited))
      yield* administer(
        `ALTER SCHEMA ${settings.schema} OWNER TO CURRENT_USER`,
        `GRANT USAGE ON SCHEMA ${settings.schema} TO ${role}`
      )
      yield* Effect.scoped(node(limited))
      yield* administer(`REVOKE INSERT, UPDATE ON ALL TABLES IN SCHEMA ${settings.schema} FROM ${role}`)
      assert.deepInclude(yield* Effect.flip(Effect.scoped(node(limited))), { reason: "read-only" })
    })
  )

  it.scopedLive("PG-10: a server that requires a password says so to a node that has none", () =>
    Effect.gen(function* () {
      const settings = yield* freshSchema
      const role = "without_password"
      // Written anew with a line for this role first; the file has no way to add a line.
      yield* query(
        addressOf(settings),
        `DO $$ BEGIN CREATE ROLE ${role} LOGIN PASSWORD 'x'; EXCEPTION WHEN duplicate_object THEN NULL; END $$`,
        `DO $$ BEGIN EXECUTE format('COPY (SELECT %L UNION ALL SELECT line FROM string_to_table(%L, chr(10)) line
          WHERE line ~ ''^(local|host)'' AND line !~ %L) TO %L', 'host all ${role} 127.0.0.1/32 scram-sha-256',
          pg_read_file(current_setting('hba_file')), '${role}', current_setting('hba_file')); END $$`,
        "SELECT pg_reload_conf()"
      )
      const url = new URL(addressOf(settings))
      url.username = role
      const refused = yield* Effect.flip(Effect.scoped(node({ ...settings, url: url.href })))
      assert.include(refused.message, "the server requires a password: give it in the address, or in PGPASSWORD")
    })
  )

  it.scopedLive("PG-13: a title with U+0000 is kept in its event, and shown without it", () =>
    Effect.gen(function* () {
      const context = yield* node(yield* freshSchema)
      const [log, store, id] = [Context.get(context, EventLog), Context.get(context, SessionStore), session()]
      yield* Effect.provide(begin(id), context)
      yield* log.append(id, [renamed("a\0b")])
      assert.deepStrictEqual(yield* titles(context, id), ["a\0b"])
      assert.strictEqual((yield* store.get(id)).title, "a\uFFFDb")
    })
  )

  it.scopedLive("PG-24: with `make: false` a schema without tables of Daybook is refused, and nothing is made", () =>
    Effect.gen(function* () {
      const settings = { ...(yield* freshSchema), make: false }
      const address = addressOf(settings)
      const refused = Effect.flip(Effect.scoped(node(settings)))
      const lacking = { _tag: "DatabaseError", reason: "not-found" } as const
      assert.deepInclude(yield* refused, { ...lacking, details: `it has no schema ${settings.schema}` })
      const schemas = query(address, `SELECT 1 FROM pg_namespace WHERE nspname = '${settings.schema}'`)
      assert.deepStrictEqual(yield* schemas, [])
      yield* query(address, `CREATE SCHEMA ${settings.schema}`)
      assert.deepInclude(yield* refused, {
        ...lacking,
        details: `its schema ${settings.schema} has no tables of Daybook`
      })
      const tables = query(address, `SELECT 1 FROM pg_class WHERE relnamespace = to_regnamespace('${settings.schema}')`)
      assert.deepStrictEqual(yield* tables, [])
      yield* Effect.scoped(node({ ...settings, make: true }))
      yield* node(settings)
    })
  )
})
