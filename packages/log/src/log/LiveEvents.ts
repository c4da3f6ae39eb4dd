/** Delivers live events to this process's subscribers, each through a bounded buffer. Spec: LG-13, LG-29 (TL-10). */
import { Effect, Exit, Mailbox, type Scope } from "effect"
import type { SessionID } from "../domain/Identifiers.ts"
import type { LiveEvent } from "../events/SessionEvents.ts"
import { type LiveSubscription, SubscriberOverflow } from "./EventLog.ts"
import { type LiveSubscription, SubscriberOverflow } from "./EventLog.ts"
import type { OpenTexts } from "./OpenTexts.ts"

type Subscriber = { readonly mailbox: Mailbox.Mailbox<LiveEvent, SubscriberOverflow>; readonly capacity: number }

/** Default number of events that a live subscriber may fall behind. */
const defaultCapacity = 4096
const mostCapacity = 65_536

export interface LiveOptions {
  readonly sessionID: SessionID
  readonly capacity?: number | undefined
}

export interface LiveEvents {
  readonly subscribe: (options: LiveOptions) => Effect.Effect<LiveSubscription, never, Scope.Scope>
  readonly publish: (event: LiveEvent) => void
}

export const make = (openTexts: OpenTexts): LiveEvents => {
  const subscribers = new Map<string, Set<Subscriber>>()

  const add = (sessionID: SessionID, subscriber: Subscriber) => {
    const set = subscribers.get(sessionID)
    if (set === undefined) subscribers.set(sessionID, new Set([subscriber]))
    else set.add(subscriber)
  }

  const remove = (sessionID: SessionID, subscriber: Subscriber) => {
    const set = subscribers.get(sessionID)
    set?.delete(subscriber)
    if (set?.size === 0) subscribers.delete(sessionID)
  }

  return {
    subscribe: Effect.fnUntraced(function* ({ capacity: requested, sessionID }) {
      const capacity = clamp(requested, defaultCapacity, mostCapacity)
      const mailbox = yield* Mailbox.make<LiveEvent, SubscriberOverflow>({ capacity, strategy: "dropping" })
      const subscriber: Subscriber = { mailbox, capacity }
      const soFar = yield* Effect.acquireRelease(
        Effect.sync(() => {
          add(sessionID, subscriber)
          // Read in the same step as the registration, so that the next live event follows `soFar`.
          return openTexts.of(sessionID)
        }),
        () => Effect.sync(() => remove(sessionID, subscriber))
      )
      return { live: Mailbox.toStream(mailbox), soFar }
    }),
    publish: (event) => {
      openTexts.published(event)
      const { sessionID } = event
      for (const subscriber of subscribers.get(sessionID) ?? []) {
        const { capacity, mailbox } = subscriber
        if (mailbox.unsafeOffer(event)) continue
        // Only this subscriber ends; the others continue (TL-10).
        mailbox.unsafeDone(Exit.fail(new SubscriberOverflow({ sessionID, capacity })))
        remove(sessionID, subscriber)
      }
    }
  }
}
