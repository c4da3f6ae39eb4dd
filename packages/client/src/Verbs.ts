/** The verbs of the facade as requests: each endpoint has the name of its verb. Spec: HT-1, HT-13 in specs/http.md. */
import * as HttpApiClient from "@effect/platform/HttpApiClient"
import * as HttpClient from "@effect/platform/HttpClient"
import type * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import { type Context, Effect, Schema, type Stream } from "effect"
import { Api } from "@daybook/api/Api"
import type { Sessions } from "@daybook/core/session/Sessions"
import { type Identifiers, MessageID, type SessionID } from "@daybook/log/domain/Identifiers"
import { answered, decoded } from "./connection/Answered.ts"
import { type ConnectionError, UnexpectedAnswer } from "./connection/ClientError.ts"
import * as Place from "./events/Place.ts"

type Facade = Context.Tag.Service<Sessions>

/** A verb of the facade that can also fail as a connection does. */
export type Remote<Verb> = Verb extends (...given: infer Given) => Effect.Effect<infer A, infer E>
  ? (...given: Given) => Effect.Effect<A, E | ConnectionError>
  : Verb extends (...given: infer Given) => Stream.Stream<infer A, infer E>
    ? (...given: Given) => Stream.Stream<A, E | ConnectionError>
    : Verb extends Effect.Effect<infer A, infer E>
      ? Effect.Effect<A, E | ConnectionError>
      : never

/** Every verb that is one request, or some; the others are streams. */
export type Verbs = {
  readonly [Name in Exclude<keyof Facade, "events" | "eventsMarked" | "live">]: Remote<Facade[Name]>
}

/** An error without a body of the API comes from something else than the API. */
const ofApi = HttpClient.transformResponse(
  Effect.flatMap((response: HttpClientResponse.HttpClientResponse) =>
    response.status < 400 || response.headers["content-type"]?.includes("json") === true
      ? Effect.succeed(response)
      : new UnexpectedAnswer({ status: response.status, details: "the body is not JSON" })
  )
)

/** The client that the API gives. */
export const derived = (http: HttpClient.HttpClient) =>
  HttpApiClient.makeWith(Api, { httpClient: ofApi(http), transformResponse: decoded })

/** A text as one segment of a path. */
const segment = encodeURIComponent

const isPending = (value: object): value is { readonly pending: true } => "pending" in value

/** Repeats a request for work until the work has settled (HT-13). */
const untilSettled = <A extends object, E>(
  request: Effect.Effect<A | { readonly pending: true }, E>
): Effect.Effect<A, E> =>
  Effect.flatMap(request, (value) => (isPending(value) ? untilSettled(request) : Effect.succeed(value)))

/** The verbs over a connection. */
export const make = (
  { events, questions, sessions, transcript, work }: Effect.Effect.Success<ReturnType<typeof derived>>,
  identifiers: Identifiers["Type"]
): Verbs => {
  const wait: Verbs["wait"] = (sessionID) =>
    Effect.flatMap(answered(work.wait({ path: { sessionID } })), ({ session, settled }) =>
      settled ? Effect.succeed(session) : wait(sessionID)
    )
  const at = (sessionID: SessionID) => ({ path: { sessionID } })
  return {
    create: (payload) => answered(sessions.create({ payload })),
    named: (payload) => answered(sessions.named({ payload })),
    addressed: (address) =>
      Effect.map(answered(sessions.addressed({ payload: { address } })), (session) => session ?? undefined),
    place: (sessionID, payload) => answered(sessions.place({ ...at(sessionID), payload })),
    get: (sessionID) => answered(sessions.get(at(sessionID))),
    list: (urlParams = {}) => answered(sessions.list({ urlParams })),
    active: answered(sessions.active()),
    interrupted: answered(sessions.interrupted()),
    waiting: answered(sessions.waiting()),
    usage: (sessionID) => answered(sessions.usage(at(sessionID))),
    metrics: (sessionID) => answered(sessions.metrics(at(sessionID))),
    rename: (sessionID, title) => answered(sessions.rename({ ...at(sessionID), payload: { title } })),
    switchAgent: (sessionID, agent) => answered(sessions.switchAgent({ ...at(sessionID), payload: { agent } })),
    switchModel: (sessionID, payload) => answered(sessions.switchModel({ ...at(sessionID), payload })),
    move: (sessionID, payload) => answered(sessions.move({ ...at(sessionID), payload })),
    setBudget: (sessionID, payload) => answered(sessions.setBudget({ ...at(sessionID), payload })),
    label: ({ label, messageID, sessionID }) =>
      answered(sessions.label({ path: { sessionID, messageID: segment(messageID) }, payload: { label } })),
    remove: (sessionID) => answered(sessions.remove(at(sessionID))),

    messages: ({ sessionID, ...urlParams }) => answered(transcript.messages({ ...at(sessionID), urlParams })),
    message: (sessionID, messageID) =>
      Effect.map(answered(transcript.message({ path: { sessionID, messageID } })), (message) => message ?? undefined),
    context: (sessionID) => answered(transcript.context(at(sessionID))),
    tree: ({ sessionID, ...urlParams }) => answered(transcript.tree({ ...at(sessionID), urlParams })),
    todos: (sessionID) => answered(transcript.todos(at(sessionID))),
    request: ({ sessionID, ...urlParams }) => answered(transcript.request({ ...at(sessionID), urlParams })),

    prompt: ({ sessionID, ...payload }) => answered(work.prompt({ ...at(sessionID), headers: {}, payload })),
    inbox: (sessionID) => answered(work.inbox(at(sessionID))),
    withdraw: (sessionID, messageID) => answered(work.withdraw({ path: { sessionID, messageID } })),
    ask: ({ id, sessionID, ...payload }) =>
      (id === undefined ? identifiers.message : Schema.decode(MessageID)(id)).pipe(
        Effect.flatMap((id) => untilSettled(work.ask({ ...at(sessionID), payload: { ...payload, id } }))),
        answered
      ),
    wait,
    // Only the first request may start a run: a repeated one could start another after the end of this one.
    resume: (sessionID) =>
      Effect.flatMap(answered(work.resume(at(sessionID))), ({ settled }) =>
        settled ? Effect.void : Effect.asVoid(wait(sessionID))
      ),
    interrupt: (sessionID, payload = {}) => answered(work.interrupt({ ...at(sessionID), payload })),
    settle: (sessionID) => answered(work.settle(at(sessionID))),
    compact: (sessionID) => answered(work.compact(at(sessionID))),
    unprune: (sessionID) => answered(work.unprune(at(sessionID))),
    branch: ({ sessionID, ...payload }) => answered(work.branch({ ...at(sessionID), payload })),
    fork: ({ sessionID, ...payload }) => answered(work.fork({ ...at(sessionID), payload })),
    reset: (sessionID) => answered(work.reset(at(sessionID))),
    undo: ({ sessionID, ...payload }) => answered(work.undo({ ...at(sessionID), payload })),
    redo: ({ sessionID, ...payload }) => answered(work.redo({ ...at(sessionID), payload })),

    questions: (sessionID) => answered(questions.questions(at(sessionID))),
    answer: ({ answers, ...path }) =>
      answered(questions.answer({ path: { ...path, callID: segment(path.callID) }, payload: { answers } })),
    dismissQuestion: (path) => answered(questions.dismissQuestion({ path: { ...path, callID: segment(path.callID) } })),

    history: ({ after, incarnation, limit, sessionID }) =>
      events.history({ ...at(sessionID), urlParams: { after: Place.textOf(after), incarnation, limit } }).pipe(
        answered,
        Effect.flatMap(({ cursor, events, hasMore }) =>
          Effect.map(Place.read(cursor), ({ incarnation, position }) => ({
            events,
            cursor: position,
            incarnation,
            hasMore
          }))
        ),
        Effect.mapError(Place.asGiven(after))
      )
  }
}
