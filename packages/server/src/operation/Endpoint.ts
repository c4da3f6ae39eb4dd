/** What the operations of one socket share: its subject, its runtimes, and the state of its requests. */
import { Effect, type Scope } from "effect"
import type { Session } from "@daybook/log/domain/Message"
import type { AskOptions } from "../ask/AskFrames.ts"
import type { Asks } from "../ask/Asks.ts"
import type { DrainedBackend } from "../session/Drainer.ts"
import { addressIn, checkSpaceOwner, find, type Subject } from "../session/Subject.ts"
import type { TempSessions } from "../session/TempSessions.ts"
import type { Stopping } from "../socket/Stopping.ts"
import { Refused } from "../support/Refused.ts"
import type * as Wire from "../wire/Wire.ts"
import type { Admissions } from "./Admissions.ts"
import type { Client } from "./Client.ts"

export interface Endpoint {
  readonly subject: Subject
  readonly durable: DrainedBackend
  /** Creates the temp runtime with the first temp session. */
  readonly temp: Effect.Effect<DrainedBackend, Refused>
  readonly stopping: Stopping
  readonly asks: Asks
  readonly admissions: Admissions
  readonly temps: TempSessions
  /** The scope of work that outlives its client. */
  readonly scope: Scope.Scope
}

/** Whether permissions may be decided here: only on the user's own socket. */
export const mayDecide = ({ subject }: Endpoint): boolean => subject.space === undefined

/** How asks are shown to the client. */
export const askingOf = (endpoint: Endpoint, { connection }: Client): AskOptions => ({
  asks: endpoint.asks,
  canAnswer: () => mayDecide(endpoint) && connection.sendsMore()
})

export const runtimeOf = (
  { durable, temp }: Endpoint,
  { scope }: { readonly scope: Wire.Scope }
): Effect.Effect<DrainedBackend, Refused> => (scope === "temp" ? temp : Effect.succeed(durable))

type Target = Pick<Wire.Resume, "session" | "scope" | "shared">

/** The session that the request names; undefined if it does not exist. */
export const findSession = Effect.fnUntraced(function* (
  { subject }: Endpoint,
  { backend }: DrainedBackend,
  request: Target
): Effect.fn.Return<Session | undefined, Refused> {
  const address = yield* addressIn(subject, request)
  const session = yield* find(backend, subject, address)
  if (session === undefined) yield* checkSpaceOwner(subject, request.shared)
  return session
})

/** The session that the request names; fails if it does not exist. */
export const getSession = (
  endpoint: Endpoint,
  runtime: DrainedBackend,
  request: Target
): Effect.Effect<Session, Refused> =>
  Effect.filterOrFail(
    findSession(endpoint, runtime, request),
    (session) => session !== undefined,
    () => new Refused({ code: "ENOENT", message: `there is no session "${request.session}"` })
  )
