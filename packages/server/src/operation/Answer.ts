/**
 * `answer`: applies a client's decision on a permission, or its answers to a question. Spec: SO-96..SO-99 in
 * specs/socket.md.
 */
import { Effect } from "effect"
import { Answer } from "@daybook/core/permission/PermissionAsker"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import { type OpenAsk, questionAsk } from "../ask/Asks.ts"
import type { Backend } from "../session/Backend.ts"
import type { ConnectionClosed } from "../socket/Connection.ts"
import { Refused, refusedBy } from "../support/Refused.ts"
import type * as Wire from "../wire/Wire.ts"
import * as Client from "./Client.ts"
import { type Endpoint, getSession, mayDecide, runtimeOf } from "./Endpoint.ts"

const refuse = (code: Refused["code"], message: string) => new Refused({ code, message })

const closed = (decision: string | undefined) =>
  refuse(
    "EALREADY",
    `this ask is closed${decision === undefined ? "" : ` (${decision})`}: it was answered before, or elsewhere`
  )

const answerOf = ({ always, decision, message = "" }: Wire.Answer): Answer | undefined => {
  switch (decision) {
    case "once":
      return Answer.Once()
    case "always":
      return always === undefined ? Answer.Always() : Answer.AlwaysFor({ resources: always })
    case "session":
      return Answer.Session()
    case "decline":
      return Answer.Decline()
    case "correct":
      return Answer.Correct({ message })
    default:
      return undefined
  }
}

const answerPermission = Effect.fnUntraced(function* (
  endpoint: Endpoint,
  sessionID: SessionID,
  permission: OpenAsk,
  request: Wire.Answer
) {
  const { asks } = endpoint
  if (!mayDecide(endpoint))
    return yield* refuse("EACCES", "permissions are decided on the socket of the user who serves")
  const answer = answerOf(request)
  if (answer === undefined) {
    return yield* refuse(
      "EINVAL",
      '"decision" on a permission has to be "once", "session", "always", "decline" or "correct"'
    )
  }
  const lasts = answer._tag === "Session" || answer._tag === "Always" || answer._tag === "AlwaysFor"
  if (lasts && permission.request.always.length === 0) {
    return yield* refuse("EINVAL", 'this permission can be given for one call only: decide "once"')
  }
  if (asks.answer(sessionID, request.ask, answer) !== "taken") return yield* closed(asks.decisionOf(request.ask))
  return request.decision ?? ""
})

const answerQuestion = Effect.fnUntraced(function* (
  { asks }: Endpoint,
  { sessions }: Backend,
  sessionID: SessionID,
  { answers, ask, decision }: Wire.Answer
) {
  const open = yield* Effect.mapError(sessions.questions(sessionID), refusedBy)
  const question = open.find((each) => questionAsk(each) === ask)
  if (question === undefined) {
    const known = asks.decisionOf(ask)
    return yield* known === undefined ? refuse("ENOENT", "there is no such ask in this session") : closed(known)
  }
  if (answers === undefined && decision !== "dismiss") {
    return yield* refuse("EINVAL", 'a question takes "answers", or the decision "dismiss"')
  }
  const given = answers === undefined ? sessions.dismissQuestion(question) : sessions.answer({ ...question, answers })
  yield* Effect.mapError(given, (error) =>
    error._tag === "QuestionClosed" ? closed(asks.decisionOf(ask)) : refusedBy(error)
  )
  const outcome = answers === undefined ? "dismiss" : "answered"
  asks.remember(ask, outcome)
  return outcome
})

/** Applies the answer and writes the decision; the first answer counts. */
export const answer = Effect.fn("Served.answer")(function* (
  endpoint: Endpoint,
  client: Client.Client,
  request: Wire.Answer
): Effect.fn.Return<void, Refused | ConnectionClosed> {
  const { ask, id } = request
  const runtime = yield* runtimeOf(endpoint, request)
  const session = yield* getSession(endpoint, runtime, request)
  const permission = endpoint.asks.open(session.id).find((each) => each.ask === ask)
  const decision =
    permission === undefined
      ? yield* answerQuestion(endpoint, runtime.backend, session.id, request)
      : yield* answerPermission(endpoint, session.id, permission, request)
  yield* Client.write(client, { type: "answered", ...(id === undefined ? {} : { id }), ask, decision })
})
