/** Answers requests for what a session holds. Spec: HT-1 in specs/http.md. */
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import { Effect } from "effect"
import { Api } from "@daybook/api"
import { Sessions } from "@daybook/core/session/Sessions"
import { EventLog } from "@daybook/log/log/EventLog"
import { expiring } from "./Restarting.ts"

/** Transcripts, trees, todos and recorded requests. */
export const layer = HttpApiBuilder.group(Api, "transcript", (handlers) =>
  Effect.map(Effect.all([EventLog, Sessions]), ([log, sessions]) =>
    handlers
      .handle("messages", ({ path, urlParams }) => sessions.messages({ ...path, ...urlParams }))
      .handle("message", ({ path }) =>
        Effect.map(sessions.message(path.sessionID, path.messageID), (found) => found ?? null)
      )
      .handle("context", ({ path }) => sessions.context(path.sessionID))
      .handle("tree", ({ path, urlParams }) => sessions.tree({ ...path, ...urlParams }))
      .handle("todos", ({ path }) => sessions.todos(path.sessionID))
      .handle("request", ({ path, urlParams }) =>
        expiring(log, path.sessionID)(sessions.request({ ...path, ...urlParams }))
      )
  )
)
