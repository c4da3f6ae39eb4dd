/** Marks the sessions whose process died, in the database or over a server. Spec: CL-400 in specs/cli.md. */
import { Effect, Option } from "effect"
import { Sessions } from "@daybook/core/session/Sessions"
import * as OwnerRows from "@daybook/log/coordination/OwnerRows"
import type { Session } from "@daybook/log/domain/Message"

/** The sessions, as interrupted if their activity runs without a living process. */
export const marked = (sessions: ReadonlyArray<Session>) =>
  Effect.gen(function* () {
    if (!sessions.some(OwnerRows.isRunning)) return sessions
    const found = yield* OwnerRows.findHere(sessions)
    if (Option.isSome(found)) return found.value
    const server = yield* Effect.serviceOption(Sessions)
    if (Option.isNone(server)) return sessions
    const left = new Set((yield* server.value.interrupted).map(({ id }) => id))
    return sessions.map((session) => (left.has(session.id) ? OwnerRows.asInterrupted(session) : session))
  })
