/**
 * Tracks the admissions of one agent's or model's prompts: one at a time per session, whatever socket they came
 * through. An admission that waits for a run blocks its session. In-process state, changed synchronously. Spec: SO-31,
 * SO-91 in specs/socket.md (DC-20).
 */
import { Deferred, Effect, type Fiber, FiberId } from "effect"
import * as Lane from "../support/Lane.ts"
import type { Refused } from "../support/Refused.ts"
import type { Admitted } from "./Admission.ts"

/** A current admission. */
export interface Admitting {
  readonly session: string
  /** The client's id of the request. */
  readonly id: string
  readonly fiber: Fiber.RuntimeFiber<Admitted, Refused>
  /** Done once the admission waits for a run, or behind one that does. */
  readonly blocked: Deferred.Deferred<void>
}

export interface Admissions {
  readonly lane: Lane.Lane
  /** How many may wait in one session. */
  readonly backlog: number
  /** A cancel directly after its send waits for the admission. */
  readonly current: Set<Admitting>
  /** Sessions in which an admission waits for a run; later admissions wait with it. */
  readonly blocked: Set<string>
}

/** Shared by all sockets that serve the same sessions. */
export const make = (backlog: number): Admissions => ({
  lane: Lane.make(backlog),
  backlog,
  current: new Set(),
  blocked: new Set()
})

/** Adds an admission until its fiber ends. */
export const add = (
  { blocked, current }: Admissions,
  admission: Pick<Admitting, "session" | "id" | "fiber">
): Admitting => {
  const admitting: Admitting = { ...admission, blocked: Deferred.unsafeMake(FiberId.none) }
  if (blocked.has(admission.session)) Deferred.unsafeDone(admitting.blocked, Effect.void)
  current.add(admitting)
  admission.fiber.addObserver(() => current.delete(admitting))
  return admitting
}

/** The last current admission of a client's request. */
export const find = ({ current }: Admissions, session: string, id: string): Admitting | undefined =>
  [...current].findLast((each) => each.session === session && each.id === id)

/** Blocks the session while the effect waits for a run. */
export const blocking =
  ({ blocked, current }: Admissions, session: string) =>
  <A, E>(wait: Effect.Effect<A, E>): Effect.Effect<A, E> =>
    Effect.acquireUseRelease(
      Effect.sync(() => {
        blocked.add(session)
        for (const each of current) if (each.session === session) Deferred.unsafeDone(each.blocked, Effect.void)
      }),
      () => wait,
      () => Effect.sync(() => blocked.delete(session))
    )
