/**
 * Keeps approvals for one session in memory, while the process and the session live. Bounded: forgetting an approval
 * costs a question. Spec: PM-21 in specs/tools.md.
 */
import { Context, Effect, Layer } from "effect"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import { EventLog } from "@daybook/log/log/EventLog"
import type { Approval } from "../domain/Rule.ts"

const most = { sessions: 1_000, approvals: 200 }

/** Approvals by session. */
export class SessionApprovals extends Context.Tag("@daybook/core/SessionApprovals")<
  SessionApprovals,
  {
    readonly list: (sessionID: SessionID) => ReadonlyArray<Approval>
    readonly add: (sessionID: SessionID, approvals: ReadonlyArray<Approval>) => void
    readonly forget: (sessionID: SessionID) => void
  }
>() {}

/** Creates an empty set of approvals. */
export const make = (): SessionApprovals["Type"] => {
  const sessions = new Map<SessionID, ReadonlyArray<Approval>>()
  return {
    list: (sessionID) => sessions.get(sessionID) ?? [],
    add: (sessionID, approvals) => {
      const known = sessions.get(sessionID) ?? []
      sessions.delete(sessionID)
      sessions.set(sessionID, [...known, ...approvals].slice(-most.approvals))
      for (const oldest of sessions.keys()) {
        if (sessions.size <= most.sessions) break
        sessions.delete(oldest)
      }
    },
    forget: (sessionID) => void sessions.delete(sessionID)
  }
}

/** Forgets a session's approvals when its id is created again. */
export const layer: Layer.Layer<SessionApprovals, never, EventLog> = Layer.scoped(
  SessionApprovals,
  Effect.gen(function* () {
    const approvals = make()
    const log = yield* EventLog
    yield* log.listen((events) => {
      for (const { sessionID, type } of events) if (type === "session.created") approvals.forget(sessionID)
      return Effect.void
    })
    return approvals
  })
)
