/**
 * The permission questions of the sessions that run in this process or on a server, for the screen. A question that is withdrawn, because its
 * call ended or was answered elsewhere, goes away. Spec: SC-520, SC-526 in specs/screen.md.
 */
import { Cause, Effect, Layer } from "effect"
import type { Decision } from "@daybook/api/group/WorkApi"
import { Answer, PermissionAsker, type PermissionRequest } from "@daybook/core/permission/PermissionAsker"
import { Sessions } from "@daybook/core/session/Sessions"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import type { Server } from "../host/Remote.ts"

export interface Pending {
  readonly request: PermissionRequest
  readonly answer: (answer: Answer) => void
}

/** A question of a server, with its name there. */
export interface Served {
  readonly ask: string
  readonly request: PermissionRequest
  readonly answer: (answer: Answer) => void
}

export interface Asks {
  readonly layer: Layer.Layer<PermissionAsker>
  readonly pending: () => ReadonlyArray<Pending>
  /** Replaces the open questions of a server by these. */
  readonly served: (open: ReadonlyArray<Served>) => void
  readonly watch: (changed: () => void) => void
  /** Refuses open questions and later ones: nobody is there any more. */
  readonly close: () => void
}

export const make = (): Asks => {
  const open = new Set<Pending>()
  let changed = () => {}
  let isClosed = false
  const ask = (request: PermissionRequest) =>
    Effect.async<Answer>((resume) => {
      if (isClosed) return resume(Effect.succeed(Answer.Unavailable()))
      const pending: Pending = {
        request,
        answer: (answer) => {
          if (!open.delete(pending)) return
          resume(Effect.succeed(answer))
          changed()
        }
      }
      open.add(pending)
      changed()
      return Effect.sync(() => {
        if (open.delete(pending)) changed()
      })
    })
  const known = new Map<string, Pending>()
  /** Questions that were answered here: a list that was asked for before may still have them. */
  const answered = new Set<string>()
  const offer = ({ answer, ask, request }: Served) => {
    const pending: Pending = {
      request,
      answer: (given) => {
        answered.add(ask)
        known.delete(ask)
        open.delete(pending)
        answer(given)
        changed()
      }
    }
    known.set(ask, pending)
    open.add(pending)
    changed()
  }
  const served = (all: ReadonlyArray<Served>) => {
    const names = new Set(all.map(({ ask }) => ask))
    for (const [ask, pending] of known) {
      if (names.has(ask)) continue
      known.delete(ask)
      open.delete(pending)
      changed()
    }
    for (const each of all) if (!known.has(each.ask) && !answered.has(each.ask)) offer(each)
  }
  return {
    served,
    layer: Layer.succeed(PermissionAsker, PermissionAsker.of({ ask })),
    pending: () => [...open],
    watch: (callback) => {
      changed = callback
    },
    close: () => {
      isClosed = true
      // A server asks others.
      for (const pending of known.values()) open.delete(pending)
      for (const pending of open) pending.answer(Answer.Unavailable())
    }
  }
}

/** The answer in the form that the server accepts; undefined if nobody decided. */
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

export interface ServerOptions {
  readonly server: Server
  /** The session whose calls run; undefined while none do. */
  readonly working: () => SessionID | undefined
  readonly asks: Asks
  /** Sends a decision; its failure is shown. */
  readonly send: (decided: Effect.Effect<void, unknown>) => void
}

const pause = "1 second"

/**
 * Asks a server for the permissions that its session waits for, once a second while calls run: the server keeps open permissions in
 * memory, and no event reports one (SC-526).
 */
export const watchServer = Effect.fnUntraced(function* ({ asks, send, server, working }: ServerOptions) {
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
