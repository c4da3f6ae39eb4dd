/**
 * Sessions of a server: the same names, arguments, results and errors as `Sessions` (core), and the errors of the
 * connection. Runs wherever there is `fetch`. Spec: HT-1, HT-13, HT-39, HT-55, HT-56, HT-59..HT-64, HT-504 in
 * specs/http.md.
 */
import type { Decision, OpenPermission, PermissionClosed } from "@daybook/api/group/WorkApi"
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import * as HttpApiClient from "@effect/platform/HttpApiClient"
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import type * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import { Context, type Duration, Effect, Layer, type Redacted, Schema, type Stream } from "effect"
import { Api } from "@daybook/api"
import type { OfferedAgent, OfferedModels, OfferedTemplate, OpenShell } from "@daybook/api/group/ServerApi"
import type { SessionLimits } from "@daybook/api/group/SessionsApi"
import type { NotServed, ShellsUnavailable } from "@daybook/api/wire/Access"
import { checkBounds } from "@daybook/core/session/PromptBounds"
import type { Sessions } from "@daybook/core/session/Sessions"
import * as Identifiers from "@daybook/log/domain/Identifiers"
import { isMessageID, MessageID, type SessionID } from "@daybook/log/domain/Identifiers"
import { NotWaiting } from "@daybook/log/domain/InboxError"
import { type InvalidInput, validate } from "@daybook/log/domain/InvalidInput"
import type { NodesReport } from "@daybook/log/domain/NodesReport"
import type { StatsReport } from "@daybook/log/domain/StoreStats"
import { Budget, Location, ModelRef, PromptInput } from "@daybook/log/domain/Values"
import type { LogUnavailable, SessionNotFound } from "@daybook/log/log/EventLog"
import type { PromptsOptions, PromptsPage, SearchOptions, SearchPage } from "@daybook/log/search/Search"
import type { StoreError } from "@daybook/log/store/StoreError"
import {
  answered,
  at,
  type ConnectionError,
  decoded,
  ofSession as of,
  ofSession,
  UnexpectedAnswer
} from "./ClientError.ts"
import * as Streams from "./Streams.ts"

// The verbs of the facade as requests: each endpoint has the name of its verb.

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
  readonly [Name in Exclude<keyof Facade, "events" | "eventsMarked" | "follow" | "live">]: Remote<Facade[Name]>
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

/** A prompt that no server admits is not sent: a server closes the connection of a body that is too large. */
const bounded = (prompt: PromptInput) => Effect.flatMap(validate("prompt", PromptInput, prompt), checkBounds)

const isPending = (value: object): value is { readonly pending: true } => "pending" in value

/** Repeats a request for work until the work has settled (HT-13). */
const untilSettled = <A extends object, E>(
  request: Effect.Effect<A | { readonly pending: true }, E>
): Effect.Effect<A, E> =>
  Effect.flatMap(request, (value) => (isPending(value) ? untilSettled(request) : Effect.succeed(value)))

/** The verbs over a connection. */
const makeVerbs = (
  { events, questions, sessions, transcript, work }: Effect.Effect.Success<ReturnType<typeof derived>>,
  identifiers: Identifiers.Identifiers["Type"]
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
        events.history({ ...at, urlParams: { after: Streams.textOfPlace(after), incarnation, limit } })
      ).pipe(
        Effect.flatMap(({ cursor, events, hasMore }) =>
          Effect.map(Streams.readPlace(cursor), ({ incarnation, position }) => ({
            events,
            cursor: position,
            incarnation,
            hasMore
          }))
        ),
        Effect.mapError(Streams.asGiven(after))
      )
  }
}

// What a server says besides `Sessions`: figures of its database, searches, limits of sessions, live shells.

/** What to measure. */
export interface StatsScope {
  /** One session of the database. Default: the whole database. */
  readonly sessionID?: SessionID | undefined
  /** Count everything, also if the database is large. */
  readonly exact?: boolean | undefined
}

/** Where to look. */
type InFolder = { readonly directory?: string | undefined }

export interface Machine {
  /** Where the bytes of the database or of a session are, and what the session did (ST-50). */
  readonly stats: (
    what?: StatsScope
  ) => Effect.Effect<StatsReport, SessionNotFound | LogUnavailable | NotServed | ConnectionError>
  /** The window of the session's model, and the configured budget if it holds for the session. */
  readonly limits: (
    sessionID: SessionID
  ) => Effect.Effect<SessionLimits, SessionNotFound | StoreError | ConnectionError>
  /** Calls that wait for a person's permission (HT-37). */
  readonly permissions: Effect.Effect<ReadonlyArray<OpenPermission>, ConnectionError>
  readonly decide: (
    sessionID: SessionID,
    ask: string,
    decision: Decision
  ) => Effect.Effect<void, PermissionClosed | ConnectionError>
  /** One page of the sessions whose texts match, the best first. The server indexes new events first (HT-39). */
  readonly search: (
    options: SearchOptions
  ) => Effect.Effect<SearchPage, InvalidInput | LogUnavailable | NotServed | ConnectionError>
  /** The prompts of people, the newest first. */
  readonly prompts: (
    options?: PromptsOptions
  ) => Effect.Effect<PromptsPage, InvalidInput | LogUnavailable | NotServed | ConnectionError>
  /** The models that sessions can be given, with those that miss a setting, and the providers that did not list theirs. */
  readonly models: Effect.Effect<OfferedModels, NotServed | ConnectionError>
  /** The agents of the server and its user; with a folder, also those of its project. */
  readonly agents: (options?: InFolder) => Effect.Effect<ReadonlyArray<OfferedAgent>, InvalidInput | ConnectionError>
  /** The templates of the server and its user; with a folder, also those of its project. */
  readonly templates: (
    options?: InFolder
  ) => Effect.Effect<ReadonlyArray<OfferedTemplate>, InvalidInput | ConnectionError>
  /** The open live shells of the server's machine. `follow` with the types of `shellTypes` watches them. */
  readonly shells: Effect.Effect<ReadonlyArray<OpenShell>, NotServed | ShellsUnavailable | ConnectionError>
  /** The nodes of the server's database, and the sessions that wait for another one. */
  readonly nodes: Effect.Effect<NodesReport, LogUnavailable | ConnectionError>
}

/** The questions over a connection. */
const makeMachine = ({
  choices,
  machine,
  permissions,
  search,
  sessions
}: Effect.Effect.Success<ReturnType<typeof derived>>): Machine => ({
  stats: ({ exact = false, sessionID } = {}) => {
    const urlParams = exact ? { exact: "1" as const } : {}
    return sessionID === undefined
      ? answered(machine.stats({ urlParams }))
      : ofSession(sessionID, (at) => machine.sessionStats({ ...at, urlParams }))
  },
  limits: (sessionID) => ofSession(sessionID, sessions.limits),
  permissions: answered(permissions.allPermissions()),
  decide: (sessionID, ask, decision) => {
    const path = { sessionID, ask }
    switch (decision.decision) {
      case "always":
        return answered(permissions.decide({ path, payload: decision }))
      case "correct":
        return answered(permissions.decide({ path, payload: decision }))
      default:
        return answered(permissions.decide({ path, payload: decision }))
    }
  },
  search: (urlParams) => answered(search.search({ urlParams })),
  prompts: (urlParams = {}) => answered(search.prompts({ urlParams })),
  models: answered(choices.models()),
  agents: (urlParams = {}) => answered(choices.agents({ urlParams })),
  templates: (urlParams = {}) => answered(choices.templates({ urlParams })),
  shells: answered(machine.shells()),
  nodes: answered(machine.nodes())
})

/** How to reach a server. */
export interface Options {
  /** For example `http://127.0.0.1:4310`. */
  readonly baseUrl: string
  readonly token: string | Redacted.Redacted
  /** How long a stream tries to connect again before it fails. Default: two minutes. */
  readonly giveUpAfter?: Duration.DurationInput
}

/** What `DaybookClient` offers. */
export interface DaybookClientService extends Verbs, Streams.Streams, Machine {}

/**
 * The sessions of one server.
 *
 * @example
 * ```ts
 * import { DaybookClient } from "@daybook/client"
 * import { Effect } from "effect"
 *
 * // The sessions of the server, last used first.
 * export const listed = Effect.flatMap(DaybookClient, (daybook) => daybook.list())
 * ```
 */
export class DaybookClient extends Context.Tag("@daybook/client/DaybookClient")<
  DaybookClient,
  DaybookClientService
>() {}

/** A client on the given way to send requests. */
export const make = Effect.fnUntraced(function* ({ baseUrl, giveUpAfter = "2 minutes", token }: Options) {
  const http = HttpClient.mapRequest(yield* HttpClient.HttpClient, (request) =>
    request.pipe(HttpClientRequest.prependUrl(baseUrl), HttpClientRequest.bearerToken(token))
  )
  const api = yield* derived(http)
  const head: Streams.Streams["head"] = (sessionID) => ofSession(sessionID, api.events.head)
  return DaybookClient.of({
    ...makeVerbs(api, yield* Identifiers.Identifiers),
    ...Streams.makeStreams(http, giveUpAfter, head),
    ...makeMachine(api)
  })
})

/** A client on `fetch`. */
export const layer = (options: Options): Layer.Layer<DaybookClient> =>
  Layer.effect(DaybookClient, make(options)).pipe(Layer.provide([FetchHttpClient.layer, Identifiers.layer]))
