/**
 * The runtime behind a socket: one on disk, whose files an exporter keeps, or one in memory for temp sessions. All
 * other modules work with either. Spec: SO-35, SO-37 in specs/socket.md (FR-9, FR-11, IX-6).
 */
import { Cause, Context, Effect, Schema } from "effect"
import { SessionExecution } from "@daybook/core/session/SessionExecution"
import { Sessions } from "@daybook/core/session/Sessions"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import type { ImportUnfinished } from "@daybook/log/domain/Imported"
import type { InboxFullError, PromptConflictError } from "@daybook/log/domain/InboxError"
import type { InvalidInput } from "@daybook/log/domain/InvalidInput"
import type { Input, Session } from "@daybook/log/domain/Message"
import type { AddressTaken } from "@daybook/log/domain/Title"
import type { SessionEvent } from "@daybook/log/events/SessionEvents"
import { type AppendError, CursorExpired, EventLog, type ReadError } from "@daybook/log/log/EventLog"
import { Inbox } from "@daybook/log/store/Inbox"
import { SessionStore } from "@daybook/log/store/SessionStore"
import type { StoreError } from "@daybook/log/store/StoreError"
import * as Fold from "@daybook/transcript/Fold"
import { ErrorCode, type RunID, runOf } from "@daybook/transcript/row/Rows"
import * as Count from "../shared/Count.ts"

// Why a request is refused, for its client: an errno name and a sentence (FR-5).

/** The request was refused. */
export class Refused extends Schema.TaggedError<Refused>()("Refused", { code: ErrorCode, message: Schema.String }) {}

type CoreError =
  | AddressTaken
  | AppendError
  | ImportUnfinished
  | InboxFullError
  | InvalidInput
  | PromptConflictError
  | ReadError
  | StoreError

const codes: { readonly [Tag in CoreError["_tag"]]?: ErrorCode } = {
  InvalidInput: "EINVAL",
  PromptConflictError: "EINVAL",
  AddressTaken: "EBUSY",
  ImportUnfinished: "EBUSY",
  InboxFullError: "EBUSY",
  SeqConflict: "EBUSY",
  OwnerLost: "EBUSY",
  SessionNotFound: "ENOENT"
}

/** Converts a refusal by the runtime. */
export const refusedBy = (error: CoreError | Refused): Refused =>
  error._tag === "Refused" ? error : new Refused({ code: codes[error._tag] ?? "EIO", message: error.message })

/** The services of a runtime. */
export type BackendServices = Sessions | SessionExecution | SessionStore | Inbox | EventLog

export interface Backend {
  readonly sessions: Context.Tag.Service<typeof Sessions>
  readonly execution: Context.Tag.Service<typeof SessionExecution>
  readonly store: Context.Tag.Service<typeof SessionStore>
  readonly inbox: Context.Tag.Service<typeof Inbox>
  readonly log: Context.Tag.Service<typeof EventLog>
  /** Waits until the files reflect the event at this position. */
  readonly reached: (position: number) => Effect.Effect<void>
  /** Counts answers whose client must still see the end of a run. */
  readonly answers: Count.Count
}

/** The runtime in the context; without files, `reached` returns immediately. */
export const fromContext = (
  context: Context.Context<BackendServices>,
  reached: Backend["reached"] = () => Effect.void
): Backend => ({
  sessions: Context.get(context, Sessions),
  execution: Context.get(context, SessionExecution),
  store: Context.get(context, SessionStore),
  inbox: Context.get(context, Inbox),
  log: Context.get(context, EventLog),
  // A failure of the files does not hold back clients.
  reached: (position) =>
    Effect.catchAllCause(reached(position), (cause) =>
      Cause.isInterruptedOnly(cause)
        ? Effect.failCause(cause)
        : Effect.logError("the session files could not be brought up to date", cause)
    ),
  answers: Count.make()
})

/** Events per backward read; the first read is small, because an activity begins a few events before its first text. */
const firstWindow = 64
const window = 512

/** The last matching event up to `seq`, or undefined. Searches backwards: the cost is the distance. */
const lastBefore = Effect.fnUntraced(function* (
  { log }: Backend,
  sessionID: SessionID,
  seq: number,
  fits: (event: SessionEvent) => boolean
): Effect.fn.Return<SessionEvent | undefined, ReadError> {
  const lastWithin = Effect.fnUntraced(function* (after: number, end: number) {
    let found: SessionEvent | undefined
    for (let cursor = after; cursor < end;) {
      const page = yield* log.read({ sessionID, after: cursor, limit: end - cursor })
      found = page.events.findLast((event) => event.seq <= end && fits(event)) ?? found
      if (page.cursor === cursor) break
      cursor = page.cursor
    }
    return found
  })
  let [end, size, floor] = [seq, firstWindow, -1]
  while (end > floor) {
    const after = Math.max(floor, end - size)
    const found = yield* Effect.catchTag(lastWithin(after, end), "CursorExpired", (error) => Effect.succeed(error))
    if (found instanceof CursorExpired) {
      // Retention removed the events below.
      floor = found.floor
      continue
    }
    if (found !== undefined) return found
    end = after
    size = window
  }
  return undefined
})

/** The sequence number of the first event that retention did not remove. */
export const firstKept = ({ log }: Backend, sessionID: SessionID): Effect.Effect<number, ReadError> =>
  log.read({ sessionID, limit: 1 }).pipe(
    Effect.as(0),
    Effect.catchTag("CursorExpired", ({ floor }) => Effect.succeed(floor + 1))
  )

/** The start of the activity that contains the event at `seq`, or of the last one before it. */
export const activityStart = (backend: Backend, sessionID: SessionID, seq: number) =>
  lastBefore(backend, sessionID, seq, ({ type }) => type === "session.next.activity.started")

// Finds runs in the log, at the cost of their distance from its end.

export type Run = { readonly run: RunID; readonly clientID: string | undefined } & (
  | { readonly state: "waiting"; readonly input: Input }
  | {
      readonly state: "active"
      readonly activityID: NonNullable<Session["activity"]>["id"]
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
