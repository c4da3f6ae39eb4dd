/** Answers requests by the verbs of the facade. Spec: HT-1, HT-27 in specs/http.md. */
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import { Effect, Option } from "effect"
import { Api } from "@daybook/api"
import type { SessionLimits } from "@daybook/api/group/SessionsApi"
import { ModelResolver } from "@daybook/core/model/ModelResolver"
import { Sessions } from "@daybook/core/session/Sessions"
import type { CreateOptions, Placement } from "@daybook/core/session/SessionOptions"
import type { Session } from "@daybook/log/domain/Message"
import type { Budget } from "@daybook/log/domain/Values"
import type { Roots } from "./Roots.ts"

type Resolver = typeof ModelResolver.Service

/** The window of a session's model, and the configured budget for a session that has no other. */
const limitsOf = ({ resolve }: Resolver, { budget, model, parentID }: Session, configured: Budget | undefined) =>
  Effect.map(Effect.option(resolve(model)), (found): SessionLimits => {
    const contextTokens = Option.match(found, { onNone: () => 0, onSome: ({ info }) => info.contextTokens })
    const isConfigured = configured !== undefined && budget === undefined && parentID === undefined
    return { ...(contextTokens > 0 ? { contextTokens } : {}), ...(isConfigured ? { budget: configured } : {}) }
  })

/** Sessions, their state, and changes of it. Sessions without a budget have the configured one. */
export const layer = ({ check }: Roots, configured: Budget | undefined) => {
  const placed = ({ root }: Placement) => (root === undefined ? Effect.void : check(root))
  const checked = ({ location, placement }: CreateOptions) =>
    Effect.zipRight(check(location.directory), placement === undefined ? Effect.void : placed(placement))
  return HttpApiBuilder.group(Api, "sessions", (handlers) =>
    Effect.map(Effect.all([ModelResolver, Sessions]), ([resolver, sessions]) =>
      handlers
        .handle("create", ({ payload }) => Effect.zipRight(checked(payload), sessions.create(payload)))
        .handle("named", ({ payload }) => Effect.zipRight(check(payload.location.directory), sessions.named(payload)))
        .handle("addressed", ({ payload }) => Effect.map(sessions.addressed(payload.address), (found) => found ?? null))
        .handle("list", ({ urlParams }) => sessions.list(urlParams))
        .handle("active", () => sessions.active)
        .handle("interrupted", () => sessions.interrupted)
        .handle("waiting", () => sessions.waiting)
        .handle("get", ({ path }) => sessions.get(path.sessionID))
        .handle("usage", ({ path }) => sessions.usage(path.sessionID))
        .handle("limits", ({ path }) =>
          Effect.flatMap(sessions.get(path.sessionID), (session) => limitsOf(resolver, session, configured))
        )
        .handle("metrics", ({ path }) => sessions.metrics(path.sessionID))
        .handle("rename", ({ path, payload }) => sessions.rename(path.sessionID, payload.title))
        .handle("switchAgent", ({ path, payload }) => sessions.switchAgent(path.sessionID, payload.agent))
        .handle("switchModel", ({ path, payload }) => sessions.switchModel(path.sessionID, payload))
        .handle("move", ({ path, payload }) =>
          Effect.zipRight(check(payload.directory), sessions.move(path.sessionID, payload))
        )
        .handle("place", ({ path, payload }) =>
          Effect.zipRight(placed(payload), sessions.place(path.sessionID, payload))
        )
        .handle("setBudget", ({ path, payload }) => sessions.setBudget(path.sessionID, payload))
        .handle("label", ({ path, payload }) => sessions.label({ ...path, ...payload }))
        .handle("remove", ({ path }) => sessions.remove(path.sessionID))
    )
  )
}
