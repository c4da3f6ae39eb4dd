/** Calls this process's listeners after each commit. A listener's defect is logged and isolated. Spec: LG-45, LG-46. */
import { Effect, type Scope } from "effect"
import type { SessionEvent } from "../events/SessionEvents.ts"

type Listener = (events: ReadonlyArray<SessionEvent>) => Effect.Effect<void>

export interface Listeners {
  readonly listen: (listener: Listener) => Effect.Effect<void, never, Scope.Scope>
  readonly notify: (events: ReadonlyArray<SessionEvent>) => Effect.Effect<void>
}

const failed = (defect: unknown) => Effect.logError("an event listener failed", defect)

/** What the listener does. One that has done it already returns `Effect.void`: each append calls all of them. */
const call = (listener: Listener, events: ReadonlyArray<SessionEvent>): Effect.Effect<void> => {
  try {
    const called = listener(events)
    return called === Effect.void ? called : Effect.catchAllDefect(called, failed)
  } catch (defect) {
    return failed(defect)
  }
}

export const make = (): Listeners => {
  const listeners = new Set<Listener>()
  return {
    listen: (listener) =>
      Effect.acquireRelease(
        Effect.sync(() => void listeners.add(listener)),
        () => Effect.sync(() => listeners.delete(listener))
      ),
    notify: (events) => {
      let notified: Effect.Effect<void> = Effect.void
      for (const listener of listeners) {
        const called = call(listener, events)
        if (called === Effect.void) continue
        notified = notified === Effect.void ? called : Effect.zipRight(notified, called)
      }
      return notified
    }
  }
}
