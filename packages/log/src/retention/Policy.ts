/** Prunes in the background, at a bounded rate, while a server runs. Spec: RT-40..RT-42. */
import { type Duration, Effect, Layer, Metric, Schedule } from "effect"
import { ConsumerStore } from "../consumer/ConsumerStore.ts"
import { EventLog } from "../log/EventLog.ts"
import * as Metrics from "../support/Metrics.ts"
import { gentle, type Pace } from "./Pace.ts"
import type { Holders } from "./Plan.ts"
import * as Retention from "./Retention.ts"

/** What is removed without a person. */
export interface Policy {
  /** Keep the events of this many milliseconds. */
  readonly keep?: number | undefined
  /** Bytes of the file. */
  readonly maxSize?: number | undefined
  /** The folder of archives. */
  readonly archive?: string | undefined
  /** How gently; by default a tenth of the time. */
  readonly pace?: Pace
  /** The pause between two runs; by default an hour. */
  readonly every?: Duration.DurationInput
}

/** One run for each bound: by age first, then by size. */
const requests = ({ keep, maxSize }: Policy, holders: Holders): ReadonlyArray<Retention.Request> => [
  ...(keep === undefined ? [] : [{ keep, holders }]),
  ...(maxSize === undefined ? [] : [{ maxSize, holders }])
]

/** Applies the policy once, and reports in the log and in metrics what it did. */
export const apply = Effect.fn("Retention.apply")(function* (policy: Policy) {
  const holders = Retention.readersOf(yield* ConsumerStore, yield* EventLog)
  for (const request of requests(policy, holders)) {
    const outcome = yield* Retention.run(request, { pace: policy.pace ?? gentle, archive: policy.archive })
    const { after, before, events, failed, sessions } = outcome
    yield* Metric.incrementBy(Metrics.pruned, events)
    yield* Metric.set(Metrics.databaseBytes, after)
    if (sessions > 0) {
      yield* Effect.logInfo(
        `retention: ${events} events of ${sessions} sessions pruned; ${before} bytes are ${after} now`
      )
    }
    for (const { reason, sessionID } of failed)
      yield* Effect.logWarning(`retention: ${sessionID} keeps its events: ${reason}`)
    if (request.maxSize !== undefined && after > request.maxSize) {
      yield* Effect.logWarning(
        `retention: the database has ${after} bytes, more than ${request.maxSize}; nothing else may go`
      )
    }
  }
})

/**
 * Applies the policy now and after each pause, until the scope closes, and runs `pruned` after each time. A failed run is
 * logged, and the next one follows.
 */
export const layer = <A, E, R>(policy: Policy, pruned: Effect.Effect<A, E, R>) =>
  Layer.scopedDiscard(
    Effect.zipRight(apply(policy), pruned).pipe(
      Effect.catchAllCause((cause) => Effect.logWarning("retention failed; it is tried again", cause)),
      Effect.repeat(Schedule.spaced(policy.every ?? "1 hour")),
      Effect.forkScoped
    )
  )
