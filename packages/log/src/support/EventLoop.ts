/**
 * Lets the event loop run. Effect's `yieldNow` continues in a microtask, before any socket is read, and the database's
 * driver is synchronous: a fiber that calls in a loop would keep every timer, socket and append of its process waiting.
 * Spec: EX-14, EX-400, EX-401 in specs/execution.md. It decides only when a fiber resumes. It must not preempt fibers
 * more often than Effect does: a fiber that is preempted after it took a semaphore's permit, and interrupted before it
 * runs again, never returns the permit.
 */
import { Effect, Exit, FiberRef, Scheduler } from "effect"

/** Completes when the event loop has run once. */
export const turn: Effect.Effect<void> = Effect.async((resume) => {
  const immediate = setImmediate(() => resume(Effect.void))
  return Effect.sync(() => clearImmediate(immediate))
})

/** Milliseconds, from any start. A test replaces it. */
export type Now = () => number

const realTime: Now = () => performance.now()

/** Whether work has lasted for `millis` since the event loop ran. `onTurn` is called when it has run again. */
export const makeStretch = (millis: number, now: Now = realTime, onTurn: () => void = () => {}): (() => boolean) => {
  /** When the first work began after the event loop ran. */
  let began: number | undefined
  return () => {
    const time = now()
    if (began === undefined) {
      began = time
      setImmediate(() => {
        began = undefined
        onTurn()
      })
    }
    return time - began >= millis
  }
}

/** Work that waits in order while `isOver`. What ends that calls `next`, after the event loop has run. */
const makeLine = (isOver: () => boolean) => {
  const waiting = new Set<() => void>()
  const next = (): void => {
    const [first] = waiting
    if (first === undefined || isOver()) return
    waiting.delete(first)
    first()
    // Its fiber continues in a microtask before this one: what that took is known then.
    queueMicrotask(next)
  }
  const isOpen = () => waiting.size === 0 && !isOver()
  const wait = Effect.async<void>((resume) => {
    const call = () => resume(Effect.void)
    waiting.add(call)
    return Effect.sync(() => waiting.delete(call))
  })
  return { isOpen, next, pass: Effect.suspend(() => (isOpen() ? Effect.void : wait)) }
}

/** The part of each turn of the event loop in which calls begin, in milliseconds. */
const callsMillis = 12

/** The share for calls that store nothing; the rest, the greater share, is for calls that store. */
const idleMillis = 2

/** What one idle call counts at most: a single long one does not keep the others waiting for long. */
const mostMillis = callsMillis

/** What a refused append counts: about what it costs the writer. */
const refusedMillis = 1

/** Shares an event loop among calls. A process has one; a test makes its own. */
export const make = (now: Now = realTime) => {
  let turns = 0
  const isLong: () => boolean = makeStretch(callsMillis, now, () => {
    turns += 1
    calls.next()
  })
  const calls = makeLine(isLong)

  /** What idle calls took that the turns since have not made up for, in milliseconds. */
  let debt = 0
  let isPaying = false
  const idle = makeLine(() => debt >= idleMillis)
  const pay = (): void => {
    isPaying = false
    debt = Math.max(0, debt - idleMillis)
    idle.next()
    if (debt > 0) owe(0)
  }
  const owe = (millis: number): void => {
    debt += Math.min(millis, mostMillis)
    if (isPaying) return
    isPaying = true
    setImmediate(pay)
  }

  let commits = 0

  const sharing = <A, E, R>(call: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.withFiberRuntime<A, E, R>((fiber) => {
      // `runSync` cannot wait.
      if (fiber.currentScheduler instanceof Scheduler.SyncScheduler) return call
      let [began, turn, commit] = [0, 0, 0]
      const run = Effect.suspend(() => {
        ;[began, turn, commit] = [now(), turns, commits]
        return call
      })
      const end = (exit: Exit.Exit<A, E>): Effect.Effect<A, E> => {
        // It stored something, as far as can be known, or has let the event loop run.
        if (commits !== commit || turns !== turn) return exit
        owe(now() - began)
        return idle.isOpen() ? exit : Effect.zipRight(idle.pass, exit)
      }
      return Effect.matchCauseEffect(calls.isOpen() ? run : Effect.zipRight(calls.pass, run), {
        onFailure: (cause) => end(Exit.failCause(cause)),
        onSuccess: (value) => end(Exit.succeed(value))
      })
    })

  const refused = Effect.suspend(() => {
    owe(refusedMillis)
    return idle.pass
  })

  return { committed: () => void (commits += 1), giveWay: calls.pass, refused, sharing }
}

/** The event loop of this process. */
const own = make()

export const {
  /** Notes that this process stored something: the calls that run now are not idle. */
  committed,
  /** Lets the event loop run if calls have used their part of its turn. */
  giveWay,
  /** Ends a refused append: a caller that is refused again and again leaves the writer to the others. */
  refused,
  /** A call of a public service: gives way before it, and after it if it stored nothing. */
  sharing
} = own

/** The service with every call shared. Its streams stay as they are: they give way before each page. */
export const sharingAll = <Service extends object>(service: Service): Service => {
  const shared = (made: unknown): unknown => (Effect.isEffect(made) ? sharing(made) : made)
  const verbs = Object.entries(service).map(([name, verb]): readonly [string, unknown] => [
    name,
    typeof verb === "function"
      ? (...given: ReadonlyArray<unknown>) => shared(Reflect.apply(verb, service, given))
      : shared(verb)
  ])
  return Object.assign({ ...service }, Object.fromEntries(verbs))
}

// Lets the event loop run between fibers: Effect's scheduler runs up to 2,048 rounds of microtasks, while no socket is
// read and no timer fires.

/** Maximum time that fibers run before the event loop runs. */
const turnMs = 12

/** Creates a scheduler that resumes fibers in microtasks for `turnMs`, then after the event loop has run. */
export const makeFairScheduler = (now?: Now): Scheduler.Scheduler => {
  const isOver = makeStretch(turnMs, now)
  return Scheduler.makeBatched((resume) => (isOver() ? setImmediate(resume) : queueMicrotask(resume)))
}

const fairScheduler: Scheduler.Scheduler = makeFairScheduler()

export const current: Effect.Effect<Scheduler.Scheduler> = Effect.map(
  FiberRef.get(FiberRef.currentScheduler),
  (chosen) => (chosen === Scheduler.defaultScheduler ? fairScheduler : chosen)
)

/** Runs the effect, and the fibers that it forks, on the fair scheduler. */
export const fairly = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.flatMap(current, (scheduler) => Effect.withScheduler(effect, scheduler))
