/** Measures durable appends of one event, each publisher in its own session, against bare inserts. */
import { Effect, Fiber } from "effect"
import { Identifiers } from "../packages/log/src/domain/Identifiers.ts"
import { EventLog } from "../packages/log/src/log/EventLog.ts"
import * as SqlHook from "../packages/log/src/log/SqlHook.ts"
import { median, perSecond, quantile } from "./Figures.ts"
import { freshFile, raw, rawSession, removeFile, withOurs } from "./Stores.ts"
import * as Workload from "./Workload.ts"

/** Appends per measurement, by the number of publishers. */
const appendsAt: ReadonlyArray<readonly [publishers: number, appends: number]> = [
  [1, 2000],
  [8, 8000],
  [64, 12_000],
  [256, 12_000]
]
const rawAppends = 2000

export const publish = (publishers: number, appends: number) =>
  Effect.gen(function* () {
    const log = yield* EventLog
    const identifiers = yield* Identifiers
    const latencies: Array<number> = []
    const sessions = yield* Effect.replicateEffect(identifiers.session, publishers)
    yield* Effect.forEach(sessions, (id) => log.append(id, [Workload.created]), { concurrency: "unbounded" })
    const started = performance.now()
    yield* Effect.forEach(
      sessions,
      (id) =>
        Effect.gen(function* () {
          const drafts = Workload.events()
          for (let left = appends / publishers; left > 0; left--) {
            const { value } = drafts.next()
            const before = performance.now()
            yield* log.append(id, [value])
            latencies.push(performance.now() - before)
          }
        }),
      { concurrency: "unbounded", discard: true }
    )
    return { rate: perSecond(latencies.length, started), latencies }
  })

/** The other publishers: none, as many healthy ones again, or as many whose every append is refused. */
type Beside = "nobody" | "others" | "refused"

const besidePublishers = 32
const besideAppends = 6000

/** The rate of healthy publishers, in appends per second. */
const publishBeside = (beside: Beside) =>
  Effect.gen(function* () {
    const [log, identifiers] = [yield* EventLog, yield* Identifiers]
    const healthy = yield* Effect.replicateEffect(identifiers.session, besidePublishers)
    const others = yield* Effect.replicateEffect(identifiers.session, beside === "nobody" ? 0 : besidePublishers)
    yield* Effect.forEach([...healthy, ...others], (id) => log.append(id, [Workload.created]), {
      concurrency: "unbounded"
    })
    /** Like a full inbox: reads, then refuses. */
    const waiting =
      "SELECT count(*) FROM session_input WHERE session = (SELECT session FROM event_sequence WHERE session_id = ?)"
    const full = SqlHook.check((statements, id) => {
      statements.all(waiting, [id])
      return "full"
    })
    const forever = (id: (typeof others)[number]) => {
      const drafts = Workload.events()
      const options = beside === "refused" ? { commit: full } : {}
      return Effect.forever(Effect.ignore(Effect.suspend(() => log.append(id, [drafts.next().value], options))))
    }
    const noise = yield* Effect.fork(Effect.forEach(others, forever, { concurrency: "unbounded", discard: true }))
    const started = performance.now()
    yield* Effect.forEach(
      healthy,
      (id) =>
        Effect.gen(function* () {
          const drafts = Workload.events()
          for (let left = besideAppends / besidePublishers; left > 0; left--)
            yield* log.append(id, [drafts.next().value])
        }),
      { concurrency: "unbounded", discard: true }
    )
    const rate = perSecond(besideAppends, started)
    yield* Fiber.interrupt(noise)
    return rate
  })

const bare = async (directory: string, perTransaction: number, appends: number) => {
  const filename = freshFile(directory)
  const db = await raw(filename)
  const session = rawSession(db, "ses_raw")
  const drafts = Workload.events()
  const latencies: Array<number> = []
  const write = db.transaction(() => {
    for (let i = 0; i < perTransaction; i++) session.insert(drafts.next().value)
  })
  const started = performance.now()
  for (let written = 0; written < appends; written += perTransaction) {
    const before = performance.now()
    write.immediate()
    latencies.push(performance.now() - before)
  }
  const rate = perSecond(appends, started)
  db.close()
  removeFile(filename)
  return { rate, latencies }
}

export interface Result {
  readonly rawOne: number
  readonly rawHundred: number
  readonly rawP50: number
  readonly rawP99: number
  readonly ours: ReadonlyArray<{
    readonly publishers: number
    readonly rate: number
    /** Ratio to bare inserts measured just before, one per transaction. */
    readonly ratio: number
  }>
  readonly p50: number
  readonly p99: number
  /** One publisher's p50 above a bare commit's, in milliseconds. */
  readonly overRaw: number
  /** Healthy publishers beside as many refused ones, compared with the same alone and beside as many healthy others. */
  readonly besideRefused: { readonly rate: number; readonly againstAlone: number; readonly againstOthers: number }
}

/** Alternates rounds of everything; medians over the rounds. */
export const measure = async (directory: string, rounds: number): Promise<Result> => {
  const one: Array<Awaited<ReturnType<typeof bare>>> = []
  const hundred: Array<number> = []
  const beside: Array<Result["besideRefused"]> = []
  const singles: Array<{ readonly p50: number; readonly p99: number; readonly over: number }> = []
  const byCount = new Map(
    appendsAt.map(([count]) => [count, { rates: [] as Array<number>, ratios: [] as Array<number> }])
  )
  for (let round = 0; round < rounds; round++) {
    for (const [count, appends] of appendsAt) {
      const beside = await bare(directory, 1, rawAppends)
      const filename = freshFile(directory)
      const { latencies, rate } = await withOurs(filename, publish(count, appends))
      removeFile(filename)
      one.push(beside)
      byCount.get(count)?.rates.push(rate)
      byCount.get(count)?.ratios.push(rate / beside.rate)
      if (count === 1) {
        const p50 = quantile(latencies, 0.5)
        singles.push({ p50, p99: quantile(latencies, 0.99), over: p50 - quantile(beside.latencies, 0.5) })
      }
    }
    hundred.push((await bare(directory, 100, 20_000)).rate)
    const rates = new Map<Beside, number>()
    for (const kind of ["nobody", "others", "refused"] as const) {
      const filename = freshFile(directory)
      rates.set(kind, await withOurs(filename, publishBeside(kind)))
      removeFile(filename)
    }
    const [alone = NaN, others = NaN, rate = NaN] = rates.values()
    beside.push({ rate, againstAlone: rate / alone, againstOthers: rate / others })
  }
  return {
    rawOne: median(one.map(({ rate }) => rate)),
    rawHundred: median(hundred),
    rawP50: median(one.map(({ latencies }) => quantile(latencies, 0.5))),
    rawP99: median(one.map(({ latencies }) => quantile(latencies, 0.99))),
    ours: [...byCount].map(([publishers, { rates, ratios }]) => ({
      publishers,
      rate: median(rates),
      ratio: median(ratios)
    })),
    p50: median(singles.map(({ p50 }) => p50)),
    p99: median(singles.map(({ p99 }) => p99)),
    overRaw: median(singles.map(({ over }) => over)),
    besideRefused: {
      rate: median(beside.map(({ rate }) => rate)),
      againstAlone: median(beside.map(({ againstAlone }) => againstAlone)),
      againstOthers: median(beside.map(({ againstOthers }) => againstOthers))
    }
  }
}
