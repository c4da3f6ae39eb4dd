/**
 * Finds runs in the log: the active run of a session, its waiting prompts, and the state from which an activity's rows
 * are rendered. The cost is the distance from the end of the log. Spec: SO-35, SO-37 in specs/socket.md (FR-9, FR-11,
 * IX-6).
 */
import { Effect } from "effect"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import type { Input, Session } from "@daybook/log/domain/Message"
import type { SessionEvent } from "@daybook/log/events/SessionEvents"
import type { ReadError } from "@daybook/log/log/EventLog"
import type { StoreError } from "@daybook/log/store/StoreError"
import * as Fold from "@daybook/transcript/Fold"
import { type RunID, runOf } from "@daybook/transcript/row/Rows"
import { activityStart, type Backend } from "../session/Backend.ts"

/** An active or waiting run. */
export type Run = { readonly run: RunID; readonly clientID: string | undefined } & (
  | { readonly state: "waiting"; readonly input: Input }
  | {
      readonly state: "active"
      readonly activityID: NonNullable<Session["activity"]>["id"]
      /** The sequence number of the event that began it. */
      readonly startSeq: number
    }
)

/** Events that name a run: the start of its activity and the promotion of its prompt, in one append. */
const naming = 4

/** The active run, if any, then the waiting ones in order. */
export const runsOf = Effect.fn("Runs.of")(function* (
  backend: Backend,
  { id }: Pick<Session, "id">
): Effect.fn.Return<ReadonlyArray<Run>, ReadError | StoreError> {
  const { inbox, log, store } = backend
  const session = yield* store.get(id)
  const waiting = yield* inbox.waiting(id, { limit: Number.MAX_SAFE_INTEGER })
  const runs: Array<Run> = []
  if (session.activity?.state === "running") {
    const start = yield* activityStart(backend, id, yield* log.latest(id))
    if (start !== undefined) {
      const { events } = yield* log.read({ sessionID: id, after: start.seq - 1, limit: naming })
      let fold = Fold.ofSession(session)
      for (const event of events) if (fold.run === undefined) fold = Fold.evolve(fold, event).state
      const { run } = fold
      if (run !== undefined && run.activityID === session.activity.id) {
        const activityID = session.activity.id
        runs.push({ state: "active", run: run.id, clientID: run.clientID, activityID, startSeq: start.seq })
      }
    }
  }
  for (const input of waiting) {
    runs.push({ state: "waiting", run: runOf(id, input.id), clientID: input.prompt.client?.id, input })
  }
  return runs
})

/**
 * The state from which to render rows after this sequence number, where no run is open. The session's present state is
 * used unless a later event changed it; only then the whole log is read. If retention removed its beginning, the present
 * state is used.
 */
export const stateAt = Effect.fn("Runs.stateAt")(function* (
  { log, store }: Backend,
  sessionID: SessionID,
  seq: number
): Effect.fn.Return<Fold.State, ReadError | StoreError> {
  if (seq <= 0) return Fold.initial
  let changed = false
  let more = true
  for (let after = seq - 1; more && !changed;) {
    const page = yield* log.read({ sessionID, after })
    changed = page.events.some(Fold.isFraming)
    after = page.cursor
    more = page.hasMore
  }
  if (!changed) return Fold.ofSession(yield* store.get(sessionID))
  const read = Effect.gen(function* () {
    const before: Array<SessionEvent> = []
    for (let after = -1; after < seq - 1;) {
      const page = yield* log.read({ sessionID, after })
      before.push(...page.events.filter((event) => event.seq < seq && Fold.isFraming(event)))
      if (!page.hasMore) break
      after = page.cursor
    }
    return Fold.startAt(before)
  })
  return yield* Effect.catchTag(read, "CursorExpired", () => Effect.map(store.get(sessionID), Fold.ofSession))
})
