/** Answers requests about questions of models. Spec: HT-1 in specs/http.md. */
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import { Effect } from "effect"
import { Api } from "@daybook/api"
import { Sessions } from "@daybook/core/session/Sessions"

/** Open questions, and their answers. */
export const layer = HttpApiBuilder.group(Api, "questions", (handlers) =>
  Effect.map(Sessions, (sessions) =>
    handlers
      .handle("questions", ({ path }) => sessions.questions(path.sessionID))
      .handle("answer", ({ path, payload }) => sessions.answer({ ...path, ...payload }))
      .handle("dismissQuestion", ({ path }) => sessions.dismissQuestion(path))
  )
)
