/** Follows a session from the end of its log, whatever the length of the session. Spec: SC-502, SC-525. */
import { Effect, Stream } from "effect"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import type { Input } from "@daybook/log/domain/Message"
import type { LiveEvent, SessionEvent } from "@daybook/log/events/SessionEvents"
import { EventLog } from "@daybook/log/log/EventLog"
import { Sessions } from "@daybook/core/session/Sessions"

/** What was before the first followed event. */
export interface Past {
  readonly events: ReadonlyArray<SessionEvent>
  /** Earlier events that are not shown. */
  readonly isCut: boolean
  readonly waiting: ReadonlyArray<Input>
}

export interface Follower {
  readonly past: (past: Past) => void
  readonly event: (event: SessionEvent | LiveEvent) => void
}

/** The maximum number of events that are read, and of prompts among these events that are shown. */
const [mostEvents, mostPrompts] = [600, 8]

const isPrompt = ({ type }: SessionEvent): boolean =>
  type === "session.next.prompt.promoted" || type === "session.next.prompted"

/** Nothing is before these events but the session's creation, which a server's history leaves out. */
const isWhole = ([first]: ReadonlyArray<SessionEvent>): boolean => first === undefined || first.seq <= 1

/** The events from one of the last prompts on, or all of a short log. Pure. */
export const lastEvents = (events: ReadonlyArray<SessionEvent>): ReadonlyArray<SessionEvent> => {
  const starts = events.flatMap((event, at) => (isPrompt(event) ? [at] : []))
  if (isWhole(events) && starts.length <= mostPrompts) return events
  const from = starts.at(-mostPrompts) ?? starts[0] ?? 0
  // The activity that a prompt opens is recorded just before it.
  const opens = events[from - 1]?.type === "session.next.activity.started"
  return events.slice(opens ? from - 1 : from)
}

/** The events of the log up to a sequence number, from the floor on at most. */
const end = Effect.fnUntraced(function* (sessionID: SessionID, head: number) {
  const log = yield* EventLog
  const events: Array<SessionEvent> = []
  let after = Math.max(-1, head - mostEvents)
  while (after < head) {
    const page = yield* Effect.catchTag(log.read({ sessionID, after }), "CursorExpired", ({ floor }) =>
      log.read({ sessionID, after: floor })
    )
    events.push(...page.events.filter(({ seq }) => seq <= head))
    if (!page.hasMore || page.cursor <= after) break
    after = page.cursor
  }
  return events
})

export const follow = Effect.fn("Screen.follow")(function* (sessionID: SessionID, follower: Follower) {
  const log = yield* EventLog
  const sessions = yield* Sessions
  const head = yield* log.latest(sessionID)
  const all = yield* end(sessionID, head)
  const events = lastEvents(all)
  follower.past({
    events,
    isCut: !isWhole(events),
    waiting: yield* sessions.inbox(sessionID)
  })
  yield* Stream.runForEach(log.follow({ sessionID, after: head }), (item) =>
    Effect.sync(() => {
      if (item.type !== "replay.complete") follower.event(item)
    })
  )
})
