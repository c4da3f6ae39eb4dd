/**
 * Ends a command that runs too long. One sleeping fiber serves all commands of a shell, because a fiber for each would cost a
 * short command a tenth of its time. Spec: SL-23 in specs/shell.md.
 */
import { Duration, Effect, FiberId, Runtime, type Scope } from "effect"

export interface Deadline {
  /** Calls back after this time, unless `clear` comes before. */
  readonly set: (millis: number, call: () => void) => void
  readonly clear: () => void
}

/** The scope's end ends the wait. */
export const make: Effect.Effect<Deadline, never, Scope.Scope> = Effect.gen(function* () {
  const clock = yield* Effect.clock
  const scope = yield* Effect.scope
  const fork = Runtime.runFork(yield* Effect.runtime())
  let due: { readonly at: number; readonly call: () => void } | undefined
  /** When the fiber wakes. It does not wake for each command: most have ended by then. */
  let wakes = Infinity
  let sleeper: ReturnType<typeof fork> | undefined

  const watch: Effect.Effect<void> = Effect.suspend(() => {
    wakes = due?.at ?? Infinity
    if (due === undefined) return Effect.void
    const left = due.at - clock.unsafeCurrentTimeMillis()
    if (left > 0) return Effect.zipRight(clock.sleep(Duration.millis(left)), watch)
    const { call } = due
    due = undefined
    wakes = Infinity
    return Effect.sync(call)
  })
  return {
    set: (millis, call) => {
      due = { at: clock.unsafeCurrentTimeMillis() + millis, call }
      if (due.at >= wakes) return
      sleeper?.unsafeInterruptAsFork(FiberId.none)
      sleeper = fork(watch, { scope })
    },
    clear: () => {
      due = undefined
    }
  }
})
