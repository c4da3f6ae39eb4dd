/** Marks the sessions whose process died, in the database or over a server. Spec: CL-400 in specs/cli.md. */
import { Effect, Option } from "effect"
import { Sessions } from "@daybook/core/session/Sessions"
import * as CutOff from "@daybook/log/coordination/CutOff"
import type { Session } from "@daybook/log/domain/Message"
import { ReadSql } from "@daybook/log/storage/Database"

/** The sessions, as interrupted if their activity runs without a living process. */
export const marked = (sessions: ReadonlyArray<Session>) =>
  Effect.gen(function* () {
    if (!sessions.some(CutOff.isRunning)) return sessions
    const sql = yield* Effect.serviceOption(ReadSql)
    if (Option.isSome(sql)) return yield* Effect.provideService(CutOff.find(sessions), ReadSql, sql.value)
    const server = yield* Effect.serviceOption(Sessions)
    if (Option.isNone(server)) return sessions
    const left = new Set((yield* server.value.interrupted).map(({ id }) => id))
    return sessions.map((session) => (left.has(session.id) ? CutOff.asInterrupted(session) : session))
  })
