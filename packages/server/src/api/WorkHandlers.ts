/**
 * Answers requests that prompt and run. A request that waits for work returns before a proxy or a client would give up, and the
 * work goes on. Spec: HT-12, HT-13 in specs/http.md.
 */
import { createHash } from "node:crypto"
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import { Deferred, Duration, Effect, Option } from "effect"
import { Api } from "@daybook/api"
import { Sessions } from "@daybook/core/session/Sessions"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import { EventLog } from "@daybook/log/log/EventLog"
import { Drain } from "./Drain.ts"
import { expiring } from "./Restarting.ts"
import * as Resumes from "./Resumes.ts"

const atMost = Duration.seconds(25)

/** Makes a valid prompt id of an idempotency key. */
const idOf = (key: string): string => `msg_key-${createHash("sha256").update(key).digest("hex").slice(0, 40)}`

/** Prompts, runs and branches. */
export const layer = HttpApiBuilder.group(Api, "work", (handlers) =>
  Effect.gen(function* () {
    const [drain, log, sessions] = [yield* Drain, yield* EventLog, yield* Sessions]
    /** The end of the time, or of the server, ends the waiting, not the work. */
    const within = <A, E, R>(work: Effect.Effect<A, E, R>) =>
      Effect.timeoutOption(work, atMost).pipe(Effect.raceFirst(Effect.as(Deferred.await(drain.start), Option.none())))
    const waited = <A, E>(sessionID: SessionID, work: Effect.Effect<A, E>) =>
      Effect.gen(function* () {
        const settled = yield* within(work)
        return { settled: Option.isSome(settled), session: yield* sessions.get(sessionID) }
      })
    const resumes = yield* Resumes.make
    return handlers
      .handle("prompt", ({ headers, path, payload }) => {
        const key = headers["idempotency-key"]
        const id = payload.id ?? (key === undefined ? undefined : idOf(key))
        return sessions.prompt({ ...path, ...payload, id })
      })
      .handle("inbox", ({ path }) => sessions.inbox(path.sessionID))
      .handle("withdraw", ({ path }) => sessions.withdraw(path.sessionID, path.messageID))
      .handle("ask", ({ path, payload }) =>
        Effect.map(
          within(expiring(log, path.sessionID)(sessions.ask({ ...path, ...payload }))),
          Option.getOrElse(() => ({ pending: true }) as const)
        )
      )
      .handle("wait", ({ path }) => waited(path.sessionID, sessions.wait(path.sessionID)))
      .handle("resume", ({ path: { sessionID }, urlParams: { id } }) => {
        const run = sessions.resume(sessionID)
        return waited(sessionID, id === undefined ? run : resumes.begin(sessionID, id, run))
      })
      .handle("resumed", ({ path: { id, sessionID } }) =>
        waited(sessionID, resumes.known(sessionID, id) ?? sessions.wait(sessionID))
      )
      .handle("interrupt", ({ path, payload }) => sessions.interrupt(path.sessionID, payload))
      .handle("settle", ({ path }) => sessions.settle(path.sessionID))
      .handle("compact", ({ path }) => sessions.compact(path.sessionID))
      .handle("unprune", ({ path }) => sessions.unprune(path.sessionID))
      .handle("branch", ({ path, payload }) => sessions.branch({ ...path, ...payload }))
      .handle("fork", ({ path, payload }) => expiring(log, path.sessionID)(sessions.fork({ ...path, ...payload })))
      .handle("reset", ({ path }) => sessions.reset(path.sessionID))
      .handle("undo", ({ path, payload }) => sessions.undo({ ...path, ...payload }))
      .handle("redo", ({ path, payload }) => sessions.redo({ ...path, ...payload }))
  })
)
