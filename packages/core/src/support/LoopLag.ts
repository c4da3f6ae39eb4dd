/**
 * Measures how late the event loop serves its timers. Late timers mean that every session of the process waits: for
 * JavaScript that runs long, or for SQLite's disk. `coordination/AdmissionGate.ts` slows admission down by it. Spec: LM-40
 * in specs/limits.md.
 */
import { monitorEventLoopDelay } from "node:perf_hooks"
import { Clock, Context, Effect, Metric, Schedule, type Scope } from "effect"
import * as Metrics from "@daybook/log/support/Metrics"

/** The lag of the last window, in milliseconds. */
export interface Lag {
  readonly p50: number
  readonly p99: number
}

/** Where the lag comes from. */
export interface Source {
  /** Starts to measure; returns the lag since the last call, or undefined if nothing was measured since. */
  readonly open: Effect.Effect<() => Lag | undefined, never, Scope.Scope>
  /** The pause between two measurements. */
  readonly pause: Effect.Effect<void>
}

/** Milliseconds between the timers that are observed. */
const resolution = 10

/** How late a timer is whose interval, in nanoseconds, was measured. */
const late = (nanos: number): number => Math.max(0, nanos / 1e6 - resolution)

const node: Source = {
  open: Effect.acquireRelease(
    Effect.sync(() => {
      const histogram = monitorEventLoopDelay({ resolution })
      histogram.enable()
      return histogram
    }),
    (histogram) => Effect.sync(() => histogram.disable())
  ).pipe(
    Effect.map((histogram) => () => {
      if (histogram.count === 0) return undefined
      const lag = { p50: late(histogram.percentile(50)), p99: late(histogram.percentile(99)) }
      histogram.reset()
      return lag
    })
  ),
  // The loop's lag is real time, whatever clock the runtime has.
  pause: Effect.withClock(Effect.sleep("200 millis"), Clock.make())
}

/** The source of the lag; a test replaces it. */
export class LoopLag extends Context.Reference<LoopLag>()("@daybook/core/LoopLag", {
  defaultValue: (): Source => node
}) {}

/** Measures until the scope closes: sets the metrics, and returns the last window's lag on call. */
export const watch: Effect.Effect<() => Lag, never, Scope.Scope> = Effect.gen(function* () {
  const { open, pause } = yield* LoopLag
  const measure = yield* open
  let last: Lag = { p50: 0, p99: 0 }
  const look = Effect.suspend(() => {
    last = measure() ?? last
    return Effect.zipRight(
      Metric.set(Metric.tagged(Metrics.loopLag, "quantile", "0.5"), last.p50),
      Metric.set(Metric.tagged(Metrics.loopLag, "quantile", "0.99"), last.p99)
    )
  })
  yield* Effect.zipRight(pause, look).pipe(Effect.repeat(Schedule.forever), Effect.forkScoped)
  return () => last
})
