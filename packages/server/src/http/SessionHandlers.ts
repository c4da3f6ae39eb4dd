/** Answers requests about sessions by the facade's verbs. Spec: HT-1, HT-12, HT-13, HT-27, HT-37, HT-69, HT-504. */
import { createHash } from "node:crypto"
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import { Deferred, Duration, Effect, Fiber, Option, type Scope } from "effect"
import { Api } from "@daybook/api"
import type { OfferedAgent, OfferedModels, OfferedTemplate } from "@daybook/api/group/ServerApi"
import { type Decision, type OpenPermission, PermissionClosed } from "@daybook/api/group/WorkApi"
import type { SessionLimits } from "@daybook/api/group/SessionsApi"
import { NotServed } from "@daybook/api/wire/Access"
import { Agents } from "@daybook/core/agent/Agents"
import type { Agent } from "@daybook/core/domain/Agent"
import { ModelResolver } from "@daybook/core/model/ModelResolver"
import { Answer } from "@daybook/core/permission/PermissionAsker"
import { type Template, Templates } from "@daybook/core/prompt/Templates"
import type { RunError } from "@daybook/core/runner/RunError"
import type { CreateOptions, Placement } from "@daybook/core/session/SessionOptions"
import { Sessions } from "@daybook/core/session/Sessions"
import { realpath, isWithin } from "@daybook/core/support/TextFile"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import { InvalidInput } from "@daybook/log/domain/InvalidInput"
import type { Session } from "@daybook/log/domain/Message"
import type { Budget } from "@daybook/log/domain/Values"
import { EventLog } from "@daybook/log/log/EventLog"
import { type Asks, type OpenAsk, timeLeft } from "../shared/Asks.ts"
import { expiring } from "./EventsHandlers.ts"
import { Drain } from "./Streams.ts"

// The folders that sessions of HTTP clients may work in.

interface Roots {
  /** Checks that the folder exists and is below a root, by its real path. */
  readonly check: (directory: string) => Effect.Effect<void, InvalidInput>
}

const refused = new InvalidInput({ field: "directory", details: "must be a folder below a root of the server" })

const real = (folder: string) => Effect.tryPromise(() => realpath(folder))

/** Folders below these, by their real paths at the time of a request; without roots every folder is permitted. */
export const makeRoots = (roots: ReadonlyArray<string>): Roots => ({
  check: (directory) =>
    roots.length === 0
      ? Effect.void
      : Effect.gen(function* () {
          const found = yield* Effect.mapError(real(directory), () => refused)
          const own = yield* Effect.forEach(roots, (root) => Effect.orElseSucceed(real(root), () => undefined))
          if (!own.some((root) => root !== undefined && isWithin(root, found))) return yield* refused
        })
})

// Answers requests by the verbs of the facade.

type Resolver = typeof ModelResolver.Service

const limitsOf = ({ resolve }: Resolver, { budget, model, parentID }: Session, configured: Budget | undefined) =>
  Effect.map(Effect.option(resolve(model)), (found): SessionLimits => {
    const contextTokens = Option.match(found, { onNone: () => 0, onSome: ({ info }) => info.contextTokens })
    const isConfigured = configured !== undefined && budget === undefined && parentID === undefined
    return { ...(contextTokens > 0 ? { contextTokens } : {}), ...(isConfigured ? { budget: configured } : {}) }
  })

/** Reads and changes the state of sessions. A session without a budget has the configured budget. */
export const sessionsLayer = ({ check }: Roots, configured: Budget | undefined) => {
  const placed = ({ root }: Placement) => (root === undefined ? Effect.void : check(root))
  const checked = ({ location, placement }: CreateOptions) =>
    Effect.zipRight(check(location.directory), placement === undefined ? Effect.void : placed(placement))
  return HttpApiBuilder.group(Api, "sessions", (handlers) =>
    Effect.map(Effect.all([ModelResolver, Sessions]), ([resolver, sessions]) =>
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
        .handle("limits", ({ path }) =>
          Effect.flatMap(sessions.get(path.sessionID), (session) => limitsOf(resolver, session, configured))
        )
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

// Answers requests for what a session holds.

/** Transcripts, trees, todos and recorded requests. */
export const transcriptLayer = HttpApiBuilder.group(Api, "transcript", (handlers) =>
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

// The runs whose errors a request still has to hear of, under the names of the requests that began the runs.

interface Resumes {
  /** Runs the session, and remembers the outcome under the name; a known name joins its run. */
  readonly begin: (
    sessionID: SessionID,
    name: string,
    run: Effect.Effect<void, RunError>
  ) => Effect.Effect<void, RunError>
  /** The outcome of the run of this name; undefined if it is not known here, or not any more. */
  readonly known: (sessionID: SessionID, name: string) => Effect.Effect<void, RunError> | undefined
}

/** Runs that are remembered. The oldest is forgotten first; its work goes on. */
const remembered = 1_024

/** Remembers until the scope closes, which ends no run. */
const makeResumes: Effect.Effect<Resumes, never, Scope.Scope> = Effect.map(Effect.scope, (scope) => {
  const runs = new Map<string, Fiber.RuntimeFiber<void, RunError>>()
  const keyOf = (sessionID: SessionID, name: string) => `${sessionID} ${name}`
  const forget = Effect.suspend(() => {
    const [oldest] = runs.entries()
    if (oldest === undefined || runs.size <= remembered) return Effect.void
    runs.delete(oldest[0])
    return Fiber.interruptFork(oldest[1])
  })
  const known: Resumes["known"] = (sessionID, name) => {
    const fiber = runs.get(keyOf(sessionID, name))
    return fiber === undefined ? undefined : Fiber.join(fiber)
  }
  return {
    known,
    begin: (sessionID, name, run) =>
      Effect.uninterruptibleMask((restore) =>
        Effect.gen(function* () {
          const before = known(sessionID, name)
          if (before !== undefined) return yield* restore(before)
          const fiber = yield* Effect.forkIn(Effect.interruptible(run), scope)
          runs.set(keyOf(sessionID, name), fiber)
          yield* forget
          return yield* restore(Fiber.join(fiber))
        })
      )
  }
})

// Answers requests that prompt and run: a request returns before a proxy would give up, and the work goes on.

const atMost = Duration.seconds(25)

/** Makes a valid prompt id of an idempotency key. */
const idOf = (key: string): string => `msg_key-${createHash("sha256").update(key).digest("hex").slice(0, 40)}`

/** Prompts, runs and branches. */
export const workLayer = HttpApiBuilder.group(Api, "work", (handlers) =>
  Effect.gen(function* () {
    const [drain, log, sessions] = [yield* Drain, yield* EventLog, yield* Sessions]
    /** Timing out, or shutting down, stops the wait; the work continues. */
    const within = <A, E, R>(work: Effect.Effect<A, E, R>) =>
      Effect.timeoutOption(work, atMost).pipe(Effect.raceFirst(Effect.as(Deferred.await(drain.start), Option.none())))
    const waited = <A, E>(sessionID: SessionID, work: Effect.Effect<A, E>) =>
      Effect.gen(function* () {
        const settled = yield* within(work)
        return { settled: Option.isSome(settled), session: yield* sessions.get(sessionID) }
      })
    const resumes = yield* makeResumes
    return handlers
      .handle("prompt", ({ headers, path, payload }) => {
        const key = headers["idempotency-key"]
        const id = payload.id ?? (key === undefined ? undefined : idOf(key))
        return sessions.prompt({ ...path, ...payload, id })
      })
      .handle("inbox", ({ path }) => sessions.inbox(path.sessionID))
      .handle("withdraw", ({ path }) => sessions.withdraw(path.sessionID, path.messageID))
      .handle("ask", ({ path, payload }) =>
        Effect.map(
          within(expiring(log, path.sessionID)(sessions.ask({ ...path, ...payload }))),
          Option.getOrElse(() => ({ pending: true }) as const)
        )
      )
      .handle("wait", ({ path }) => waited(path.sessionID, sessions.wait(path.sessionID)))
      .handle("resume", ({ path: { sessionID }, urlParams: { id } }) => {
        const run = sessions.resume(sessionID)
        return waited(sessionID, id === undefined ? run : resumes.begin(sessionID, id, run))
      })
      .handle("resumed", ({ path: { id, sessionID } }) =>
        waited(sessionID, resumes.known(sessionID, id) ?? sessions.wait(sessionID))
      )
      .handle("interrupt", ({ path, payload }) => sessions.interrupt(path.sessionID, payload))
      .handle("settle", ({ path }) => sessions.settle(path.sessionID))
      .handle("compact", ({ path }) => sessions.compact(path.sessionID))
      .handle("unprune", ({ path }) => sessions.unprune(path.sessionID))
      .handle("branch", ({ path, payload }) => sessions.branch({ ...path, ...payload }))
      .handle("fork", ({ path, payload }) => expiring(log, path.sessionID)(sessions.fork({ ...path, ...payload })))
      .handle("reset", ({ path }) => sessions.reset(path.sessionID))
      .handle("undo", ({ path, payload }) => sessions.undo({ ...path, ...payload }))
      .handle("redo", ({ path, payload }) => sessions.redo({ ...path, ...payload }))
  })
)

// Answers requests about questions of models.

/** Open questions, and their answers. */
export const questionsLayer = HttpApiBuilder.group(Api, "questions", (handlers) =>
  Effect.map(Sessions, (sessions) =>
    handlers
      .handle("questions", ({ path }) => sessions.questions(path.sessionID))
      .handle("answer", ({ path, payload }) => sessions.answer({ ...path, ...payload }))
      .handle("dismissQuestion", ({ path }) => sessions.dismissQuestion(path))
  )
)

// Answers requests about permissions of tools; the first answer counts.

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
export const permissionsLayer = (asks: Asks) =>
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

// Answers requests for the models, agents and templates that sessions can be given.

/** Requests that ask the providers at a time: the others wait. */
const asking = 4

const agentOf = ({ bash = "process", description, mode = "all", model, name }: Agent): OfferedAgent => ({
  name,
  mode,
  bash,
  ...(description === undefined ? {} : { description }),
  ...(model === undefined ? {} : { model })
})

const templateOf = ({ description, name }: Template): OfferedTemplate => ({
  name,
  ...(description === undefined ? {} : { description })
})

/** Lists models, if the host gives them, and the agents and templates of permitted folders. */
export const choicesLayer = ({ check }: Roots, models: Effect.Effect<OfferedModels> | undefined) =>
  HttpApiBuilder.group(Api, "choices", (handlers) =>
    Effect.gen(function* () {
      const [agents, templates] = [yield* Agents, yield* Templates]
      const offered = models && Effect.unsafeMakeSemaphore(asking).withPermits(1)(models)
      const at = (directory: string | undefined) =>
        directory === undefined ? Effect.succeed(undefined) : Effect.as(check(directory), { directory })
      return handlers
        .handle("models", () => offered ?? new NotServed({ what: "models" }))
        .handle("agents", ({ urlParams }) =>
          Effect.flatMap(at(urlParams.directory), agents.list).pipe(Effect.map((found) => found.map(agentOf)))
        )
        .handle("templates", ({ urlParams }) =>
          Effect.flatMap(at(urlParams.directory), templates.list).pipe(Effect.map((found) => found.map(templateOf)))
        )
    })
  )
