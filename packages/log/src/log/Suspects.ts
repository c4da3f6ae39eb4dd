/** Remembers the sessions whose last append was refused. Spec: LG-21. */
import { Cause, Exit, Option } from "effect"
import type { SessionID } from "../domain/Identifiers.ts"
import type { Result } from "./Appends.ts"

/** Maximum number of suspect sessions. When it is exceeded, the oldest ones are trusted again. */
const limit = 1024

export interface Suspects {
  readonly has: (sessionID: SessionID) => boolean
  readonly record: (sessionID: SessionID, result: Result) => void
}

/**
 * True for refused events and hook failures. False for conflicts, which are cheap to answer, and for database failures.
 */
const wasRefused = (result: Result): boolean =>
  Exit.isFailure(result) &&
  Option.match(Cause.failureOption(result.cause), {
    onNone: () => true,
    onSome: ({ _tag }) => _tag === "EventRefused" || _tag === "HookFailed"
  })

export const make = (): Suspects => {
  // In the order of their last refusal.
  const sessions = new Set<SessionID>()
  return {
    has: (sessionID) => sessions.has(sessionID),
    record: (sessionID, result) => {
      sessions.delete(sessionID)
      if (!wasRefused(result)) return
      sessions.add(sessionID)
      for (const oldest of sessions) {
        if (sessions.size <= limit) return
        sessions.delete(oldest)
      }
    }
  }
}
