/**
 * Who drains, and when: at most one drain per key at any time, however many ask for one; different keys overlap.
 * It owns the fibers of the drains and nothing else: what a drain does, and where its work is stored, is not known
 * here. A wake carries no data, it says "look again". Spec: specs/execution.md, Coordinator (EX-1..EX-13).
 *
 *               run: forced, wake: unforced
 *       idle ───────────────────────────────▶ active ◀──┐ success, woken meanwhile: drain again, same execution
 *        ▲ ▲                                  │ │ │ └───┤
 *        │ └───── ended, not woken meanwhile ─┘ │ └─────┘ failure, woken meanwhile: a successor execution
 *        │                            interrupt │
 *        │                                      ▼
 *        └──── cleaned up, not asked ──────── stopping ──── cleaned up, asked meanwhile: a successor ────▶ active
 *
 * An execution is what callers of `run` wait for: one drain, and those that follow a success within it. Every
 * transition is one synchronous step, so no interruption and no other fiber can come in the middle of one.
 */
import { Cause, Deferred, Effect, Exit, type Fiber, FiberId, Runtime, Schema, type Scope } from "effect"
import * as FairScheduler from "../FairScheduler.ts"

/**
 * The execution that a `run` waited for was interrupted, or the coordinator was closed. An error, and not an
 * interruption of the waiting fiber: the waiter can tell "the work was stopped" from "I was stopped".
 */
export class RunInterrupted extends Schema.TaggedError<RunInterrupted>("@daybook/core/RunInterrupted")(
  "RunInterrupted",
  { key: Schema.String }
) {
  override get message() {
    return `the run of ${this.key} was interrupted before it ended: what it recorded is kept, run it again to continue`
  }
}

/** Serialises the drains of each key. Keys are compared as a `Map` compares them. */
export interface RunCoordinator<Key, A, E> {
  /** The keys that have a drain: scheduled, running or cleaning up (EX-9). */
  readonly active: Effect.Effect<ReadonlyArray<Key>>
  /**
   * Joins the active execution, or starts a forced one, after the cleanup of an interrupted one if need be (EX-2).
   * Answers with that execution's exit. Interrupting the caller does not stop an execution that has started (EX-3).
   * A drain must not `run` its own key: it would wait for itself.
   */
  readonly run: (key: Key) => Effect.Effect<A, E | RunInterrupted>
  /** Returns at once; a drain starts after this call, unless an `interrupt` comes first (EX-4). */
  readonly wake: (key: Key) => Effect.Effect<void>
  /** Stops what was asked before it; waits until that has ended, its finalizers included. Idle: no-op (EX-6). */
  readonly interrupt: (key: Key) => Effect.Effect<void>
  /**
   * Stops the drain if `still` says so in the very step that stops it, and drains anew what it left; waits like
   * `interrupt`. False, and nothing done, when it does not, or the key is idle (EX-13).
   */
  readonly cut: (key: Key, still: () => boolean) => Effect.Effect<boolean>
  /** Waits until nothing is active for the key, whatever came of it. Idle: returns at once (EX-8). */
  readonly settled: (key: Key) => Effect.Effect<void>
}

/** What callers of `run` wait for. */
interface Execution<A, E> {
  readonly done: Deferred.Deferred<A, E | RunInterrupted>
  /** Callers of `run` that have not left. */
  waiters: number
  /** Asked for by a wake: it starts even when every waiter has left before. */
  woken: boolean
  /** Set when it ended in a failure. */
  failure?: Cause.Cause<E | RunInterrupted>
}

/** A key that is not idle. */
interface Entry<A, E> {
  readonly idle: Deferred.Deferred<void>
  current: Execution<A, E>
  /** The one pending flag: what was asked since the current drain was started, and is not answered by joining it. */
  next: Execution<A, E> | undefined
  stopping: boolean
  fiber: Fiber.RuntimeFiber<A, E>
}

/** Logs the failure of a drain that nobody waited for, with what its key is called. */
export const unseen = (name: string, key: string, cause: Cause.Cause<unknown>): Effect.Effect<void> =>
  Effect.annotateLogs(Effect.logError("a drain failed and nobody waited for it", cause), name, key)

/**
 * Makes a coordinator whose drains end with the scope: closing it interrupts all of them and waits for their cleanup;
 * from then on a wake does nothing and a run fails with `RunInterrupted` (EX-10).
 *
 * Drains run in the context of `make`, never in that of the caller: a wake from within a transaction or a span must
 * not pull the drain into it (EX-11).
 */
export const make = <Key, A, E>(options: {
  readonly drain: (key: Key, force: boolean) => Effect.Effect<A, E>
  /** Takes the failures that no caller of `run` took; logs them, when absent. */
  readonly report?: (key: Key, cause: Cause.Cause<unknown>) => Effect.Effect<void>
}): Effect.Effect<RunCoordinator<Key, A, E>, never, Scope.Scope> =>
  Effect.gen(function* () {
    const runFork = Runtime.runFork(yield* Effect.runtime<never>())
    const scheduler = yield* FairScheduler.current
    const entries = new Map<Key, Entry<A, E>>()
    let closed = false

    const makeExecution = (): Execution<A, E> => ({
      done: Deferred.unsafeMake(FiberId.none),
      waiters: 0,
      woken: false
    })

    /**
     * Each drain is a fiber of its own, so that what it forked ends with it and not with the last drain of the key.
     * It starts on the scheduler, not on this stack: 10,000 drains that wake themselves cost no depth (EX-9).
     * `interruptible` because `make` may have been called where interruption is off, while building a layer.
     */
    const spawn = (key: Key, force: boolean, onExit: (exit: Exit.Exit<A, E>) => void): Fiber.RuntimeFiber<A, E> => {
      const fiber = runFork(Effect.interruptible(Effect.suspend(() => options.drain(key, force))), {
        immediate: false,
        scheduler
      })
      fiber.addObserver(onExit)
      return fiber
    }

    const begin = (key: Key, force: boolean): Execution<A, E> => {
      const entry: Entry<A, E> = {
        idle: Deferred.unsafeMake(FiberId.none),
        current: makeExecution(),
        next: undefined,
        stopping: false,
        fiber: spawn(key, force, (exit) => settle(key, entry, exit))
      }
      entries.set(key, entry)
      return entry.current
    }

    /**
     * Race: a wake against the end of a drain. This runs in the step in which the drain's fiber ends; a wake is either
     * before it and found in `next`, or after it and finds the key idle or the following drain active (EX-4).
     */
    const settle = (key: Key, entry: Entry<A, E>, exit: Exit.Exit<A, E>): void => {
      const { current, next, stopping } = entry
      entry.next = undefined
      const respawn = (force: boolean) => {
        entry.fiber = spawn(key, force, (exit) => settle(key, entry, exit))
      }
      if (Exit.isSuccess(exit) && next !== undefined && !stopping) return respawn(false)
      if (next === undefined) {
        entries.delete(key)
      } else {
        entry.current = next
        entry.stopping = false
        // While active nobody waits for `next`; while stopping, each caller of `run` that has not left does.
        respawn(next.waiters > 0)
      }
      conclude(key, current, exit)
      if (next === undefined) Deferred.unsafeDone(entry.idle, Exit.void)
    }

    /** Gives the execution its exit; a failure that nobody waits for is reported instead (EX-5, EX-7). */
    const conclude = (key: Key, execution: Execution<A, E>, exit: Exit.Exit<A, E>): void => {
      if (Exit.isSuccess(exit)) return Deferred.unsafeDone(execution.done, exit)
      if (Cause.isInterruptedOnly(exit.cause)) return cancel(key, execution)
      // An interruption beside a failure is left out: it would read as one of the waiter's own fiber.
      execution.failure = Cause.filter(exit.cause, (part) => !Cause.isInterruptType(part))
      if (execution.waiters === 0) report(key, execution.failure)
      Deferred.unsafeDone(execution.done, Exit.failCause(execution.failure))
    }

    const cancel = (key: Key, execution: Execution<A, E>): void =>
      Deferred.unsafeDone(execution.done, Exit.fail(new RunInterrupted({ key: String(key) })))

    const report = (key: Key, cause: Cause.Cause<unknown>): void => {
      runFork(options.report === undefined ? unseen("key", String(key), cause) : options.report(key, cause))
    }

    /**
     * Race: an interrupt against what was asked before it. The pending wake and the runs that wait for a cleanup are
     * dropped in the step that stops the drain; what comes after that step is new and finds `next` empty (EX-6).
     */
    const stop = (key: Key, entry: Entry<A, E>, by: FiberId.FiberId): void => {
      const { next } = entry
      entry.next = undefined
      entry.stopping = true
      if (next !== undefined) cancel(key, next)
      entry.fiber.unsafeInterruptAsFork(by)
    }

    /** Race: a run against the end of the cleanup. Before it, the run is in `next`; after it, the key is idle. */
    const join = (key: Key): Execution<A, E> => {
      const entry = entries.get(key)
      if (entry === undefined) return begin(key, true)
      return entry.stopping ? (entry.next ??= makeExecution()) : entry.current
    }

    const leave = (key: Key, execution: Execution<A, E>): Effect.Effect<void> =>
      Effect.sync(() => {
        execution.waiters -= 1
        if (execution.waiters > 0) return
        // Race: the failure was given to a waiter that was interrupted before it could take it.
        if (execution.failure !== undefined) return report(key, execution.failure)
        // A run that still waits for a cleanup has not started: without its last caller it is dropped (EX-3).
        const entry = entries.get(key)
        if (entry?.next === execution && !execution.woken) entry.next = undefined
      })

    // Joining and leaving are paired: interruption is off between the count and the wait.
    const run = Effect.fn("RunCoordinator.run")((key: Key) =>
      Effect.uninterruptibleMask((restore) =>
        Effect.suspend((): Effect.Effect<A, E | RunInterrupted> => {
          if (closed) return Effect.fail(new RunInterrupted({ key: String(key) }))
          const execution = join(key)
          execution.waiters += 1
          return restore(Deferred.await(execution.done)).pipe(Effect.onInterrupt(() => leave(key, execution)))
        })
      )
    )

    const wake = (key: Key) =>
      Effect.sync(() => {
        if (closed) return
        const entry = entries.get(key)
        if (entry === undefined) begin(key, false)
        else (entry.next ??= makeExecution()).woken = true
      })

    // Whoever interrupts may be interrupted in turn: only the waiting ends, the key has been stopped by then.
    const interrupt = Effect.fn("RunCoordinator.interrupt")((key: Key) =>
      Effect.withFiberRuntime<void>((fiber) => {
        const entry = entries.get(key)
        if (entry === undefined) return Effect.void
        stop(key, entry, fiber.id())
        return Effect.asVoid(Effect.exit(Deferred.await(entry.current.done)))
      })
    )

    // Race: a cut against an interrupt before it. That one has dropped what was asked; nothing is asked again here.
    const cut = Effect.fn("RunCoordinator.cut")((key: Key, still: () => boolean) =>
      Effect.withFiberRuntime<boolean>((fiber) => {
        const entry = entries.get(key)
        if (entry === undefined || !still()) return Effect.succeed(false)
        if (!entry.stopping) {
          stop(key, entry, fiber.id())
          entry.next = { ...makeExecution(), woken: true }
        }
        return Effect.as(Effect.exit(Deferred.await(entry.current.done)), true)
      })
    )

    const settled = Effect.fn("RunCoordinator.settled")((key: Key) =>
      Effect.suspend(() => {
        const entry = entries.get(key)
        return entry === undefined ? Effect.void : Deferred.await(entry.idle)
      })
    )

    yield* Effect.addFinalizer(() =>
      Effect.suspend(() => {
        closed = true
        const open = Array.from(entries)
        for (const [key, entry] of open) stop(key, entry, FiberId.none)
        return Effect.forEach(open, ([, entry]) => Deferred.await(entry.idle), { discard: true })
      })
    )

    return { active: Effect.sync(() => Array.from(entries.keys())), run, wake, interrupt, cut, settled }
  })
