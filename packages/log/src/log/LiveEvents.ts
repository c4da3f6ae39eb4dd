/** Delivers live events to this process's subscribers, each through a bounded buffer. Spec: LG-13, LG-29 (TL-10). */
import { Effect, Exit, Mailbox, type Scope } from "effect"
import type { SessionID } from "../domain/Identifiers.ts"
import type { LiveEvent } from "../events/SessionEvents.ts"
import { clamp } from "../support/Clamp.ts"
import { type LiveSubscription, SubscriberOverflow } from "./EventLog.ts"
import type { OpenText, OpenTexts } from "./OpenTexts.ts"

type Subscriber = (event: LiveEvent) => void

/** Default number of events that a live subscriber may fall behind. */
const defaultCapacity = 4096
const mostCapacity = 65_536

export interface LiveOptions {
  readonly sessionID: SessionID
  readonly capacity?: number | undefined
}

export interface LiveEvents {
  readonly hear: (
    sessionID: SessionID,
    begin: (soFar: ReadonlyArray<OpenText>) => Subscriber
  ) => Effect.Effect<void, never, Scope.Scope>
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

  const hear: LiveEvents["hear"] = (sessionID, begin) =>
    Effect.asVoid(
      Effect.acquireRelease(
        Effect.sync(() => {
          // In one step: the next live event follows `soFar`.
          const subscriber = begin(openTexts.of(sessionID))
          add(sessionID, subscriber)
          return subscriber
        }),
        (subscriber) => Effect.sync(() => remove(sessionID, subscriber))
      )
    )

  return {
    hear,
    subscribe: Effect.fnUntraced(function* ({ capacity: requested, sessionID }) {
      const capacity = clamp(requested, defaultCapacity, mostCapacity)
      const mailbox = yield* Mailbox.make<LiveEvent, SubscriberOverflow>({ capacity, strategy: "dropping" })
      const subscriber = (event: LiveEvent) => {
        if (mailbox.unsafeOffer(event)) return
        // Only this subscriber ends; the others continue (TL-10).
        mailbox.unsafeDone(Exit.fail(new SubscriberOverflow({ sessionID, capacity })))
        remove(sessionID, subscriber)
      }
      let before: ReadonlyArray<OpenText> = []
      yield* hear(sessionID, (soFar) => {
        before = soFar
        return subscriber
      })
      return { live: Mailbox.toStream(mailbox), soFar: before }
    }),
    publish: (event) => {
      openTexts.published(event)
      for (const subscriber of subscribers.get(event.sessionID) ?? []) subscriber(event)
    }
  }
}
