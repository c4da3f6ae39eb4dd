/** Measures the log on PostgreSQL against bare `pg` on the same server: appends, replay, and a tail on another node. */
import { chmodSync, mkdirSync } from "node:fs"
import { join } from "node:path"
import { Context, Duration, Effect, Layer, Queue, Stream } from "effect"
import * as Pg from "pg"
import * as Daybook from "../packages/embedded/src/Daybook.ts"
import * as Identifiers from "../packages/log/src/domain/Identifiers.ts"
import { SessionID } from "../packages/log/src/domain/Identifiers.ts"
import type { SessionEvent } from "../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../packages/log/src/log/EventLog.ts"
import * as Postgres from "../packages/postgres/src/Postgres.ts"
import { start } from "../test/support/PostgresServer.ts"
import { publish } from "./Append.ts"
import { median, perSecond, quantile } from "./Figures.ts"
import { tail } from "./Replay.ts"
import { freshFile } from "./Stores.ts"
import { model, sessionID, turn } from "./Turn.ts"
import * as Workload from "./Workload.ts"

/** How much of each is measured in a round. */
export interface Amounts {
  /** Appends of 64 publishers, and rows inserted 64 at a time. */
  readonly together: number
  /** Appends of one publisher, and rows inserted alone. */
  readonly alone: number
  /** Events of the replayed session. */
  readonly events: number
  /** Commits that a tail on another node waits for. */
  readonly wakes: number
  /** Turns over each; the first third warms up. */
  readonly turns: number
}

const page = 512
const publishers = 64

const insertText = `INSERT INTO bare (session, seq, type, created, checksum, data)
  SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::json[])`

let inserted = 0

/** Rows of as many sessions, as arrays of columns. */
const columns = (rows: number) => {
  inserted += 1
  const drafts = Workload.events()
  const data = Array.from({ length: rows }, () => JSON.stringify(drafts.next().value))
  const each = (value: (index: number) => number) => data.map((_, index) => value(index))
  return [
    each((index) => index),
    each(() => inserted),
    each(() => 1),
    each(() => 1_750_000_000_000),
    each(() => 7),
    data
  ]
}

/** Inserts rows, so many a transaction. */
const insert = async (client: Pg.Client, perTransaction: number, rows: number) => {
  const latencies: Array<number> = []
  const started = performance.now()
  for (let written = 0; written < rows; written += perTransaction) {
    const before = performance.now()
    await client.query({ name: "bare", text: insertText, values: columns(perTransaction) })
    latencies.push(performance.now() - before)
  }
  return { rate: perSecond(rows, started), latencies }
}

/** Reads pages of a session's rows and parses each payload, without checks. */
const replay = async (client: Pg.Client, schema: string, sessionID: string): Promise<number> => {
  const text = `SELECT position, session, seq, type, created, data::text AS data FROM ${schema}.event
    WHERE session = (SELECT session FROM ${schema}.event_sequence WHERE session_id = $1) AND seq > $2
    ORDER BY seq LIMIT ${page}`
  let count = 0
  for (let after = -1; ;) {
    const { rows } = await client.query({ name: "replay", text, values: [sessionID, after] })
    const events = rows.map((row) => ({ ...row, data: JSON.parse(row.data) as unknown }))
    count += events.length
    if (events.length < page) return count
    after = Number(rows.at(-1)?.seq)
  }
}

const fill = (sessionID: SessionID, events: number) =>
  Effect.gen(function* () {
    const log = yield* EventLog
    yield* log.append(sessionID, [Workload.created])
    const drafts = Workload.events()
    for (let left = events - 1; left > 0; left -= page) {
      const [first, ...rest] = Array.from({ length: Math.min(page, left) }, () => drafts.next().value)
      if (first !== undefined) yield* log.append(sessionID, [first, ...rest])
    }
  })

/** How long a tail on one node waits for the events of commits on another. */
const wakes = (writer: EventLog["Type"], reader: EventLog["Type"], sessionID: SessionID, count: number) =>
  Effect.gen(function* () {
    yield* writer.append(sessionID, [Workload.created])
    const seen = yield* Queue.unbounded<SessionEvent>()
    yield* Effect.forkScoped(Stream.runForEach(reader.tail({ sessionID }), (event) => Queue.offer(seen, event)))
    yield* Queue.take(seen)
    const drafts = Workload.events()
    const latencies: Array<number> = []
    for (let left = count; left > 0; left -= 1) {
      yield* writer.append(sessionID, [drafts.next().value])
      const before = performance.now()
      yield* Queue.take(seen)
      latencies.push(performance.now() - before)
      // The figure is of a quiet log, so the work that follows a commit (notice, page, tail) must be over before the
      // next one starts. Nothing reports its end on the other node, so the pause is a time.
      yield* Effect.sleep("5 millis")
    }
    return latencies
  })

/** Milliseconds of warm turns with an instant model, over a file and over the database, one after the other. */
const turns = (directory: string, url: string, count: number) =>
  Effect.gen(function* () {
    const runtime = (options: Daybook.Options | Daybook.DatabaseOptions) =>
      Effect.gen(function* () {
        const services = yield* Layer.build(Daybook.layer(options).pipe(Layer.provide(model)))
        yield* Effect.provide(
          Effect.flatMap(EventLog, (log) => log.append(sessionID, [Workload.createdAt(directory)])),
          services
        )
        return Effect.map(Effect.timed(Effect.provide(turn, services)), ([took]) => Duration.toMillis(took))
      })
    const file = yield* runtime({ filename: freshFile(directory) })
    const database = yield* runtime({ database: Postgres.config({ url, schema: "turns" }) })
    const pairs: Pairs = []
    for (let done = 0; done < count; done++) pairs.push([yield* file, yield* database])
    return pairs.slice(Math.floor(count / 3))
  })

export interface Result {
  readonly raw64: number
  readonly ours64: number
  readonly ratio64: number
  readonly rawP50: number
  readonly oursP50: number
  readonly over: number
  readonly rawReplay: number
  readonly replay: number
  readonly replayRatio: number
  readonly fileTurn: number
  readonly turn: number
  readonly turnRatio: number
  readonly wakeP50: number
  readonly wakeP99: number
}

/** The figures of bare statements and of the log, by round. */
type Pairs = Array<readonly [raw: number, ours: number]>

/** Alternates rounds of both sides; medians over the rounds. */
export const measure = (directory: string, amounts: Amounts, rounds: number): Promise<Result> =>
  Effect.gen(function* () {
    const folder = join(directory, "postgres")
    mkdirSync(folder)
    // The server's user must reach its folder.
    chmodSync(directory, 0o755)
    const { url } = start(folder, process.pid)
    const client = yield* Effect.acquireRelease(
      Effect.promise(async () => {
        const made = new Pg.Client({ connectionString: url })
        await made.connect()
        await made.query(`CREATE TABLE bare (position bigserial PRIMARY KEY, session bigint, seq bigint, type bigint,
          created bigint, checksum bigint, data json, UNIQUE (session, seq))`)
        return made
      }),
      (made) => Effect.promise(() => made.end())
    )
    const node = Layer.build(Layer.merge(Layer.fresh(Postgres.layer({ url })), Identifiers.layer))
    const [one, other] = [yield* node, yield* node]
    const long = SessionID.make("ses_long")
    yield* Effect.provide(fill(long, amounts.events), one)
    const [together, singles, replays]: [Pairs, Pairs, Pairs] = [[], [], []]
    for (let round = 0; round < rounds; round++) {
      const raw = yield* Effect.promise(() => insert(client, publishers, amounts.together))
      const ours = yield* Effect.provide(publish(publishers, amounts.together), one)
      together.push([raw.rate, ours.rate])
      const rawAlone = yield* Effect.promise(() => insert(client, 1, amounts.alone))
      const alone = yield* Effect.provide(publish(1, amounts.alone), one)
      singles.push([median(rawAlone.latencies), median(alone.latencies)])
      let started = performance.now()
      const count = yield* Effect.promise(() => replay(client, "daybook", long))
      const rawRate = perSecond(count, started)
      started = performance.now()
      yield* Effect.provide(tail(long, amounts.events), one)
      replays.push([rawRate, perSecond(amounts.events, started)])
    }
    const waits = yield* wakes(
      Context.get(one, EventLog),
      Context.get(other, EventLog),
      SessionID.make("ses_woken"),
      amounts.wakes
    )
    const turned = yield* turns(directory, url, amounts.turns)
    const all = (pairs: Pairs, of: (pair: Pairs[number]) => number) => median(pairs.map(of))
    return {
      raw64: all(together, ([raw]) => raw),
      ours64: all(together, ([, ours]) => ours),
      ratio64: all(together, ([raw, ours]) => ours / raw),
      rawP50: all(singles, ([raw]) => raw),
      oursP50: all(singles, ([, ours]) => ours),
      over: all(singles, ([raw, ours]) => ours - raw),
      rawReplay: all(replays, ([raw]) => raw),
      replay: all(replays, ([, ours]) => ours),
      replayRatio: all(replays, ([raw, ours]) => ours / raw),
      fileTurn: all(turned, ([file]) => file),
      turn: all(turned, ([, ours]) => ours),
      turnRatio: all(turned, ([file, ours]) => ours / file),
      wakeP50: median(waits),
      wakeP99: quantile(waits, 0.99)
    }
  }).pipe(Effect.scoped, Effect.runPromise)
