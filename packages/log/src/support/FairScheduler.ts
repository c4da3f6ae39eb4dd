/**
 * Lets the event loop run between fibers. Effect's scheduler continues in microtasks for up to 2,048 rounds; while its
 * fibers are busy, no socket is read and no timer fires, so one long answer would block every client of the process.
 * Spec: EX-14 in specs/execution.md.
 *
 * It decides only when a fiber resumes. It must not preempt fibers more often than Effect does: a fiber that is
 * preempted after it took a semaphore's permit, and interrupted before it runs again, never returns the permit.
 */
import { Effect, FiberRef, Scheduler } from "effect"
import * as EventLoop from "./EventLoop.ts"

/** Maximum time that fibers run before the event loop runs. */
const turnMs = 12

/** Creates a scheduler that resumes fibers in microtasks for `turnMs`, then after the event loop has run. */
export const make = (now?: EventLoop.Now): Scheduler.Scheduler => {
  const isOver = EventLoop.makeStretch(turnMs, now)
  return Scheduler.makeBatched((resume) => (isOver() ? setImmediate(resume) : queueMicrotask(resume)))
}

/** The scheduler of this process. */
const fairScheduler: Scheduler.Scheduler = make()

/** The fair scheduler, unless the host chose another one than Effect's default. */
export const current: Effect.Effect<Scheduler.Scheduler> = Effect.map(
  FiberRef.get(FiberRef.currentScheduler),
  (chosen) => (chosen === Scheduler.defaultScheduler ? fairScheduler : chosen)
)

/** Runs the effect, and the fibers that it forks, on the fair scheduler. */
export const fairly = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.flatMap(current, (scheduler) => Effect.withScheduler(effect, scheduler))
