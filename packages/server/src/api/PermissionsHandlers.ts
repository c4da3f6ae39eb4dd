/** Answers requests about permissions of tools. The first answer counts, wherever it comes from. Spec: HT-37. */
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import { Effect } from "effect"
import { Api } from "@daybook/api"
import { type Decision, type OpenPermission, PermissionClosed } from "@daybook/api/group/PermissionsApi"
import { Answer } from "@daybook/core/permission/PermissionAsker"
import { InvalidInput } from "@daybook/log/domain/InvalidInput"
import { type Asks, type OpenAsk, timeLeft } from "../ask/Asks.ts"

const shown = Effect.forEach((open: OpenAsk) =>
  Effect.map(timeLeft(open), (left): OpenPermission => ({
    ask: open.ask,
    askedAt: open.askedAt,
    ...left,
    ...open.request
  }))
)

const answerOf = (given: Decision): Answer => {
  switch (given.decision) {
    case "once":
      return Answer.Once()
    case "session":
      return Answer.Session()
    case "always":
      return given.resources === undefined ? Answer.Always() : Answer.AlwaysFor({ resources: given.resources })
    case "decline":
      return Answer.Decline()
    case "correct":
      return Answer.Correct({ message: given.message })
  }
}

const lasting: ReadonlyArray<Decision["decision"]> = ["session", "always"]

/** Open permissions, and their answers. */
export const layer = (asks: Asks) =>
  HttpApiBuilder.group(Api, "permissions", (handlers) =>
    handlers
      .handle("permissions", ({ path }) => Effect.suspend(() => shown(asks.open(path.sessionID))))
      .handle("allPermissions", () => Effect.suspend(() => shown(asks.all())))
      .handle("decide", ({ path: { ask, sessionID }, payload }) =>
        Effect.gen(function* () {
          const found = asks.open(sessionID).find((each) => each.ask === ask)
          if (found?.request.always.length === 0 && lasting.includes(payload.decision)) {
            return yield* new InvalidInput({
              field: "decision",
              details: "can be given for one call only: decide once"
            })
          }
          if (asks.answer(sessionID, ask, answerOf(payload)) === "taken") return
          const decision = asks.decisionOf(ask)
          return yield* new PermissionClosed({ ask, ...(decision === undefined ? {} : { decision }) })
        })
      )
  )
