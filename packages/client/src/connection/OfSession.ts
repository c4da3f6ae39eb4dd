/** Requests about one session. No session has an id of another form: then nothing is sent. Spec: HT-60, HT-500 in specs/http.md. */
import { Effect, Schema } from "effect"
import { SessionID } from "@daybook/log/domain/Identifiers"
import { type InvalidInput, validate } from "@daybook/log/domain/InvalidInput"
import { SessionNotFound } from "@daybook/log/log/EventLog"
import { answered, type Failure } from "./Answered.ts"
import type { ServerUnreachable, UnexpectedAnswer } from "./ClientError.ts"

export const isSessionID = Schema.is(SessionID)

/** Where a session is in the API. */
export const at = (sessionID: SessionID) => ({ path: { sessionID } })

/** Refuses an id of another form: a text names no session, and another value is not an id. */
export const noSession = (sessionID: unknown): Effect.Effect<never, InvalidInput | SessionNotFound> =>
  Effect.flatMap(validate("sessionID", Schema.String, sessionID), (sessionID) => new SessionNotFound({ sessionID }))

/** The result of a request about the session. */
export const ofSession = <A, E>(
  sessionID: SessionID,
  request: (options: ReturnType<typeof at>) => Effect.Effect<A, E | Failure>
): Effect.Effect<A, E | InvalidInput | ServerUnreachable | UnexpectedAnswer | SessionNotFound> =>
  isSessionID(sessionID) ? answered(request(at(sessionID))) : noSession(sessionID)
