/**
 * Delivers live events to this process's subscribers, each through a bounded buffer, with the beginning of every text
 * in progress. Spec: LG-13, LG-29 in specs/log.md (TL-10).
 */
import { Effect, Exit, Mailbox, type Scope } from "effect"
import type { SessionID } from "../domain/Identifiers.ts"
import type { EventIn, LiveEvent, SessionEvent } from "../events/SessionEvents.ts"
import { clamp } from "../support/Clamp.ts"
import { acquireRelease } from "../support/Closing.ts"
import { type LiveRelay, type LiveSubscription, type OpenText, SubscriberOverflow } from "./EventLog.ts"

// Keeps the deltas of texts that this process is streaming, for subscribers that join in the middle; a text above the
// limit loses its deltas.

/** Maximum code units kept per text. */
const limit = 1_048_576

/** A text that grows in place: a delta of a text costs no new object. */
interface Growing extends Omit<OpenText, "said"> {
  said: string | undefined
}

export const makeOpenTexts = () => {
  const sessions = new Map<SessionID, Map<string, Growing>>()

  const begin = (sessionID: SessionID, text: Omit<OpenText, "said">) => {
    const texts = sessions.get(sessionID) ?? new Map<string, Growing>()
    sessions.set(sessionID, texts.set(text.id, { ...text, said: "" }))
  }

  const end = (sessionID: SessionID, id: string) => {
    const texts = sessions.get(sessionID)
    texts?.delete(id)
    if (texts?.size === 0) sessions.delete(sessionID)
  }

  const add = (sessionID: SessionID, id: string, delta: string) => {
    const text = sessions.get(sessionID)?.get(id)
    if (text?.said === undefined) return
    text.said = text.said.length + delta.length > limit ? undefined : text.said + delta
  }

  const take = (event: SessionEvent): void => {
    switch (event.type) {
      case "session.next.text.started": {
        const { assistantMessageID, textID: id } = event.data
        return begin(event.sessionID, { type: "text", id, assistantMessageID })
      }
      case "session.next.reasoning.started": {
        const { assistantMessageID, reasoningID: id } = event.data
        return begin(event.sessionID, { type: "reasoning", id, assistantMessageID })
      }
      case "session.next.text.ended":
        return end(event.sessionID, event.data.textID)
      case "session.next.reasoning.ended":
        return end(event.sessionID, event.data.reasoningID)
      // Fragments left open, because their end could not be stored, do not belong to a later step.
      case "session.next.step.started":
      case "session.next.step.ended":
      case "session.next.step.failed":
        sessions.delete(event.sessionID)
        return
      default:
        event satisfies EventIn<
          "about" | "prompts" | "steps" | "requests" | "calls" | "compactions" | "tree" | "decisions" | "shells"
        >
    }
  }

  return {
    appended: (events: ReadonlyArray<SessionEvent>) => events.forEach(take),
    published: (event: LiveEvent) => {
      if (event.type === "session.next.text.delta") add(event.sessionID, event.data.textID, event.data.delta)
      else if (event.type === "session.next.reasoning.delta") {
        add(event.sessionID, event.data.reasoningID, event.data.delta)
      }
    },
    /** Drops a removed session. */
    forget: (sessionID: SessionID) => void sessions.delete(sessionID),
    of: (sessionID: SessionID): ReadonlyArray<OpenText> =>
      Array.from(sessions.get(sessionID)?.values() ?? [], (text) => ({ ...text }))
  }
}

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
  readonly relay: (relay: LiveRelay) => Effect.Effect<void, never, Scope.Scope>
}

export const make = (openTexts: ReturnType<typeof makeOpenTexts>): LiveEvents => {
  const subscribers = new Map<string, Set<Subscriber>>()
  let relayed: LiveRelay | undefined

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
    Effect.flatMap(
      acquireRelease(
        Effect.sync(() => {
          // In one step: the next live event follows `soFar`.
          const subscriber = begin(openTexts.of(sessionID))
          add(sessionID, subscriber)
          return subscriber
        }),
        (subscriber) => Effect.sync(() => remove(sessionID, subscriber))
      ),
      (subscriber) =>
        relayed === undefined ? Effect.void : Effect.asVoid(Effect.forkScoped(relayed(sessionID, subscriber)))
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
    },
    relay: (relay) =>
      Effect.asVoid(
        acquireRelease(
          Effect.sync(() => void (relayed = relay)),
          () => Effect.sync(() => void (relayed = undefined))
        )
      )
  }
}
