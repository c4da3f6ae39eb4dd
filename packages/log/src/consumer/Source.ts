/**
 * Reads what a consumer applies next, as steps: each is applied and moves the cursor at once. A removal stands after the
 * delivered events of the life that it ended and before those of a later life. Spec: CN-4, CN-5, CN-12.
 */
import { Effect } from "effect"
import { type NonEmptyReadonlyArray, isNonEmptyReadonlyArray } from "effect/Array"
import type { SessionID } from "../domain/Identifiers.ts"
import type { SessionEvent } from "../events/SessionEvents.ts"
import type {
  CursorAhead,
  CursorExpired,
  EventLog,
  EventUnreadable,
  LogUnavailable,
  Removal,
  SessionNotFound
} from "../log/EventLog.ts"
import type { Place } from "./ConsumerStore.ts"

/** One move of the cursor to the place `to`. */
export type Step =
  | { readonly kind: "events"; readonly events: NonEmptyReadonlyArray<SessionEvent>; readonly to: Place }
  | { readonly kind: "removal"; readonly sessionID: SessionID; readonly to: Place }
  | { readonly kind: "expired"; readonly error: CursorExpired; readonly to: Place }
  | { readonly kind: "unreadable"; readonly error: EventUnreadable; readonly to: Place }
  /** Only events of unknown types. */
  | { readonly kind: "pass"; readonly to: Place }
  /** The followed session was removed. */
  | { readonly kind: "end" }

/** The next steps, and whether more follow already. */
export interface Portion {
  readonly steps: ReadonlyArray<Step>
  readonly hasMore: boolean
}

type Log = EventLog["Type"]

/** Removals per page of the log. */
const removalsAtOnce = 512

/** The place of an event in the source. */
export const cursorOf = (event: SessionEvent, sessionID: SessionID | undefined): number =>
  sessionID === undefined ? event.position : event.seq

/** Steps of the events between removals, in the order of positions. Events of removed lives are left out. */
const merge = (
  place: Place,
  events: ReadonlyArray<SessionEvent>,
  removals: ReadonlyArray<Removal>
): ReadonlyArray<Step> => {
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

const placeAfter = (place: Place, steps: ReadonlyArray<Step>): Place => {
  const last = steps.at(-1)
  return last === undefined || last.kind === "end" ? place : last.to
}

/** Adds a step to the end of the page, if events of unknown types stand there. */
const through = (place: Place, steps: ReadonlyArray<Step>, cursor: number, incarnation?: number) => {
  const reached = placeAfter(place, steps)
  return cursor > reached.cursor
    ? [...steps, { kind: "pass", to: { ...reached, cursor, incarnation } } as const]
    : steps
}

/** One step past an unreadable event; its own error if its place is unknown. */
const unreadable = (place: Place, error: EventUnreadable, cursor: number | undefined) =>
  cursor === undefined
    ? error
    : Effect.succeed<Portion>({
        steps: [{ kind: "unreadable", error, to: { ...place, cursor } }],
        hasMore: true
      })

/** One step to the floor, after the removals: a session that was created again since is part of the new state. */
const expired = (log: Log, place: Place, error: CursorExpired) =>
  Effect.map(log.removals({ after: place.removals }), (removals): Portion => {
    const steps = merge(place, [], removals)
    if (removals.length === removalsAtOnce) return { steps, hasMore: true }
    const to = { ...placeAfter(place, steps), cursor: error.floor }
    return { steps: [...steps, { kind: "expired", error, to }], hasMore: true }
  })

const nextOfFeed = (
  log: Log,
  place: Place,
  limit: number
): Effect.Effect<Portion, CursorAhead | EventUnreadable | LogUnavailable> =>
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

const nextOfSession = (
  log: Log,
  sessionID: SessionID,
  place: Place,
  limit: number
): Effect.Effect<Portion, CursorAhead | EventUnreadable | LogUnavailable | SessionNotFound> =>
  log.read({ sessionID, after: place.cursor, incarnation: place.incarnation, limit }).pipe(
    Effect.map(({ cursor, events, hasMore, incarnation }): Portion => {
      const to: Place = { ...place, cursor: events.at(-1)?.seq ?? place.cursor, incarnation }
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
export const next = (log: Log, sessionID: SessionID | undefined, place: Place, limit: number) =>
  sessionID === undefined ? nextOfFeed(log, place, limit) : nextOfSession(log, sessionID, place, limit)
