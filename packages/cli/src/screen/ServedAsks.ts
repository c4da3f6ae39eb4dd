/**
 * Asks a server for the permissions that a session waits for: the server keeps open permissions in memory, and no event
 * reports an open permission. Spec: SC-526 in specs/screen.md.
 */
import { Cause, Effect } from "effect"
import type { Decision } from "@daybook/api/group/WorkApi"
import { Sessions } from "@daybook/core/session/Sessions"
import type { Answer } from "@daybook/core/permission/PermissionAsker"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import type { Server } from "../host/Remote.ts"
import type { Asks } from "./Asks.ts"

/** The decision as the server takes it; undefined if nobody decided. */
export const decisionOf = (answer: Answer): Decision | undefined => {
  switch (answer._tag) {
    case "Once":
      return { decision: "once" }
    case "Session":
      return { decision: "session" }
    case "Always":
      return { decision: "always" }
    case "AlwaysFor":
      return { decision: "always", resources: answer.resources }
    case "Decline":
      return { decision: "decline" }
    case "Correct":
      return { decision: "correct", message: answer.message }
    case "Unavailable":
    case "Expired":
      return undefined
  }
}

export interface Options {
  readonly server: Server
  /** The session whose calls run; undefined while none do. */
  readonly working: () => SessionID | undefined
  readonly asks: Asks
  /** Sends a decision; its failure is shown. */
  readonly send: (decided: Effect.Effect<void, unknown>) => void
}

const pause = "1 second"

/** Looks once a second while calls run. */
export const watch = ({ asks, send, server, working }: Options) =>
  Effect.gen(function* () {
    const { decide, permissions } = yield* Effect.promise(() => import("../host/RemoteHost.ts"))
    const sessions = yield* Sessions
    /** A task of the session asks as a session of its own. */
    const isOurs = (sessionID: SessionID) => (open: { readonly sessionID: SessionID }) =>
      open.sessionID === sessionID
        ? Effect.succeed(true)
        : Effect.map(sessions.get(open.sessionID), ({ parentID }) => parentID === sessionID)
    const look = Effect.suspend(() => {
      const sessionID = working()
      if (sessionID === undefined) return Effect.sync(() => asks.served([]))
      return Effect.map(Effect.flatMap(permissions(server), Effect.filter(isOurs(sessionID))), (all) =>
        asks.served(
          all.map((open) => ({
            ask: open.ask,
            request: open,
            answer: (answer) => {
              const decision = decisionOf(answer)
              if (decision !== undefined) send(decide(server, open, decision))
            }
          }))
        )
      )
    })
    // The stream of events reports a lost connection.
    const quietly = Effect.catchAllCause(look, (cause) => Effect.logDebug(Cause.pretty(cause)))
    yield* Effect.forever(Effect.zipRight(quietly, Effect.sleep(pause)))
  })
