/** Measures the time from an append to the last of many tails that follow one session. */
import { Effect, Fiber, Stream } from "effect"
import { Identifiers } from "../packages/log/src/domain/Identifiers.ts"
import { EventLog } from "../packages/log/src/log/EventLog.ts"
import { median, quantile } from "./Figures.ts"
import { freshFile, removeFile, withOurs } from "./Stores.ts"
import * as Workload from "./Workload.ts"

/** Milliseconds from each append's start until all `tails` have seen its event. */
const latencies = (tails: number, appends: number) =>
  Effect.gen(function* () {
    const log = yield* EventLog
    const sessionID = yield* (yield* Identifiers).session
    yield* log.append(sessionID, [Workload.created])
    let waiting = tails
    let arrived = (): void => {}
    const seen = Effect.sync(() => {
      waiting -= 1
      if (waiting === 0) arrived()
    })
    const all = Effect.async<void>((resume) => {
      arrived = () => resume(Effect.void)
      if (waiting === 0) arrived()
    })
    // Every tail has finished its replay before the first append is measured.
    const follow = log.tailMarked({ sessionID, after: 0 }).pipe(Stream.runForEach(() => seen))
    const followers = yield* Effect.replicateEffect(Effect.fork(follow), tails)
    yield* all
    const times: Array<number> = []
    const drafts = Workload.events()
    for (let n = 0; n < appends; n++) {
      waiting = tails
      const started = performance.now()
      yield* log.append(sessionID, [drafts.next().value])
      yield* all
      times.push(performance.now() - started)
    }
    yield* Fiber.interruptAll(followers)
    return times
  })

export interface Result {
  /** Append to the last of 1,000 tails, in milliseconds. */
  readonly p50: number
  readonly p99: number
  /** Medians at one tail and at fifty, and their ratio. */
  readonly one: number
  readonly fifty: number
  readonly ratio: number
}

/** Runs rounds of one, fifty and a thousand tails; medians over the rounds. */
export const measure = async (directory: string, rounds: number): Promise<Result> => {
  const one: Array<number> = []
  const fifty: Array<number> = []
  const ratios: Array<number> = []
  const thousand: Array<number> = []
  const filename = freshFile(directory)
  await withOurs(
    filename,
    Effect.gen(function* () {
      for (let round = 0; round < rounds; round++) {
        const atOne = median(yield* latencies(1, 300))
        const atFifty = median(yield* latencies(50, 300))
        one.push(atOne)
        fifty.push(atFifty)
        ratios.push(atFifty / atOne)
        thousand.push(...(yield* latencies(1000, 40)))
      }
    })
  )
  removeFile(filename)
  return {
    p50: median(thousand),
    p99: quantile(thousand, 0.99),
    one: median(one),
    fifty: median(fifty),
    ratio: median(ratios)
  }
}
