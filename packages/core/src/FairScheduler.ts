/**
 * A scheduler for work that may never wait: fibers take turns with the event loop, not only with each other. Effect's own
 * scheduler goes on in microtasks for up to 2,048 rounds of 2,048 steps, and as long as fibers are busy no socket is read
 * and no timer fires: one long answer would hold up every client of the process. Spec: EX-14 in specs/execution.md.
 */
import { Effect, FiberRef, Scheduler } from "effect"

/** How long fibers may run before the event loop has its turn. */
const turnMs = 12
/** How long a fiber that was resumed may run even when the turn is over: others may use up every turn. */
const shareMs = 2
/** Steps of a fiber between two looks at the clock: one less than a power of two. */
const stepsMask = 7

/** Work goes on in microtasks for some milliseconds of each turn of the loop, and then after the next turn. */
export const make = (now: () => number = () => performance.now()): Scheduler.Scheduler => {
  /** When the first work of this turn began. */
  let began: number | undefined

  const isOver = (): boolean => {
    const time = now()
    if (began === undefined) {
      began = time
      setImmediate(() => (began = undefined))
    }
    return time - began >= turnMs
  }

  const runner = Scheduler.SchedulerRunner.cached((depth, drain) => {
    if (isOver()) setImmediate(() => drain(0))
    else void Promise.resolve().then(() => drain(depth + 1))
  })
  /** When the fiber that runs was resumed. */
  let resumed = 0
  const mustYield = () => now() - resumed >= shareMs && isOver()

  return Scheduler.make(
    (task, priority, fiber) =>
      runner(fiber).scheduleTask(() => {
        resumed = now()
        task()
      }, priority),
    (fiber) =>
      (fiber.currentOpCount & stepsMask) === stepsMask && mustYield() ? 0 : Scheduler.defaultShouldYield(fiber)
  )
}

/** The process's own. */
const fairScheduler: Scheduler.Scheduler = make()

/** The fair scheduler in place of Effect's own; one that the host chose stays. */
export const current: Effect.Effect<Scheduler.Scheduler> = Effect.map(
  FiberRef.get(FiberRef.currentScheduler),
  (chosen) => (chosen === Scheduler.defaultScheduler ? fairScheduler : chosen)
)

/** Runs the effect, and the fibers that it forks, on the fair scheduler. */
export const fairly = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.flatMap(current, (scheduler) => Effect.withScheduler(effect, scheduler))
