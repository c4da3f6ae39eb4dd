/**
 * Schedules drains: at most one per key at any time, however many callers request one; different keys overlap. It owns
 * the drains' fibers and nothing else: it does not know what a drain does or where its work is stored. A wake carries
 * no data; a wake means "look again". Spec: specs/execution.md, Coordinator (EX-1..EX-13).
 *
 *               run: forced, wake: unforced
 *       idle ───────────────────────────────▶ active ◀──┐ success, woken meanwhile: drain again, same execution
 *        ▲ ▲                                  │ │ │ └───┤
 *        │ └───── ended, not woken meanwhile ─┘ │ └─────┘ failure, woken meanwhile: a successor execution
 *        │                            interrupt │
 *        │                                      ▼
 *        └── cleaned up, no request ───────── stopping ──── cleaned up, new request: a successor ────────────▶ active
 *
 * Callers of `run` wait for an execution: one drain, and those that follow a success within it. Every transition is
 * one synchronous step, so no interruption and no other fiber can come between.
 */
import { Cause, Deferred, Effect, Exit, type Fiber, FiberId, Runtime, type Scheduler } from "effect"
import * as EventLoop from "@daybook/log/support/EventLoop"
import { RunInterrupted } from "../domain/RunFailure.ts"

export { RunInterrupted } from "../domain/RunFailure.ts"

/** Serializes the drains of each key. Keys are compared as in a `Map`. */
export interface RunCoordinator<Key, A, E> {
  /** The keys that have a drain: scheduled, running or cleaning up (EX-9). */
  readonly active: Effect.Effect<ReadonlyArray<Key>>
  /**
   * Joins the active execution, or starts a forced one, if necessary after the cleanup of an interrupted one (EX-2).
   * Returns that execution's exit. Interrupting the caller does not stop an execution that has started (EX-3). A drain
   * must not `run` its own key: it would wait for itself.
   */
  readonly run: (key: Key) => Effect.Effect<A, E | RunInterrupted>
  /** Returns immediately; a drain starts after this call, unless `interrupt` is called first (EX-15). */
  readonly wake: (key: Key) => Effect.Effect<void>
  /** Stops everything requested before it; waits until that has ended, including finalizers. Idle: no-op (EX-6). */
  readonly interrupt: (key: Key) => Effect.Effect<void>
  /**
   * Calls `still`, and if it returns true stops the drain in the same step. Waits like `interrupt`, then drains the work
   * that is left. Returns false and does nothing if `still` returns false or the key is idle (EX-13).
   */
  readonly cut: (key: Key, still: () => boolean) => Effect.Effect<boolean>
  /** Waits until nothing is active for the key, with any outcome. Idle: returns immediately (EX-8). */
  readonly settled: (key: Key) => Effect.Effect<void>
}

/** What callers of `run` wait for. */
interface Execution<A, E> {
  readonly done: Deferred.Deferred<A, E | RunInterrupted>
  /** Callers of `run` that still wait. */
  waiters: number
  /** Requested by a wake: it starts even if every waiter has left. */
  woken: boolean
  /** Set when the execution fails. */
  failure?: Cause.Cause<E | RunInterrupted>
}

/** A key that is not idle. */
interface Entry<A, E> {
  readonly idle: Deferred.Deferred<void>
  current: Execution<A, E>
  /** The one pending execution: requests since the current drain started that joining it does not serve. */
  next: Execution<A, E> | undefined
  stopping: boolean
  fiber: Fiber.RuntimeFiber<A, E>
}

const unseen = (key: string, cause: Cause.Cause<unknown>): Effect.Effect<void> =>
  Effect.annotateLogs(Effect.logError("a drain failed without a waiting caller", cause), { key })

interface Options<Key, A, E> {
  readonly drain: (key: Key, force: boolean) => Effect.Effect<A, E>
  /** Receives failures that no caller of `run` received. Default: logs them. */
  readonly report?: (key: Key, cause: Cause.Cause<unknown>) => Effect.Effect<void>
}

/** The keys that are not idle. Only the functions below change it, each in one synchronous step. */
interface State<Key, A, E> {
  readonly options: Options<Key, A, E>
  /** Starts a fiber in the context of `make`. */
  readonly fork: <B, F>(effect: Effect.Effect<B, F>, options?: Runtime.RunForkOptions) => Fiber.RuntimeFiber<B, F>
  readonly scheduler: Scheduler.Scheduler
  readonly entries: Map<Key, Entry<A, E>>
  closed: boolean
}

const makeExecution = <A, E>(): Execution<A, E> => ({
  done: Deferred.unsafeMake(FiberId.none),
  waiters: 0,
  woken: false
})

/**
 * Each drain has its own fiber, so that fibers it forked end with it, not with the key's last drain. It starts on the
 * scheduler, not on this stack: 10,000 drains that wake themselves use no stack (EX-9). `interruptible`, because `make`
 * may be called in an uninterruptible region, while a layer is built.
 */
const spawn = <Key, A, E>(
  { fork, options, scheduler }: State<Key, A, E>,
  key: Key,
  force: boolean,
  onExit: (exit: Exit.Exit<A, E>) => void
): Fiber.RuntimeFiber<A, E> => {
  const drain = Effect.interruptible(Effect.suspend(() => options.drain(key, force)))
  const fiber = fork(drain, { immediate: false, scheduler })
  fiber.addObserver(onExit)
  return fiber
}

const begin = <Key, A, E>(state: State<Key, A, E>, key: Key, force: boolean): Execution<A, E> => {
  const entry: Entry<A, E> = {
    idle: Deferred.unsafeMake(FiberId.none),
    current: makeExecution(),
    next: undefined,
    stopping: false,
    fiber: spawn(state, key, force, (exit) => settle(state, key, entry, exit))
  }
  state.entries.set(key, entry)
  return entry.current
}

/**
 * Race: a wake against the end of a drain. This runs in the step in which the drain's fiber ends. A wake comes either
 * before it and is in `next`, or after it and finds the key idle or the next drain active (EX-4).
 */
const settle = <Key, A, E>(state: State<Key, A, E>, key: Key, entry: Entry<A, E>, exit: Exit.Exit<A, E>): void => {
  const { current, next, stopping } = entry
  entry.next = undefined
  const respawn = (force: boolean) => {
    entry.fiber = spawn(state, key, force, (exit) => settle(state, key, entry, exit))
  }
  if (Exit.isSuccess(exit) && next !== undefined && !stopping) return respawn(false)
  if (next === undefined) {
    state.entries.delete(key)
  } else {
    entry.current = next
    entry.stopping = false
    // While a drain is active, no caller waits for `next`; while it stops, every remaining caller of `run` does.
    respawn(next.waiters > 0)
  }
  conclude(state, key, current, exit)
  if (next === undefined) Deferred.unsafeDone(entry.idle, Exit.void)
}

/** Completes the execution; a failure without waiters is reported instead (EX-5, EX-17). */
const conclude = <Key, A, E>(state: State<Key, A, E>, key: Key, execution: Execution<A, E>, exit: Exit.Exit<A, E>) => {
  if (Exit.isSuccess(exit)) return Deferred.unsafeDone(execution.done, exit)
  if (Cause.isInterruptedOnly(exit.cause)) return cancel(key, execution)
  // Interruptions beside a failure are dropped: a waiter would take them for its own fiber's.
  execution.failure = Cause.filter(exit.cause, (part) => !Cause.isInterruptType(part))
  if (execution.waiters === 0) report(state, key, execution.failure)
  Deferred.unsafeDone(execution.done, Exit.failCause(execution.failure))
}

const cancel = <A, E>(key: unknown, execution: Execution<A, E>): void =>
  Deferred.unsafeDone(execution.done, Exit.fail(new RunInterrupted({ key: String(key) })))

const report = <Key, A, E>({ fork, options }: State<Key, A, E>, key: Key, cause: Cause.Cause<unknown>): void => {
  fork(options.report === undefined ? unseen(String(key), cause) : options.report(key, cause))
}

/**
 * Race: an interrupt against earlier requests. The pending wake, and runs that wait for a cleanup, are dropped in the
 * step that stops the drain. Later requests find `next` empty and are new (EX-6).
 */
const stop = <A, E>(key: unknown, entry: Entry<A, E>, by: FiberId.FiberId): void => {
  const { next } = entry
  entry.next = undefined
  entry.stopping = true
  if (next !== undefined) cancel(key, next)
  entry.fiber.unsafeInterruptAsFork(by)
}

/** Race: a run against the end of the cleanup. Before it, the run is in `next`; after it, the key is idle. */
const join = <Key, A, E>(state: State<Key, A, E>, key: Key): Execution<A, E> => {
  const entry = state.entries.get(key)
  if (entry === undefined) return begin(state, key, true)
  return entry.stopping ? (entry.next ??= makeExecution()) : entry.current
}

const leave = <Key, A, E>(state: State<Key, A, E>, key: Key, execution: Execution<A, E>): void => {
  execution.waiters -= 1
  if (execution.waiters > 0) return
  // Race: the failure went to a waiter that was interrupted before it received it.
  if (execution.failure !== undefined) return report(state, key, execution.failure)
  // A run that still waits for a cleanup has not started; it is dropped with its last caller (EX-3).
  const entry = state.entries.get(key)
  if (entry?.next === execution && !execution.woken) entry.next = undefined
}

/** Stops all drains and waits for their cleanup; nothing starts afterwards (EX-10). */
const close = <Key, A, E>(state: State<Key, A, E>): Effect.Effect<void> =>
  Effect.suspend(() => {
    state.closed = true
    const open = Array.from(state.entries)
    for (const [key, entry] of open) stop(key, entry, FiberId.none)
    return Effect.forEach(open, ([, entry]) => Deferred.await(entry.idle), { discard: true })
  })

/** The operations on a coordinator's state. Contract: `RunCoordinator`. */
const operations = <Key, A, E>(state: State<Key, A, E>): RunCoordinator<Key, A, E> => {
  const { entries } = state
  return {
    active: Effect.sync(() => Array.from(entries.keys())),
    // Joining and leaving are paired: no interruption between counting and waiting.
    run: Effect.fn("RunCoordinator.run")((key: Key) =>
      Effect.uninterruptibleMask((restore) =>
        Effect.suspend((): Effect.Effect<A, E | RunInterrupted> => {
          if (state.closed) return Effect.fail(new RunInterrupted({ key: String(key) }))
          const execution = join(state, key)
          execution.waiters += 1
          return restore(Deferred.await(execution.done)).pipe(
            Effect.onInterrupt(() => Effect.sync(() => leave(state, key, execution)))
          )
        })
      )
    ),
    wake: (key) =>
      Effect.sync(() => {
        if (state.closed) return
        const entry = entries.get(key)
        if (entry === undefined) begin(state, key, false)
        else (entry.next ??= makeExecution()).woken = true
      }),
    // Interrupting the caller only ends its waiting: the key is already stopped.
    interrupt: Effect.fn("RunCoordinator.interrupt")((key: Key) =>
      Effect.withFiberRuntime<void>((fiber) => {
        const entry = entries.get(key)
        if (entry === undefined) return Effect.void
        stop(key, entry, fiber.id())
        return Effect.asVoid(Effect.exit(Deferred.await(entry.current.done)))
      })
    ),
    // Race: a cut against an earlier interrupt. The interrupt already dropped the pending requests; none are added
    // here.
    cut: Effect.fn("RunCoordinator.cut")((key: Key, still: () => boolean) =>
      Effect.withFiberRuntime<boolean>((fiber) => {
        const entry = entries.get(key)
        if (entry === undefined || !still()) return Effect.succeed(false)
        if (!entry.stopping) {
          stop(key, entry, fiber.id())
          entry.next = { ...makeExecution(), woken: true }
        }
        return Effect.as(Effect.exit(Deferred.await(entry.current.done)), true)
      })
    ),
    settled: Effect.fn("RunCoordinator.settled")((key: Key) =>
      Effect.suspend(() => {
        const entry = entries.get(key)
        return entry === undefined ? Effect.void : Deferred.await(entry.idle)
      })
    )
  }
}

/**
 * Creates a coordinator whose drains end with the scope: closing it interrupts all drains and waits for their cleanup.
 * After that a wake does nothing and a run fails with `RunInterrupted` (EX-10).
 *
 * Drains run in the context of `make`, never in the caller's: a wake inside a transaction or a span must not include
 * the drain in it (EX-11).
 */
export const make = <Key, A, E>(options: Options<Key, A, E>) =>
  Effect.gen(function* () {
    const fork = Runtime.runFork(yield* Effect.runtime<never>())
    const scheduler = yield* EventLoop.current
    const state: State<Key, A, E> = { options, fork, scheduler, entries: new Map(), closed: false }
    yield* Effect.addFinalizer(() => close(state))
    return operations(state)
  })
