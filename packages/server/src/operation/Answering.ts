/**
 * `answer`: applies a client's decision on a permission, or its answers to a question. Spec: SO-96..SO-99 in
 * specs/socket.md.
 */
import { Effect } from "effect"
import { Answer } from "@daybook/core/permission/PermissionAsker"
import type { Session } from "@daybook/log/domain/Message"
import { type Asks, questionAsk } from "../ask/Asks.ts"
import type { Backend } from "../session/Backend.ts"
import { Refused, refusedBy } from "../support/Refused.ts"
import type * as Wire from "../wire/Wire.ts"

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

export interface Answering {
  readonly backend: Backend
  readonly asks: Asks
  readonly session: Session
  readonly request: Wire.Answer
  /** Whether permissions may be decided from this socket. */
  readonly mayDecide: boolean
}

/** Applies the answer and returns the decision; the first answer counts. */
export const give = Effect.fn("Answering.give")(function* ({
  asks,
  backend,
  mayDecide,
  request,
  session
}: Answering): Effect.fn.Return<string, Refused> {
  const { ask, decision } = request
  const permission = asks.open(session.id).find((each) => each.ask === ask)
  if (permission !== undefined) {
    if (!mayDecide) return yield* refuse("EACCES", "permissions are decided on the socket of the user who serves")
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
    if (asks.answer(session.id, ask, answer) !== "taken") return yield* closed(asks.decisionOf(ask))
    return decision ?? ""
  }
  const open = yield* Effect.mapError(backend.sessions.questions(session.id), refusedBy)
  const question = open.find((each) => questionAsk(each) === ask)
  if (question === undefined) {
    const known = asks.decisionOf(ask)
    return yield* known === undefined ? refuse("ENOENT", "there is no such ask in this session") : closed(known)
  }
  if (request.answers === undefined && decision !== "dismiss") {
    return yield* refuse("EINVAL", 'a question takes "answers", or the decision "dismiss"')
  }
  const given =
    request.answers === undefined
      ? backend.sessions.dismissQuestion(question)
      : backend.sessions.answer({ ...question, answers: request.answers })
  yield* given.pipe(
    Effect.mapError((error) => (error._tag === "QuestionClosed" ? closed(asks.decisionOf(ask)) : refusedBy(error)))
  )
  const outcome = request.answers === undefined ? "dismiss" : "answered"
  asks.remember(ask, outcome)
  return outcome
})
