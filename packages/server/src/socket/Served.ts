/**
 * Serves one socket: the clients' operations on the sessions of one agent or model. Requests of a connection are taken
 * in order; long ones, above all runs, continue beside the next request, with whole frames interleaved. Spec:
 * SO-20..SO-39, SO-92..SO-99 in specs/socket.md (FR-2, FR-7..FR-11, DC-17, DC-19, DC-20).
 */
import { Effect, Either, FiberSet, Metric, Option, type Scope, Stream } from "effect"
import { Answer } from "@daybook/core/permission/PermissionAsker"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import { InvalidInput } from "@daybook/log/domain/InvalidInput"
import type { Session } from "@daybook/log/domain/Message"
import { modelText } from "@daybook/log/domain/Values"
import * as Metrics from "@daybook/log/support/Metrics"
import { clip } from "@daybook/transcript/Fold"
import { agentDirectory, timeText } from "@daybook/transcript/row/Rows"
import { type OpenAsk, questionAsk } from "../shared/Asks.ts"
import { type Backend, Refused, refusedBy, runsOf } from "./Backend.ts"
import * as Endpoint from "./Endpoint.ts"
import { getSession, mayDecide, runtimeOf } from "./Endpoint.ts"
import type { Connection, ConnectionClosed } from "./Listener.ts"
import { resume } from "./Replay.ts"
import type { Line } from "./Request.ts"
import { cancel, leave, send } from "./Send.ts"
import { addressIn, checkSpaceOwner, owns } from "./Subject.ts"
import * as Wire from "./Wire.ts"

// `answer`: applies a client's decision on a permission, or its answers to a question.

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
  endpoint: Endpoint.Endpoint,
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
  { asks }: Endpoint.Endpoint,
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
const answer = Effect.fn("Served.answer")(function* (
  endpoint: Endpoint.Endpoint,
  client: Endpoint.Client,
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
  yield* Endpoint.write(client, { type: "answered", ...(id === undefined ? {} : { id }), ask, decision })
})

// `status`: the active and waiting runs behind a socket.

const mostRuns = 256

const placeOf = ({ address, id }: Session) => ({
  session: address?.session ?? id,
  scope: address?.scope ?? "private",
  ...(address?.scope === "shared" ? { shared: address.shared } : {})
})

/** The subject's active and waiting runs of this server. */
const status = Effect.fn("Served.status")(function* (
  { asks, durable: { backend, drainer }, subject }: Endpoint.Endpoint,
  { id }: Wire.Status
): Effect.fn.Return<Extract<Wire.RunFrame, { readonly type: "status" }>, Refused> {
  const runs: Array<Wire.RunStatus> = []
  for (const sessionID of yield* drainer.busy) {
    if (runs.length > mostRuns) break
    // It may have been removed since.
    const session = Option.getOrUndefined(yield* Effect.option(backend.sessions.get(sessionID)))
    if (session === undefined || !(yield* owns(backend, subject, session))) continue
    const found = yield* Effect.orElseSucceed(runsOf(backend, session), () => [])
    const questions = yield* Effect.orElseSucceed(backend.sessions.questions(sessionID), () => [])
    const open = [...asks.open(sessionID).map(({ ask }) => ask), ...questions.map(questionAsk)]
    for (const { clientID, run, state } of found) {
      runs.push({
        ...placeOf(session),
        run,
        ...(clientID === undefined ? {} : { client_id: clientID }),
        state,
        ...(state === "active" && open.length > 0 ? { asks: open } : {})
      })
    }
  }
  const lag = yield* Metric.value(Metrics.loopLagAt("0.99"))
  return {
    type: "status",
    ...(id === undefined ? {} : { id }),
    kind: subject.kind,
    name: subject.name,
    runs: runs.slice(0, mostRuns),
    lag_ms: Math.round(lag.value),
    ...(runs.length > mostRuns ? { more: true } : {})
  }
})

// `list`: the sessions of an agent or model in one scope, page by page.

/** Code units of a title or path in a list, at most, so that a page fits a frame. */
const longestText = 1024

const stateOf = ({ activity }: Session): Wire.SessionItem["state"] =>
  activity?.state === "running" ? "active" : activity?.state === "failed" ? "error" : "idle"

/** Uses the client's name for the cursor. */
const afterRefused = new InvalidInput({ field: "after", details: 'use "next" of the previous page, unchanged' })

/** One page of the subject's sessions in a scope, the latest change first. */
const list = Effect.fn("Served.list")(function* (
  { durable: { backend }, subject }: Endpoint.Endpoint,
  { after, id, limit, scope, shared }: Wire.List
): Effect.fn.Return<Extract<Wire.RunFrame, { readonly type: "list" }>, Refused> {
  const address = yield* addressIn(subject, { session: "default", scope, ...(shared === undefined ? {} : { shared }) })
  const page = yield* Effect.mapError(backend.sessions.list({ house: address, limit, cursor: after }), (error) =>
    refusedBy(error._tag === "InvalidInput" && error.field === "cursor" ? afterRefused : error)
  )
  const own = yield* Effect.filter(page.items, (session) => owns(backend, subject, session))
  if (own.length === 0) yield* checkSpaceOwner(subject, shared)
  const sessions = yield* Effect.forEach(own, (session) =>
    Effect.map(Effect.mapError(backend.inbox.count(session.id), refusedBy), (waiting): Wire.SessionItem => ({
      session: session.address?.session ?? session.id,
      session_id: session.id,
      ...(session.title === undefined ? {} : { title: clip(session.title, longestText) }),
      state: stateOf(session),
      waiting,
      cwd: clip(agentDirectory(session.root, session.location.directory), longestText),
      ...(session.model === undefined ? {} : { model: modelText(session.model) }),
      created_at: timeText(session.createdAt),
      updated_at: timeText(session.updatedAt)
    }))
  )
  return {
    type: "list",
    ...(id === undefined ? {} : { id }),
    sessions,
    ...(page.cursor === undefined ? {} : { next: page.cursor })
  }
})

/** Requests of one connection that are answered at the same time, at most. */
const requestsAtOnce = 64

const busy = new Refused({
  code: "EBUSY",
  message: `${requestsAtOnce} requests of this connection are being answered: wait for one of them`
})

const perform = (endpoint: Endpoint.Endpoint, client: Endpoint.Client, request: Wire.Request): Endpoint.Answer => {
  switch (request.op) {
    case "ping":
      return Endpoint.write(client, { type: "pong", ...(request.id === undefined ? {} : { id: request.id }) })
    case "send":
      return send(endpoint, client, request)
    case "resume":
      return resume(endpoint, client, request)
    case "cancel":
      return cancel(endpoint, client, request)
    case "answer":
      return answer(endpoint, client, request)
    case "status":
      return Effect.flatMap(status(endpoint, request), (frame) => Endpoint.write(client, frame))
    case "list":
      return Effect.flatMap(list(endpoint, request), (frame) => Endpoint.write(client, frame))
  }
}

const onLine = (
  endpoint: Endpoint.Endpoint,
  client: Endpoint.Client,
  line: Line
): Effect.Effect<void, ConnectionClosed> => {
  const { stopping } = endpoint
  const decoded = Wire.decode(line)
  if (Either.isLeft(decoded)) return Endpoint.write(client, Wire.errorFrame(decoded.left))
  const request = decoded.right
  const about = { id: "id" in request ? request.id : undefined }
  if (stopping.begun()) return Endpoint.refuse(client, Endpoint.stopRefused, about)
  const isBusy = client.requests >= requestsAtOnce && request.op !== "ping"
  const answered = stopping.until(isBusy ? busy : perform(endpoint, client, request))
  return Effect.catchTag(answered, "Refused", (refused) => Endpoint.refuse(client, refused, about))
}

/** Serves one connection until its client has gone and its answers have ended. */
const onConnection = (endpoint: Endpoint.Endpoint, connection: Connection): Effect.Effect<void> => {
  const { asks, stopping } = endpoint
  return Effect.gen(function* () {
    const client = yield* Endpoint.makeClient(connection)
    // Lines sent before the client went away are still processed.
    yield* connection.lines.pipe(
      Stream.interruptWhen(stopping.awaitEnd),
      Stream.runForEach((line) => Effect.ignore(onLine(endpoint, client, line)))
    )
    asks.look()
    // The client stopped sending; pending answers still go out.
    yield* Effect.raceFirst(FiberSet.awaitEmpty(client.answers), connection.closed)
    if (stopping.ended()) yield* Effect.ignore(connection.write(Endpoint.farewell))
  }).pipe(Effect.scoped, Effect.ensuring(leave(endpoint, connection.id)))
}

/** Returns the handler of a connection; it may run for many connections until the scope closes. */
export const make = (
  options: Omit<Endpoint.Endpoint, "scope" | "temps">
): Effect.Effect<(connection: Connection) => Effect.Effect<void>, never, Scope.Scope> =>
  Effect.map(Effect.scope, (scope) => {
    const endpoint: Endpoint.Endpoint = { ...options, scope, temps: Endpoint.makeTempSessions() }
    return (connection) => onConnection(endpoint, connection)
  })
