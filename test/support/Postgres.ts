/**
 * A real PostgreSQL: one server for all workers of a run, and a schema for each test. The first worker that needs it starts
 * it; it ends with the run, however the run ends.
 */
import { randomUUID } from "node:crypto"
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { SqlClient } from "@effect/sql"
import { Chunk, Duration, Effect, Layer, Redacted, TestClock } from "effect"
import * as Pg from "pg"
import * as Identifiers from "../../packages/log/src/domain/Identifiers.ts"
import type { Options } from "../../packages/log/src/log/SqlEventLog.ts"
import * as Postgres from "../../packages/postgres/src/Postgres.ts"
import { type Server, start } from "./PostgresServer.ts"

/** When the run's process started: process ids are used again. */
const startOf = (pid: number): string =>
  readFileSync(`/proc/${pid}/stat`, "latin1")
    .replace(/^.*\) /s, "")
    .split(" ")[19] ?? ""

/** The server of this run. */
const server = (): Server => {
  const folder = join(tmpdir(), `daybook-postgres-${process.ppid}-${startOf(process.ppid)}`)
  const ready = join(folder, "ready")
  try {
    mkdirSync(folder)
    writeFileSync(ready, JSON.stringify(start(folder, process.ppid, ["fsync=off"])))
  } catch (cause) {
    if (!(cause instanceof Error && "code" in cause && cause.code === "EEXIST")) throw cause
    // Another worker starts it.
    for (let left = 1_000; left > 0 && !(existsSync(ready) && readFileSync(ready).length > 0); left -= 1) {
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 50)
    }
  }
  return JSON.parse(readFileSync(ready, "utf8"))
}

let started: Server | undefined

/** The server of this run, started when it is needed. */
export const postgres = Effect.sync((): Server => (started ??= server()))

/** Runs statements with a connection of their own. */
export const query = (url: string, ...texts: ReadonlyArray<string>): Effect.Effect<ReadonlyArray<unknown>> =>
  Effect.promise(async () => {
    const client = new Pg.Client({ connectionString: url })
    await client.connect()
    try {
      let rows: ReadonlyArray<unknown> = []
      for (const text of texts) rows = (await client.query(text)).rows
      return rows
    } finally {
      await client.end()
    }
  })

type Query = (this: Pg.Client, ...given: Array<unknown>) => unknown

/** Statements of this process that are under way. The driver says it nowhere, so its method is replaced. */
let underWay = 0
const ended = () => void (underWay -= 1)
const original = Pg.Client.prototype.query as Query
const counting: Query = function (...given) {
  underWay += 1
  const answered = given.findLastIndex((each) => typeof each === "function")
  const answer = given[answered]
  if (typeof answer !== "function") {
    const result = original.apply(this, given)
    void Promise.resolve(result).then(ended, ended)
    return result
  }
  const counted = (...results: ReadonlyArray<unknown>) => {
    ended()
    answer(...results)
  }
  return original.apply(this, given.with(answered, counted))
}
Object.assign(Pg.Client.prototype, { query: counting })

/** Turns of the event loop without a statement or a new timer, after which nothing is under way. */
const quietTurns = 30

/** Lets statements that are under way come back, and what waits for them send the next ones, or sleep. */
const settle = (clock: TestClock.TestClock) => {
  const turn = Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
  const look = Effect.map(Effect.zipRight(turn, clock.sleeps), (sleeps) => Chunk.toReadonlyArray(sleeps).join())
  const goOn = (before: string, quiet: number): Effect.Effect<void> =>
    Effect.flatMap(look, (now) =>
      now !== before || underWay > 0 ? goOn(now, 0) : quiet < quietTurns ? goOn(now, quiet + 1) : Effect.void
    )
  return goOn("", 0)
}

/**
 * A test's clock that goes from timer to timer, and lets the statements of each reach the database: a statement takes
 * time, and none of the test's.
 */
const settlingClock = (clock: TestClock.TestClock): TestClock.TestClock => {
  const adjust: TestClock.TestClock["adjust"] = (duration) =>
    Effect.gen(function* () {
      const end = (yield* clock.currentTimeMillis) + Duration.toMillis(Duration.decode(duration))
      for (;;) {
        yield* settle(clock)
        const now = yield* clock.currentTimeMillis
        const next = Chunk.toReadonlyArray(yield* clock.sleeps).filter((at) => at > now && at <= end)
        if (next.length === 0) break
        yield* clock.setTime(Math.min(...next))
      }
      yield* clock.setTime(end)
      yield* settle(clock)
    })
  return new Proxy(clock, {
    get: (target, property) => (property === "adjust" ? adjust : Reflect.get(target, property))
  })
}

/** Gives the scope this clock. */
export const withSettlingClock = Effect.flatMap(TestClock.testClock(), (clock) =>
  Effect.withClockScoped(settlingClock(clock))
)

/** Connections of a node's pool. */
const connections = 4

/** The address of the server, and a new schema that is dropped with the scope. */
export const freshSchema = Effect.flatMap(postgres, ({ url }) =>
  Effect.acquireRelease(
    Effect.sync((): Postgres.Settings => ({ url, schema: `t_${randomUUID().replaceAll("-", "")}`, connections })),
    ({ schema }) => query(url, `DROP SCHEMA IF EXISTS ${schema} CASCADE`)
  )
)

export const addressOf = ({ url }: Postgres.Settings): string => (Redacted.isRedacted(url) ? Redacted.value(url) : url)

/** Opens the connections of a node's pool now: to open one takes longer than `settle` waits. */
export const warm = Layer.effectDiscard(
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    Effect.all(
      Array.from({ length: connections }, () => sql`SELECT pg_sleep(0.05)`),
      { concurrency: "unbounded", discard: true }
    )
  )
)

/** The event log in a schema, with its connections and identifiers. Two layers are two nodes. */
export const postgresLogAt = (config: Postgres.Settings, options: Options = {}) =>
  Postgres.layerLog(options).pipe(
    Layer.provideMerge(Layer.mergeAll(Layer.provideMerge(warm, Postgres.layerConnections(config)), Identifiers.layer))
  )

/** The event log in a new schema, and a clock for it. */
export const postgresLog = Layer.merge(
  Layer.unwrapScoped(Effect.map(freshSchema, (settings) => postgresLogAt(settings))),
  Layer.scopedDiscard(withSettlingClock)
)
