/**
 * Slows admission down while the event loop is late, so that running sessions are served before new work begins. No
 * prompt is refused, and none overtakes another. Spec: LM-40..LM-43 in specs/security.md.
 */
import { monitorEventLoopDelay } from "node:perf_hooks"
import { Clock, Context, Deferred, Effect, Exit, FiberId, Layer, Metric, Schedule, type Scope } from "effect"
import * as Metrics from "@daybook/log/support/Metrics"

// Measures how late the event loop serves its timers, which is how long every session of the process waits.

/** The lag of the last window, in milliseconds. */
export interface Lag {
  readonly p50: number
  readonly p99: number
}

/** Where the lag comes from. */
export interface Source {
  readonly open: Effect.Effect<() => Lag | undefined, never, Scope.Scope>
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
      Metric.set(Metrics.loopLagAt("0.5"), last.p50),
      Metric.set(Metrics.loopLagAt("0.99"), last.p99)
    )
  })
  yield* Effect.zipRight(pause, look).pipe(Effect.repeat(Schedule.forever), Effect.forkScoped)
  return () => last
})

/** Lag in milliseconds above which prompts wait, unless the host sets another limit. */
export const defaultLimit = 200

/** Pauses that one prompt waits at most, as the first in line. */
const longest = 5

/** Lets prompts through. */
export class AdmissionGate extends Context.Tag("@daybook/core/AdmissionGate")<
  AdmissionGate,
  {
    /** Returns at once while the loop is on time. Otherwise waits in line until it is, or a second as the first in line. */
    readonly enter: Effect.Effect<void>
  }
>() {}

/** A gate over any lag, in milliseconds. */
export const make = (limit: number, lag: () => number, pause: Effect.Effect<void>): AdmissionGate["Type"] => {
  const isLate = () => lag() > limit
  /** Done when the last prompt in line has passed. */
  let last: Deferred.Deferred<void> | undefined
  const wait = Effect.suspend(() => (isLate() ? pause : Effect.void)).pipe(
    Effect.repeat({ times: longest - 1, while: isLate }),
    Effect.asVoid
  )
  const queue = Effect.uninterruptibleMask((restore) =>
    Effect.suspend(() => {
      const before = last === undefined ? Effect.void : Deferred.await(last)
      const passed = Deferred.unsafeMake<void>(FiberId.none)
      last = passed
      const leave = Effect.sync(() => {
        if (last === passed) last = undefined
        Deferred.unsafeDone(passed, Effect.void)
      })
      return Effect.flatMap(Effect.exit(restore(before)), (turn) => {
        if (Exit.isSuccess(turn)) return Effect.ensuring(restore(wait), leave)
        // Interrupted in line: the next one waits for those before.
        Deferred.unsafeDone(passed, before)
        return turn
      })
    })
  )
  const enter = Effect.suspend(() => (last === undefined && !isLate() ? Effect.void : queue))
  return { enter }
}

/** The gate of a runtime. `limit` in milliseconds. */
export const layer = (limit: number = defaultLimit) =>
  Layer.scoped(
    AdmissionGate,
    Effect.map(Effect.all([watch, LoopLag]), ([lag, { pause }]) => make(limit, () => lag().p50, pause))
  )
