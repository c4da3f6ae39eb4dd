/** Reads sessions, their messages and their events. Spec: TL-1..TL-9, PR-7, IB-9, RQ-34, RQ-37. */
import { Clock, Effect, Schema, Stream } from "effect"
import * as OwnerRows from "@daybook/log/coordination/OwnerRows"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import { validate } from "@daybook/log/domain/InvalidInput"
import { EventLog, type Followed } from "@daybook/log/log/EventLog"
import { Inbox } from "@daybook/log/store/Inbox"
import { SessionStore } from "@daybook/log/store/SessionStore"
import { clamp } from "@daybook/log/support/Clamp"
import { ContextEpoch } from "../context/ContextEpoch.ts"
import { shownAt } from "../request/Recorded.ts"
import type { Existing, Locations } from "./Placement.ts"
import { Questions } from "./Questions.ts"
import { SessionExecution } from "./SessionExecution.ts"
import type { Sessions } from "./Sessions.ts"

/** Maximum number of events in a page of `history`. */
const historyLimit = 100

/** No limit needed: admission bounds the inbox. */
const whole = Number.MAX_SAFE_INTEGER

/** Creation is not part of the `session.next.*` family that consumers follow (TL-6). */
const isFollowed = ({ type }: Followed): boolean => type !== "session.created"

type Service = Sessions["Type"]

export const make = Effect.fnUntraced(function* ({ reads, unlessRemoved }: Existing, { folder }: Locations) {
  const log = yield* EventLog
  const store = yield* SessionStore
  const inbox = yield* Inbox
  const execution = yield* SessionExecution
  const epochs = yield* ContextEpoch
  const questions = yield* Questions
  /** As `sessions` of the command shows them: without a living process, an activity does not run. */
  const standing = yield* OwnerRows.makeFind

  const get: Service["get"] = (sessionID) =>
    Effect.flatMap(store.get(sessionID), (session) =>
      OwnerRows.isRunning(session) ? Effect.map(standing([session]), ([now = session]) => now) : Effect.succeed(session)
    )

  const list: Service["list"] = Effect.fn("Sessions.list")(function* (options = {}) {
    const page = yield* store.list(
      options.directory === undefined
        ? options
        : {
            ...options,
            directory: yield* folder(yield* validate("directory", Schema.NonEmptyString, options.directory))
          }
    )
    return { ...page, items: yield* standing(page.items) }
  })

  const context = (sessionID: SessionID) =>
    Effect.flatMap(
      Effect.catchTag(epochs.get(sessionID), "ContextSnapshotUnreadable", () => Effect.succeed(undefined)),
      (epoch) => store.context(sessionID, epoch?.baselineSeq ?? -1)
    )

  const history: Service["history"] = Effect.fn("Sessions.history")(function* (options) {
    const page = yield* log.read({ ...options, limit: clamp(options.limit, historyLimit, historyLimit) })
    return { ...page, events: page.events.filter(isFollowed) }
  })

  const request: Service["request"] = Effect.fn("Sessions.request")(function* ({ at, sessionID }) {
    if (at === undefined) return yield* execution.preview(sessionID)
    return yield* shownAt(sessionID, at).pipe(
      Effect.provideService(EventLog, log),
      Effect.provideService(SessionStore, store),
      (shown) => unlessRemoved(sessionID, shown)
    )
  })

  const usage: Service["usage"] = Effect.fn("Sessions.usage")(function* (sessionID) {
    const [total, estimated] = yield* Effect.all([store.treeUsage(sessionID), store.treeEstimated(sessionID)])
    const { cost, tokens } = yield* store.get(sessionID)
    return { own: { cost, tokens }, total, estimated }
  })

  const metrics: Service["metrics"] = Effect.fn("Sessions.metrics")((sessionID) =>
    Effect.flatMap(Clock.currentTimeMillis, (now) => store.metrics(sessionID, now))
  )

  return {
    get,
    list,
    messages: (options: Parameters<Service["messages"]>[0]) => reads(() => store.messages(options))(options.sessionID),
    message: reads(store.message),
    tree: (options: Parameters<Service["tree"]>[0]) => reads(() => store.tree(options))(options.sessionID),
    context: reads(context),
    inbox: reads((sessionID: SessionID) => inbox.waiting(sessionID, { limit: whole })),
    events: (options: Parameters<Service["events"]>[0]) => Stream.filter(log.tail(options), isFollowed),
    eventsMarked: (options: Parameters<Service["eventsMarked"]>[0]) =>
      Stream.filter(log.tailMarked(options), isFollowed),
    follow: (options: Parameters<Service["follow"]>[0]) => Stream.filter(log.follow(options), isFollowed),
    history,
    live: (sessionID: SessionID) => log.live({ sessionID }),
    request,
    questions: reads(questions.pending),
    todos: reads(store.todos),
    usage,
    metrics
  }
})
