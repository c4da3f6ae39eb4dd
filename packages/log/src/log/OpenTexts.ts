/**
 * Keeps the deltas of texts and reasoning that this process is streaming. Deltas are not stored, and a subscriber that
 * joins in the middle needs the beginning. A text is kept from its start in the log to its end, in memory. A text above
 * the limit loses its deltas. Spec: LG-29 in specs/log.md.
 */
import type { SessionID } from "../domain/Identifiers.ts"
import type { EventIn, LiveEvent, SessionEvent } from "../events/SessionEvents.ts"
import type { OpenText } from "./EventLog.ts"

/** Maximum code units kept per text. */
const limit = 1_048_576

export interface OpenTexts {
  /** Records appended events. */
  readonly appended: (events: ReadonlyArray<SessionEvent>) => void
  /** Records a published delta. */
  readonly published: (event: LiveEvent) => void
  /** Drops a removed session. */
  readonly forget: (sessionID: SessionID) => void
  readonly of: (sessionID: SessionID) => ReadonlyArray<OpenText>
}

export const make = (): OpenTexts => {
  const sessions = new Map<SessionID, Map<string, OpenText>>()

  const begin = (sessionID: SessionID, type: OpenText["type"], id: string) => {
    const texts = sessions.get(sessionID) ?? new Map<string, OpenText>()
    sessions.set(sessionID, texts.set(id, { type, id, said: "" }))
  }

  const end = (sessionID: SessionID, id: string) => {
    const texts = sessions.get(sessionID)
    texts?.delete(id)
    if (texts?.size === 0) sessions.delete(sessionID)
  }

  const add = (sessionID: SessionID, id: string, delta: string) => {
    const texts = sessions.get(sessionID)
    const text = texts?.get(id)
    if (texts === undefined || text?.said === undefined) return
    const said = text.said.length + delta.length > limit ? undefined : text.said + delta
    texts.set(id, { ...text, said })
  }

  const take = (event: SessionEvent): void => {
    switch (event.type) {
      case "session.next.text.started":
        return begin(event.sessionID, "text", event.data.textID)
      case "session.next.reasoning.started":
        return begin(event.sessionID, "reasoning", event.data.reasoningID)
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
    appended: (events) => events.forEach(take),
    published: (event) => {
      if (event.type === "session.next.text.delta") add(event.sessionID, event.data.textID, event.data.delta)
      else if (event.type === "session.next.reasoning.delta") {
        add(event.sessionID, event.data.reasoningID, event.data.delta)
      }
    },
    forget: (sessionID) => void sessions.delete(sessionID),
    of: (sessionID) => [...(sessions.get(sessionID)?.values() ?? [])]
  }
}
