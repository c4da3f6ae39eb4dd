/**
 * Runs a planned compaction between its two events. A failed or interrupted attempt leaves the shown history unchanged.
 * Spec: CM-7, CM-9, CP-41..CP-47.
 */
import { Cause, Effect, Exit, Option, Ref } from "effect"
import type { MessageID } from "@daybook/log/domain/Identifiers"
import type { Message } from "@daybook/log/domain/Message"
import type { StoredError } from "@daybook/log/domain/Values"
import { draft } from "@daybook/log/events/SessionEvents"
import type { AppendError, CursorAhead, CursorExpired, EventLog, ReadError } from "@daybook/log/log/EventLog"
import { nothingSpent, type Spent, spentFields } from "../request/TextRequest.ts"
import { described } from "../support/Defect.ts"
import { type CompactionRequest, filesOf, type Plan } from "./Plan.ts"
import { serialize } from "./Serialize.ts"
import { withFiles } from "./Summary.ts"
import { summarize, SummaryFailed } from "./SummaryRequest.ts"

/** Errors that prevent an attempt from being recorded. */
export type LogError = AppendError | Exclude<ReadError, CursorAhead | CursorExpired>

type Reason = "auto" | "manual"

/** An attempt to carry out a plan. */
export interface Attempt {
  readonly log: EventLog["Type"]
  readonly request: CompactionRequest
  readonly reason: Reason
  readonly messageID: MessageID
}

/** The events of an attempt that fails before it starts. */
export const refusal = (messageID: MessageID, reason: Reason, error: StoredError) =>
  [
    draft("session.next.compaction.started", { messageID, reason }),
    draft("session.next.compaction.failed", { messageID, error })
  ] as const

/**
 * Messages that others wrote since the request was read (for example a switch of agents), and the current cursor.
 * They would end up before the checkpoint, where no model sees them.
 */
const writtenSince = Effect.fnUntraced(function* (log: EventLog["Type"], { messages, sessionID }: CompactionRequest) {
  const late: Array<Message> = []
  let cursor = messages.reduce((latest, { seq }) => Math.max(latest, seq), -1)
  for (;;) {
    const page = yield* Effect.catchTags(log.read({ sessionID, after: cursor }), {
      CursorAhead: Effect.die,
      CursorExpired: Effect.die
    })
    for (const { created: createdAt, data, seq, type } of page.events) {
      if (type === "session.next.synthetic") {
        late.push({ type: "synthetic", id: data.messageID, seq, createdAt, text: data.text })
      } else if (type === "session.next.prompted") {
        late.push({ type: "user", id: data.messageID, seq, createdAt, ...data.prompt })
      }
    }
    cursor = page.cursor
    if (!page.hasMore) return { late, cursor }
  }
})

/** Appends the end of the attempt, and what others wrote meanwhile, in one event. */
const complete = ({ log, messageID, reason, request }: Attempt, plan: Plan, summary: string, spent: Spent) => {
  const files = filesOf(plan)
  const ending = Effect.gen(function* () {
    const { cursor, late } = yield* writtenSince(log, request)
    const event = draft("session.next.compaction.ended", {
      messageID,
      reason,
      text: withFiles(summary, files),
      recent: serialize([...plan.selection.recent, ...late]),
      ...(plan.task === undefined ? {} : { task: plan.task }),
      ...(plan.firstKeptSeq === undefined ? {} : { firstKeptSeq: plan.firstKeptSeq }),
      readFiles: files.read.paths,
      modifiedFiles: files.modified.paths,
      tokensBefore: request.tokens,
      ...spentFields(spent)
    })
    return yield* log.append(request.sessionID, [event], { owner: request.owner, expectedSeq: cursor })
  })
  // A conflict means a concurrent write, which may have to be kept: read again.
  return Effect.retry(ending, { times: 100, while: ({ _tag }) => _tag === "SeqConflict" })
}

/** The error of an attempt that did not complete. */
const errorOf = (cause: Cause.Cause<SummaryFailed | LogError>): StoredError => {
  const failure = Option.getOrUndefined(Cause.failureOption(cause))
  if (failure instanceof SummaryFailed) return failure.error
  return Cause.isInterruptedOnly(cause)
    ? { type: "aborted", message: "interrupted" }
    : { type: "defect", message: described(cause, "an internal error ended the compaction") }
}

/** Carries out a plan, or records why there is none. Returns whether the history was compacted. */
export const carryOut = Effect.fn("Compaction.compact")(function* (attempt: Attempt, plan: Plan | string) {
  const { log, messageID, reason, request } = attempt
  const { owner, sessionID } = request
  if (typeof plan === "string") {
    yield* log.append(sessionID, refusal(messageID, reason, { type: "not-compactable", message: plan }), { owner })
    return false
  }
  const spent = nothingSpent()
  const completed = yield* Ref.make(false)
  const body = Effect.gen(function* () {
    const input = { ...request, ...plan, log, messageID, spent }
    // Refused content is most likely in a result: the second request leaves results out (CP-640).
    const summary = yield* Effect.catchIf(
      summarize(input),
      (error) => error instanceof SummaryFailed && error.rejected,
      () => summarize({ ...input, prompt: plan.bare })
    )
    // An interrupt during this write finds the attempt completed.
    yield* Effect.uninterruptible(Effect.zipRight(complete(attempt, plan, summary, spent), Ref.set(completed, true)))
    return true
  })
  const settle = Effect.fnUntraced(function* (exit: Exit.Exit<boolean, SummaryFailed | LogError>) {
    if (Exit.isSuccess(exit) || (yield* Ref.get(completed))) return
    const failed = draft("session.next.compaction.failed", {
      messageID,
      error: errorOf(exit.cause),
      ...spentFields(spent)
    })
    yield* Effect.ignoreLogged(log.append(sessionID, [failed], { owner }))
  })
  const started = log.append(sessionID, [draft("session.next.compaction.started", { messageID, reason })], { owner })
  return yield* Effect.uninterruptibleMask((restore) =>
    Effect.zipRight(started, Effect.onExit(restore(body), settle))
  ).pipe(
    Effect.catchIf(
      (error) => error instanceof SummaryFailed,
      () => Effect.succeed(false)
    )
  )
})
