/** The verbs of the facade as requests: each endpoint has the name of its verb. Spec: HT-1, HT-13 in specs/http.md. */
import * as HttpApiClient from "@effect/platform/HttpApiClient"
import * as HttpClient from "@effect/platform/HttpClient"
import type * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import { type Context, Effect, Schema, type Stream } from "effect"
import { Api } from "@daybook/api/Api"
import { checkBounds } from "@daybook/core/session/PromptBounds"
import type { Sessions } from "@daybook/core/session/Sessions"
import { type Identifiers, MessageID, type SessionID } from "@daybook/log/domain/Identifiers"
import { NotWaiting } from "@daybook/log/domain/InboxError"
import { validate } from "@daybook/log/domain/InvalidInput"
import { Budget, Location, ModelRef, PromptInput } from "@daybook/log/domain/Values"
import { answered, decoded } from "./connection/Answered.ts"
import { type ConnectionError, UnexpectedAnswer } from "./connection/ClientError.ts"
import { at, ofSession as of } from "./connection/OfSession.ts"
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

const isMessageID = Schema.is(MessageID)

/** A prompt that no server admits is not sent: a server closes the connection of a body that is too large. */
const bounded = (prompt: PromptInput) => Effect.flatMap(validate("prompt", PromptInput, prompt), checkBounds)

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
    Effect.flatMap(
      of(sessionID, (at) => work.wait(at)),
      ({ session, settled }) => (settled ? Effect.succeed(session) : wait(sessionID))
    )
  const resumed = (sessionID: SessionID, id: string): ReturnType<Verbs["resume"]> =>
    Effect.flatMap(
      of(sessionID, ({ path }) => work.resumed({ path: { ...path, id } })),
      ({ settled }) => (settled ? Effect.void : resumed(sessionID, id))
    )
  return {
    create: (payload) => answered(sessions.create({ payload })),
    named: (payload) => answered(sessions.named({ payload })),
    addressed: (address) =>
      Effect.map(answered(sessions.addressed({ payload: { address } })), (session) => session ?? undefined),
    place: (sessionID, payload) => of(sessionID, (at) => sessions.place({ ...at, payload })),
    get: (sessionID) => of(sessionID, (at) => sessions.get(at)),
    list: (urlParams = {}) => answered(sessions.list({ urlParams })),
    active: answered(sessions.active()),
    interrupted: answered(sessions.interrupted()),
    waiting: answered(sessions.waiting()),
    usage: (sessionID) => of(sessionID, (at) => sessions.usage(at)),
    metrics: (sessionID) => of(sessionID, (at) => sessions.metrics(at)),
    rename: (sessionID, title) => of(sessionID, (at) => sessions.rename({ ...at, payload: { title } })),
    switchAgent: (sessionID, agent) => of(sessionID, (at) => sessions.switchAgent({ ...at, payload: { agent } })),
    // The body is the argument itself: the name of the argument is not in it.
    switchModel: (sessionID, payload) =>
      Effect.zipRight(
        validate("model", ModelRef, payload),
        of(sessionID, (at) => sessions.switchModel({ ...at, payload }))
      ),
    move: (sessionID, payload) =>
      Effect.zipRight(
        validate("location", Location, payload),
        of(sessionID, (at) => sessions.move({ ...at, payload }))
      ),
    setBudget: (sessionID, payload) =>
      Effect.zipRight(
        validate("budget", Budget, payload),
        of(sessionID, (at) => sessions.setBudget({ ...at, payload }))
      ),
    label: ({ label, messageID, sessionID }) =>
      of(sessionID, () => sessions.label({ path: { sessionID, messageID: segment(messageID) }, payload: { label } })),
    remove: (sessionID) => of(sessionID, (at) => sessions.remove(at)),

    messages: ({ sessionID, ...urlParams }) => of(sessionID, (at) => transcript.messages({ ...at, urlParams })),
    message: (sessionID, messageID) =>
      Effect.map(
        of(sessionID, () => transcript.message({ path: { sessionID, messageID } })),
        (message) => message ?? undefined
      ),
    context: (sessionID) => of(sessionID, (at) => transcript.context(at)),
    tree: ({ sessionID, ...urlParams }) => of(sessionID, (at) => transcript.tree({ ...at, urlParams })),
    todos: (sessionID) => of(sessionID, (at) => transcript.todos(at)),
    request: ({ sessionID, ...urlParams }) => of(sessionID, (at) => transcript.request({ ...at, urlParams })),

    prompt: ({ sessionID, ...payload }) =>
      Effect.zipRight(bounded(payload.prompt), answered(work.prompt({ ...at(sessionID), headers: {}, payload }))),
    inbox: (sessionID) => of(sessionID, (at) => work.inbox(at)),
    withdraw: (sessionID, messageID) =>
      of(sessionID, () =>
        isMessageID(messageID)
          ? work.withdraw({ path: { sessionID, messageID } })
          : Effect.flatMap(
              validate("messageID", Schema.String, messageID),
              (messageID) => new NotWaiting({ sessionID, messageID })
            )
      ),
    ask: ({ id, sessionID, ...payload }) =>
      bounded(payload.prompt).pipe(
        Effect.zipRight(id === undefined ? identifiers.message : validate("id", MessageID, id)),
        Effect.flatMap((id) => untilSettled(work.ask({ ...at(sessionID), payload: { ...payload, id } }))),
        answered
      ),
    wait,
    // Only the first request may start a run: a repeated one could start another after the end of this one.
    resume: (sessionID) =>
      Effect.flatMap(identifiers.message, (id) =>
        Effect.flatMap(
          of(sessionID, (at) => work.resume({ ...at, urlParams: { id } })),
          ({ settled }) => (settled ? Effect.void : resumed(sessionID, id))
        )
      ),
    // As for a session that is not there.
    interrupt: (sessionID, payload = {}) =>
      Effect.catchTag(
        of(sessionID, (at) => work.interrupt({ ...at, payload })),
        "SessionNotFound",
        () => Effect.void
      ),
    settle: (sessionID) => of(sessionID, (at) => work.settle(at)),
    compact: (sessionID) => of(sessionID, (at) => work.compact(at)),
    unprune: (sessionID) => of(sessionID, (at) => work.unprune(at)),
    branch: ({ sessionID, ...payload }) => of(sessionID, (at) => work.branch({ ...at, payload })),
    fork: ({ sessionID, ...payload }) => of(sessionID, (at) => work.fork({ ...at, payload })),
    reset: (sessionID) => of(sessionID, (at) => work.reset(at)),
    undo: ({ sessionID, ...payload }) => of(sessionID, (at) => work.undo({ ...at, payload })),
    redo: ({ sessionID, ...payload }) => of(sessionID, (at) => work.redo({ ...at, payload })),

    questions: (sessionID) => of(sessionID, (at) => questions.questions(at)),
    answer: ({ answers, ...path }) =>
      answered(questions.answer({ path: { ...path, callID: segment(path.callID) }, payload: { answers } })),
    dismissQuestion: (path) => answered(questions.dismissQuestion({ path: { ...path, callID: segment(path.callID) } })),

    history: ({ after, incarnation, limit, sessionID }) =>
      of(sessionID, (at) =>
        events.history({ ...at, urlParams: { after: Place.textOf(after), incarnation, limit } })
      ).pipe(
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
