/** Implements the facade over log, store, inbox and execution. Contract: `Sessions.ts`. */
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import { Effect, Layer, Option, Predicate, Schema, Stream } from "effect"
import { SessionOwner } from "@daybook/log/coordination/SessionOwner"
import { Identifiers, MessageID, SessionID } from "@daybook/log/domain/Identifiers"
import { NotWaiting } from "@daybook/log/domain/InboxError"
import { InvalidInput } from "@daybook/log/domain/InvalidInput"
import type { Session } from "@daybook/log/domain/Message"
import { validate } from "@daybook/log/domain/Validate"
import { Budget, Location, ModelRef, sameModel } from "@daybook/log/domain/Values"
import { draft, type SessionEvent } from "@daybook/log/events/SessionEvents"
import { EventLog, type EventRefused, type ReplayComplete, SessionNotFound } from "@daybook/log/log/EventLog"
import { plain } from "@daybook/log/projection/Columns"
import { deepestFamily } from "@daybook/log/store/Family"
import { pageLimit, SessionStore } from "@daybook/log/store/SessionStore"
import type { StoreError } from "@daybook/log/store/StoreError"
import { Agents } from "../agent/Agents.ts"
import { Lineage } from "../agent/Lineage.ts"
import { ContextEpoch } from "../context/ContextEpoch.ts"
import { type Agent, canLead } from "../domain/Agent.ts"
import type { QuestionRef } from "../domain/Question.ts"
import { ModelResolver } from "../model/ModelResolver.ts"
import { nothingPruned } from "../request/Prune.ts"
import { shownAt } from "../request/Recorded.ts"
import { switched } from "../request/Reminders.ts"
import { modelOf } from "../runner/Preparation.ts"
import { PriceUnknown } from "../runner/BudgetCheck.ts"
import { canonical } from "./Locations.ts"
import * as Placements from "./Placement.ts"
import { Questions } from "./Questions.ts"
import { SessionExecution } from "./SessionExecution.ts"
import { SessionInput } from "./SessionInput.ts"
import type { CreateOptions } from "./SessionOptions.ts"
import { Sessions } from "./Sessions.ts"
import * as Titles from "./Titles.ts"

/** Maximum number of events in a page of `history`. */
const historyLimit = 100

/** No limit needed: admission bounds the inbox. */
const whole = Number.MAX_SAFE_INTEGER

const make = Effect.gen(function* () {
  const log = yield* EventLog
  const store = yield* SessionStore
  const inputs = yield* SessionInput
  const execution = yield* SessionExecution
  const owners = yield* SessionOwner
  const epochs = yield* ContextEpoch
  const agents = yield* Agents
  const lineage = yield* Lineage
  const models = yield* ModelResolver
  const questions = yield* Questions
  const placements = yield* Placements.make
  const titles = yield* Titles.make
  const identifiers = yield* Identifiers
  const platform = yield* Effect.context<FileSystem.FileSystem | Path.Path>()

  const place = (location: CreateOptions["location"]) =>
    Effect.flatMap(validate("location", Location, location), (decoded) => Effect.provide(canonical(decoded), platform))

  /**
   * The canonical path under which a folder's sessions are stored; if the folder is gone, the absolute form of the
   * given path.
   */
  const folder = (directory: string) =>
    Effect.provide(canonical({ directory }), platform).pipe(
      Effect.map((location) => location.directory),
      Effect.catchTag("InvalidInput", () => Effect.map(Path.Path, (path) => path.resolve(directory))),
      Effect.provide(platform)
    )

  /** An agent that may work here: as a primary agent, or for the parent session. */
  const knownAgent = Effect.fnUntraced(function* (agent: string, location: Location, child: boolean) {
    const refuse = (details: string) => new InvalidInput({ field: "agent", details })
    const name = yield* validate("agent", Schema.String, agent)
    const found = yield* Effect.mapError(agents.get(name, location), ({ message }) => refuse(message))
    if (child || canLead(found)) return found
    return yield* refuse(`agent "${name}" is a subagent, which only other agents can start; choose another one`)
  })

  /** The model's reminders at a switch. A missing agent has none (RQ-24). */
  const farewells = Effect.fnUntraced(function* (current: string | undefined, to: Agent, location: Location) {
    const from = Option.getOrUndefined(yield* Effect.option(agents.get(current, location)))
    return from?.name === to.name ? [] : [from?.leaveReminder, to.enterReminder].filter(Predicate.isNotUndefined)
  })

  /** An unavailable model is not refused here: the run reports it. */
  const knownPrice = Effect.fnUntraced(function* (sessionID: SessionID) {
    const session = yield* store.get(sessionID)
    const agent = yield* Effect.option(lineage.agentOf(session))
    const asked = Effect.flatMap(agent, (own) => models.resolve(modelOf(session, own), own.settings ?? {}))
    const model = yield* Effect.option(asked)
    if (Option.isSome(model) && model.value.info.price === undefined) {
      return yield* new PriceUnknown({ sessionID, model: model.value.info.ref })
    }
  })

  const existing = (sessionID: SessionID) =>
    store.get(sessionID).pipe(
      Effect.asSome,
      Effect.catchTag("SessionNotFound", () => Effect.succeedNone)
    )

  const knownParent = Effect.fnUntraced(function* (parentID: SessionID) {
    const refuse = (details: string) => new InvalidInput({ field: "parentID", details })
    const id = yield* validate("parentID", SessionID, parentID)
    yield* Effect.catchTag(store.get(id), "SessionNotFound", ({ message }) => Effect.fail(refuse(message)))
    // Bounded, so that a lookup of ancestors sees all of them: an ancestor's denials apply below.
    if ((yield* store.ancestors(id)).length >= deepestFamily) {
      return yield* refuse(`${id} already has ${deepestFamily} ancestors`)
    }
  })

  const create = Effect.fn("Sessions.create")(function* (options: CreateOptions) {
    const sessionID =
      options.id === undefined ? yield* identifiers.session : yield* validate("id", SessionID, options.id)
    if (options.id !== undefined) {
      const found = yield* existing(sessionID)
      if (Option.isSome(found)) return found.value
    }
    const placement = options.placement === undefined ? undefined : yield* placements.check(options.placement)
    if (placement !== undefined) {
      const found = yield* placements.occupant(placement.address, options.id === undefined ? undefined : sessionID)
      if (Option.isSome(found)) return found.value
    }
    const created = yield* creation(options, yield* place(options.location))
    return yield* placements.begin(sessionID, created, options.id === undefined ? undefined : sessionID, placement)
  }, Effect.uninterruptible)

  const named: (typeof Sessions.Service)["named"] = Effect.fn("Sessions.named")(function* (options) {
    const title = plain(yield* validate("title", Schema.NonEmptyString, options.title))
    const location = yield* place(options.location)
    const made = Effect.all({ sessionID: identifiers.session, created: creation({ ...options, title }, location) })
    return yield* titles.findOrBegin(title, location.directory, made)
  }, Effect.uninterruptible)

  /** Builds the creation event, with all fields validated. */
  const creation = Effect.fnUntraced(function* (options: CreateOptions, location: Location) {
    const { agent, parentID } = options
    const model = options.model === undefined ? undefined : yield* validate("model", ModelRef, options.model)
    const title = options.title === undefined ? undefined : yield* validate("title", Schema.String, options.title)
    if (agent !== undefined) yield* knownAgent(agent, location, parentID !== undefined)
    if (parentID !== undefined) yield* knownParent(parentID)
    return draft("session.created", {
      location,
      ...(agent === undefined ? {} : { agent }),
      ...(model === undefined ? {} : { model }),
      ...(title === undefined ? {} : { title }),
      ...(parentID === undefined ? {} : { parentID })
    })
  })

  const prompt: (typeof Sessions.Service)["prompt"] = Effect.fn("Sessions.prompt")(function* (options) {
    const admitted = inputs.admit(options)
    // An invalid id is the caller's mistake; admission's error names the field.
    const input = yield* Schema.is(SessionID)(options.sessionID) ? unlessRemoved(options.sessionID, admitted) : admitted
    if (options.resume !== false) yield* execution.wake(options.sessionID)
    return input
  }, Effect.uninterruptible)

  /** Creation is not part of the `session.next.*` family that consumers follow (TL-6). */
  const followed = <Item extends SessionEvent | ReplayComplete, E>(items: Stream.Stream<Item, E>) =>
    Stream.filter(items, ({ type }) => type !== "session.created")

  /**
   * If the session does not exist, or was removed meanwhile, fails with `SessionNotFound` whatever error came first
   * (IB-9).
   */
  const unlessRemoved = <A, E extends { readonly _tag: string }>(sessionID: SessionID, effect: Effect.Effect<A, E>) =>
    Effect.tapError(effect, ({ _tag }) =>
      _tag === "RunInterrupted"
        ? Effect.void
        : Effect.catchAll(store.get(sessionID), (error) =>
            error._tag === "SessionNotFound" ? Effect.fail(error) : Effect.void
          )
    )

  /** A verb that changes a session. If the session does not exist, the log refuses the append. */
  const changes =
    <A, E extends { readonly _tag: string }, Rest extends ReadonlyArray<unknown>>(
      run: (sessionID: SessionID, ...rest: Rest) => Effect.Effect<A, E>
    ) =>
    (sessionID: SessionID, ...rest: Rest) =>
      unlessRemoved(sessionID, run(sessionID, ...rest))

  /** A verb that reads. It looks the session up last, so that a session removed meanwhile is not returned as empty. */
  const reads =
    <A, E extends { readonly _tag: string }, Rest extends ReadonlyArray<unknown>>(
      run: (sessionID: SessionID, ...rest: Rest) => Effect.Effect<A, E>
    ) =>
    (sessionID: SessionID, ...rest: Rest) =>
      Effect.zipLeft(unlessRemoved(sessionID, run(sessionID, ...rest)), store.get(sessionID))

  const asked =
    <Options extends QuestionRef, E extends { readonly _tag: string }>(
      close: (options: Options) => Effect.Effect<void, E>
    ) =>
    (options: Options) =>
      Effect.flatMap(validate("sessionID", SessionID, options.sessionID), (sessionID) =>
        unlessRemoved(sessionID, close(options))
      )

  /** The listed sessions without a living owner. */
  const abandoned = (list: Effect.Effect<ReadonlyArray<Session>, StoreError>) =>
    Effect.gen(function* () {
      const before = new Map((yield* list).map((session) => [session.id, session.activity?.id]))
      const owned = yield* owners.owned([...before.keys()])
      // Checking owners takes time, so sessions whose activity changed meanwhile are skipped.
      return (yield* list).filter(
        ({ activity, id }) => before.has(id) && before.get(id) === activity?.id && !owned.has(id)
      )
    })

  const append = (sessionID: SessionID, event: Parameters<typeof log.append>[1][0]) =>
    Effect.asVoid(log.append(sessionID, [event]))

  return Sessions.of({
    create,
    named,
    addressed: placements.addressed,
    place: changes(placements.place),
    get: store.get,
    list: Effect.fn("Sessions.list")(function* (options = {}) {
      if (options.directory === undefined) return yield* store.list(options)
      const directory = yield* validate("directory", Schema.NonEmptyString, options.directory)
      return yield* store.list({ ...options, directory: yield* folder(directory) })
    }),
    messages: (options) => reads(() => store.messages(options))(options.sessionID),
    message: reads(store.message),
    context: reads((sessionID: SessionID) =>
      Effect.flatMap(
        Effect.catchTag(epochs.get(sessionID), "ContextSnapshotUnreadable", () => Effect.succeed(undefined)),
        (epoch) => store.context(sessionID, epoch?.baselineSeq ?? -1)
      )
    ),
    inbox: reads((sessionID: SessionID) => store.waiting(sessionID, { limit: whole })),
    events: (options) => followed(log.tail(options)),
    eventsMarked: (options) => followed(log.tailMarked(options)),
    history: Effect.fn("Sessions.history")(function* (options) {
      const page = yield* log.read({ ...options, limit: pageLimit(options.limit, historyLimit, historyLimit) })
      return { ...page, events: page.events.filter(({ type }) => type !== "session.created") }
    }),
    live: (sessionID) => log.live({ sessionID }),
    prompt,
    withdraw: changes(
      Effect.fn("Sessions.withdraw")(function* (sessionID: SessionID, messageID) {
        const notWaiting = new NotWaiting({ sessionID, messageID })
        if (!Schema.is(MessageID)(messageID)) return yield* notWaiting
        yield* Effect.catchTag(
          append(sessionID, draft("session.next.prompt.withdrawn", { messageID })),
          "EventRefused",
          // Its row says that the input is promoted, withdrawn or missing. Other refusals pass through.
          (refused): Effect.Effect<never, NotWaiting | EventRefused> =>
            refused.table === "session_input" ? notWaiting : refused
        )
      })
    ),
    settle: changes(execution.settle),
    resume: changes(execution.resume),
    interrupt: (sessionID, { activityID } = {}) => execution.interrupt(sessionID, activityID),
    wait: (sessionID) => Effect.zipRight(execution.settled(sessionID), store.get(sessionID)),
    active: execution.active,
    interrupted: abandoned(store.interrupted),
    waiting: abandoned(store.withWaiting),
    switchAgent: changes(
      Effect.fn("Sessions.switchAgent")(function* (sessionID: SessionID, agent) {
        const { agent: current, location, parentID } = yield* store.get(sessionID)
        const to = yield* knownAgent(agent, location, parentID !== undefined)
        const messageID = yield* identifiers.message
        const reminders = yield* Effect.forEach(yield* farewells(current, to, location), (text) =>
          Effect.map(identifiers.message, (id) =>
            draft("session.next.synthetic", { messageID: id, text: switched(text) })
          )
        )
        yield* log.append(sessionID, [draft("session.next.agent.switched", { messageID, agent }), ...reminders])
      })
    ),
    switchModel: changes(
      Effect.fn("Sessions.switchModel")(function* (sessionID: SessionID, to) {
        const { model: current } = yield* store.get(sessionID)
        const model = yield* validate("model", ModelRef, to)
        if (current !== undefined && sameModel(current, model)) return
        yield* append(sessionID, draft("session.next.model.switched", { messageID: yield* identifiers.message, model }))
      })
    ),
    move: changes(
      Effect.fn("Sessions.move")(function* (sessionID: SessionID, to) {
        const location = yield* place(to)
        yield* log.append(sessionID, [draft("session.next.moved", { location })], { commit: epochs.clear })
      })
    ),
    compact: changes(
      Effect.fn("Sessions.compact")(function* (sessionID: SessionID) {
        const requested = Effect.gen(function* () {
          const expectedSeq = yield* log.latest(sessionID)
          const { compaction } = yield* store.get(sessionID)
          // A request that still waits covers this one.
          const waiting = compaction?.state === "requested" ? compaction.id : compaction?.next
          if (waiting !== undefined) return waiting
          const messageID = yield* identifiers.message
          yield* log.append(sessionID, [draft("session.next.compaction.requested", { messageID })], { expectedSeq })
          return messageID
        })
        // Another caller wrote in between, perhaps the same request: read again.
        const messageID = yield* Effect.retry(requested, {
          times: 100,
          while: ({ _tag }) => _tag === "SeqConflict"
        })
        yield* execution.wake(sessionID)
        return messageID
      }, Effect.uninterruptible)
    ),
    unprune: changes(
      Effect.fn("Sessions.unprune")(function* (sessionID: SessionID) {
        const { prunedSeq = nothingPruned } = yield* store.get(sessionID)
        if (prunedSeq === nothingPruned) return
        yield* append(sessionID, draft("session.next.context.pruned", { through: nothingPruned }))
      })
    ),
    setBudget: changes(
      Effect.fn("Sessions.setBudget")(function* (sessionID: SessionID, amounts) {
        const budget = yield* validate("budget", Budget, amounts)
        if (budget.cost !== undefined) yield* knownPrice(sessionID)
        yield* append(sessionID, draft("session.next.budget.set", { budget }))
      })
    ),
    request: Effect.fn("Sessions.request")(function* ({ at, sessionID }) {
      if (at === undefined) return yield* execution.preview(sessionID)
      return yield* shownAt(sessionID, at).pipe(
        Effect.provideService(EventLog, log),
        Effect.provideService(SessionStore, store),
        (shown) => unlessRemoved(sessionID, shown)
      )
    }),
    rename: changes(
      Effect.fn("Sessions.rename")(function* (sessionID: SessionID, name) {
        const title = yield* validate("title", Schema.String, name)
        yield* append(sessionID, draft("session.next.renamed", { title }))
      })
    ),
    questions: reads(questions.pending),
    answer: asked(questions.answer),
    dismissQuestion: asked(questions.dismiss),
    todos: reads(store.todos),
    usage: Effect.fn("Sessions.usage")(function* (sessionID) {
      const [total, estimated] = yield* Effect.all([store.treeUsage(sessionID), store.treeEstimated(sessionID)])
      const { cost, tokens } = yield* store.get(sessionID)
      return { own: { cost, tokens }, total, estimated }
    }),
    remove: Effect.fn("Sessions.remove")(function* (sessionID) {
      yield* execution.interrupt(sessionID)
      if (!(yield* log.remove(sessionID))) return yield* new SessionNotFound({ sessionID })
    })
  })
})

/** The facade. */
export const layer = Layer.effect(Sessions, make)
