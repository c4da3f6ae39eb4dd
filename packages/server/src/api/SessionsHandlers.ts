/** Answers requests by the verbs of the facade. Spec: HT-1, HT-27 in specs/http.md. */
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import { Effect } from "effect"
import { Api } from "@daybook/api"
import { Sessions } from "@daybook/core/session/Sessions"
import type { CreateOptions, Placement } from "@daybook/core/session/SessionOptions"
import type { Roots } from "./Roots.ts"

/** Sessions, their state, and changes of it. */
export const layer = ({ check }: Roots) => {
  const placed = ({ root }: Placement) => (root === undefined ? Effect.void : check(root))
  const checked = ({ location, placement }: CreateOptions) =>
    Effect.zipRight(check(location.directory), placement === undefined ? Effect.void : placed(placement))
  return HttpApiBuilder.group(Api, "sessions", (handlers) =>
    Effect.map(Sessions, (sessions) =>
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
