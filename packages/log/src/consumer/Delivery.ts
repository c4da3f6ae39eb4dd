/** Applies a consumer's steps: repeats failed calls, finds the poison event. Spec: CN-2..CN-5, CN-7..CN-10, CN-12. */
import type * as SqlClient from "@effect/sql/SqlClient"
import * as SqlError from "@effect/sql/SqlError"
import { Cause, Data, type Duration, Effect, Metric, Option, type Schedule, Schema } from "effect"
import { isNonEmptyReadonlyArray, type NonEmptyReadonlyArray } from "effect/Array"
import type { SessionID } from "../domain/Identifiers.ts"
import type { SessionEvent } from "../events/SessionEvents.ts"
import type { CursorExpired, EventLog, EventUnreadable, LogUnavailable, Removal } from "../log/EventLog.ts"
import { unavailable } from "../log/EventRow.ts"
import { reasonOf } from "../storage/Transaction.ts"
import { clip } from "../support/Issues.ts"
import * as Metrics from "../support/Metrics.ts"
import {
  type Claim,
  type ConsumerReplaced,
  type ConsumerStore,
  type ConsumerCursor,
  PoisonEvent
} from "./ConsumerStore.ts"
import { messageOf } from "../support/SystemError.ts"

// Reads what a consumer applies next, as steps. A removal follows the events of the life that it ended.

/** One move of the cursor to the place `to`. */
type Step =
  | { readonly kind: "events"; readonly events: NonEmptyReadonlyArray<SessionEvent>; readonly to: ConsumerCursor }
  | { readonly kind: "removal"; readonly sessionID: SessionID; readonly to: ConsumerCursor }
  | { readonly kind: "expired"; readonly error: CursorExpired; readonly to: ConsumerCursor }
  | { readonly kind: "unreadable"; readonly error: EventUnreadable; readonly to: ConsumerCursor }
  /** Only events of unknown types. */
  | { readonly kind: "pass"; readonly to: ConsumerCursor }
  /** The followed session was removed. */
  | { readonly kind: "end" }

/** The next steps, and whether more follow already. */
type Portion = { readonly steps: ReadonlyArray<Step>; readonly hasMore: boolean }

type Log = EventLog["Type"]

/** Removals per page of the log. */
const removalsAtOnce = 512

/** The place of an event in the source. */
const cursorOf = (event: SessionEvent, sessionID: SessionID | undefined): number =>
  sessionID === undefined ? event.position : event.seq

/** Steps of the events between removals, in the order of positions. Events of removed lives are left out. */
const merge = (place: ConsumerCursor, events: ReadonlyArray<SessionEvent>, removals: ReadonlyArray<Removal>) => {
  const gone = new Map(removals.map(({ position, sessionID }) => [sessionID, position]))
  const steps: Array<Step> = []
  let at = place
  let rest = events.filter(({ position, sessionID }) => position > (gone.get(sessionID) ?? 0))
  const take = (count: number): void => {
    const taken = rest.slice(0, count)
    rest = rest.slice(count)
    if (!isNonEmptyReadonlyArray(taken)) return
    at = { ...at, cursor: taken[taken.length - 1]?.position ?? at.cursor }
    steps.push({ kind: "events", events: taken, to: at })
  }
  for (const { number, position, sessionID } of removals) {
    const later = rest.findIndex((event) => event.position > position)
    take(later < 0 ? rest.length : later)
    at = { ...at, removals: number }
    steps.push({ kind: "removal", sessionID, to: at })
  }
  take(rest.length)
  return steps
}

const placeAfter = (place: ConsumerCursor, steps: ReadonlyArray<Step>): ConsumerCursor => {
  const last = steps.at(-1)
  return last === undefined || last.kind === "end" ? place : last.to
}

/** Adds a step to the end of the page, if events of unknown types stand there. */
const through = (place: ConsumerCursor, steps: ReadonlyArray<Step>, cursor: number, incarnation?: number) => {
  const reached = placeAfter(place, steps)
  return cursor > reached.cursor
    ? [...steps, { kind: "pass", to: { ...reached, cursor, incarnation } } as const]
    : steps
}

/** One step past an unreadable event; its own error if its place is unknown. */
const unreadable = (place: ConsumerCursor, error: EventUnreadable, cursor: number | undefined) =>
  cursor === undefined
    ? error
    : Effect.succeed<Portion>({
        steps: [{ kind: "unreadable", error, to: { ...place, cursor } }],
        hasMore: true
      })

/** One step to the floor, after the removals: a session that was created again since is part of the new state. */
const expired = (log: Log, place: ConsumerCursor, error: CursorExpired) =>
  Effect.map(log.removals({ after: place.removals }), (removals): Portion => {
    const steps = merge(place, [], removals)
    if (removals.length === removalsAtOnce) return { steps, hasMore: true }
    const to = { ...placeAfter(place, steps), cursor: error.floor }
    return { steps: [...steps, { kind: "expired", error, to }], hasMore: true }
  })

const nextOfFeed = (log: Log, place: ConsumerCursor, limit: number) =>
  Effect.gen(function* () {
    const page = yield* log.readFeed({ after: place.cursor, limit })
    // Read after the page, so that every removal before an event of the page is included.
    const removals = yield* log.removals({ after: place.removals })
    if (removals.length === removalsAtOnce) return { steps: merge(place, [], removals), hasMore: true }
    return {
      steps: through(place, merge(place, page.events, removals), page.position),
      hasMore: page.hasMore
    }
  }).pipe(
    Effect.catchTags({
      EventUnreadable: (error) => unreadable(place, error, error.position),
      CursorExpired: (error) => expired(log, place, error)
    })
  )

const nextOfSession = (log: Log, sessionID: SessionID, place: ConsumerCursor, limit: number) =>
  log.read({ sessionID, after: place.cursor, incarnation: place.incarnation, limit }).pipe(
    Effect.map(({ cursor, events, hasMore, incarnation }): Portion => {
      const to: ConsumerCursor = { ...place, cursor: events.at(-1)?.seq ?? place.cursor, incarnation }
      const steps: ReadonlyArray<Step> = isNonEmptyReadonlyArray(events) ? [{ kind: "events", events, to }] : []
      return { steps: through(place, steps, cursor, incarnation), hasMore }
    }),
    Effect.catchTags({
      EventUnreadable: (error) => unreadable(place, error, error.seq),
      CursorExpired: (error) =>
        Effect.succeed<Portion>({
          steps: [{ kind: "expired", error, to: { ...place, cursor: error.floor } }],
          hasMore: true
        }),
      SessionNotFound: (error) =>
        error.removed === true
          ? Effect.succeed<Portion>({ steps: [{ kind: "end" }], hasMore: false })
          : Effect.fail(error)
    })
  )

/** The next steps after the place, of at most `limit` events. */
export const next = (log: Log, sessionID: SessionID | undefined, place: ConsumerCursor, limit: number) =>
  sessionID === undefined ? nextOfFeed(log, place, limit) : nextOfSession(log, sessionID, place, limit)

/** The consumer failed at one event, or at a removal or snapshot of a session. Everything before it is applied. */
export class ConsumerStopped extends Schema.TaggedError<ConsumerStopped>("@daybook/log/ConsumerStopped")(
  "ConsumerStopped",
  { consumer: Schema.String, poison: PoisonEvent }
) {
  override get message() {
    const { details, seq, sessionID, type } = this.poison
    const again = "mend the handler and run the consumer again"
    return type === "removal" || type === "snapshot"
      ? `consumer ${this.consumer} stopped at the ${type} of ${sessionID ?? "the feed"}: ${details}; ${again}`
      : `consumer ${this.consumer} stopped at event ${seq} of ${sessionID ?? "an unknown session"} (${type}): ${details}; ` +
          `${again}, or run it with \`onPoison: "skip"\``
  }
}

class CallFailed extends Data.TaggedError("CallFailed")<{ readonly details: string }> {}

export interface Settings<E, R> {
  readonly sessionID?: SessionID | undefined
  readonly apply: (events: NonEmptyReadonlyArray<SessionEvent>) => Effect.Effect<unknown, E, R>
  readonly onRemoved?: (sessionID: SessionID) => Effect.Effect<unknown, E, R>
  readonly fromSnapshot?: (error: CursorExpired) => Effect.Effect<unknown, E, R>
  readonly retry: Schedule.Schedule<unknown, unknown>
  readonly timeout: Duration.DurationInput
  readonly onPoison?: "stop" | "skip"
}

/** Runs a call and moves the cursor; without a place, the consumer ends. */
type Attempt<R, R2> = <E>(
  call: Effect.Effect<unknown, E, R>,
  to: ConsumerCursor | undefined
) => Effect.Effect<unknown, E | ConsumerReplaced | LogUnavailable, R2>

export type MakeAttempt<R, R2> = (store: ConsumerStore["Type"], claim: Claim) => Attempt<R, R2>

/** The call and the cursor's move in one transaction. */
export const inTransaction =
  <R>(store: ConsumerStore["Type"], claim: Claim): Attempt<R, Exclude<R, SqlClient.SqlClient>> =>
  (call, to) =>
    to === undefined ? store.finish(claim, call) : store.commit(claim, to, call)

/** The call, then the cursor's move. */
export const outside =
  <R>(store: ConsumerStore["Type"], claim: Claim): Attempt<R, R> =>
  (call, to) =>
    store
      .check(claim)
      .pipe(
        Effect.zipRight(call),
        Effect.zipRight(to === undefined ? store.finish(claim, Effect.void) : store.commit(claim, to, Effect.void))
      )

/** Failures of the database that no event causes. */
const isEnvironmental = (error: unknown): error is SqlError.SqlError => {
  if (!(error instanceof SqlError.SqlError)) return false
  const reason = reasonOf(error)
  return reason !== "constraint" && reason !== "unknown"
}

const sentenceOf = (cause: Cause.Cause<unknown>): string => {
  const error = Cause.squash(cause)
  return clip(messageOf(error))
}

/** Bounds the call in time, and turns its failures and defects into `CallFailed`. */
const guarded = <E, R>(call: Effect.Effect<unknown, E, R>, timeout: Duration.DurationInput) =>
  call.pipe(
    Effect.timeoutFail({
      duration: timeout,
      onTimeout: () => new CallFailed({ details: "the call took longer than its timeout" })
    }),
    Effect.catchAllCause((cause): Effect.Effect<never, CallFailed | LogUnavailable> => {
      if (Cause.isInterruptedOnly(cause)) return Effect.interrupt
      const failure = Option.getOrUndefined(Cause.failureOption(cause))
      if (failure instanceof CallFailed) return Effect.fail(failure)
      if (isEnvironmental(failure)) return Effect.fail(unavailable("apply a consumer's events")(failure))
      return Effect.fail(new CallFailed({ details: sentenceOf(cause) }))
    })
  )

/** Makes the function that applies one step. */
export const make =
  <E, R, R2>(settings: Settings<E, R>, attempt: Attempt<R, R2>) =>
  (store: ConsumerStore["Type"], claim: Claim) => {
    const { name } = claim
    const applied = Metric.tagged(Metrics.consumerEvents, "consumer", name)
    const skips = Metric.tagged(Metrics.consumerSkipped, "consumer", name)

    const once = (call: Effect.Effect<unknown, E, R>, to: ConsumerCursor | undefined) =>
      attempt(guarded(call, settings.timeout), to)

    const retried = (call: Effect.Effect<unknown, E, R>, to: ConsumerCursor | undefined) =>
      Effect.retry(once(call, to), { schedule: settings.retry, while: ({ _tag }) => _tag === "CallFailed" })

    const stop = (poison: PoisonEvent) =>
      Effect.zipRight(store.stop(claim, poison), new ConsumerStopped({ consumer: name, poison }))

    const poisoned = (poison: PoisonEvent, to: ConsumerCursor) =>
      settings.onPoison === "skip"
        ? Effect.zipRight(store.skip(claim, to, poison), Metric.increment(skips))
        : stop(poison)

    const applyOne = (event: SessionEvent, to: ConsumerCursor) =>
      retried(settings.apply([event]), to).pipe(
        Effect.zipRight(Metric.increment(applied)),
        Effect.catchTag("CallFailed", ({ details }) => {
          const { position, seq, sessionID, type } = event
          return poisoned({ cursor: to.cursor, sessionID, seq, position, type, details }, to)
        })
      )

    /** After a failure the events are applied one by one, so that one event does not hold the others back. */
    const apply = (events: NonEmptyReadonlyArray<SessionEvent>, to: ConsumerCursor) =>
      events.length === 1
        ? applyOne(events[0], to)
        : once(settings.apply(events), to).pipe(
            Effect.zipRight(Metric.incrementBy(applied, events.length)),
            Effect.catchTag("CallFailed", () =>
              Effect.forEach(
                events,
                (event) => applyOne(event, { ...to, cursor: cursorOf(event, settings.sessionID) }),
                { discard: true }
              )
            )
          )

    /** A removal or snapshot is never skipped: the state would keep a removed session, or miss pruned events. */
    const ofSession = (
      type: "removal" | "snapshot",
      sessionID: SessionID | undefined,
      call: Effect.Effect<unknown, E, R>,
      to: ConsumerCursor | undefined
    ) =>
      Effect.catchTag(retried(call, to), "CallFailed", ({ details }) => {
        const { cursor } = to ?? claim.place
        return stop({ cursor, ...(sessionID === undefined ? {} : { sessionID }), seq: -1, type, details })
      })

    const nothing = () => Effect.void

    return (step: Step) => {
      switch (step.kind) {
        case "events":
          return apply(step.events, step.to)
        case "pass":
          return store.commit(claim, step.to, Effect.void)
        case "removal":
          return ofSession("removal", step.sessionID, (settings.onRemoved ?? nothing)(step.sessionID), step.to)
        case "end":
          return settings.sessionID === undefined
            ? Effect.void
            : ofSession("removal", settings.sessionID, (settings.onRemoved ?? nothing)(settings.sessionID), undefined)
        case "expired":
          return settings.fromSnapshot === undefined
            ? step.error
            : ofSession("snapshot", settings.sessionID, settings.fromSnapshot(step.error), step.to)
        case "unreadable": {
          const { message: details, position, seq, sessionID, type } = step.error
          const at = { cursor: step.to.cursor, sessionID, seq, type, details: clip(details) }
          return poisoned(position === undefined ? at : { ...at, position }, step.to)
        }
      }
    }
  }
