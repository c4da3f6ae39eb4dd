/**
 * Fits a session's requests into its model's window: prunes old tool results if that suffices, else summarizes the
 * older conversation and shows the summary in its place. Stored history stays complete. `Plan.ts` decides what is
 * summarized, `Summary.ts` phrases and requests it. Spec: CP-41..CP-47 in specs/context.md (CM-1..CM-13).
 */
import { Cause, Context, Effect, Exit, Layer, Option, Ref } from "effect"
import { Identifiers, type MessageID } from "@daybook/log/domain/Identifiers"
import type { Message } from "@daybook/log/domain/Message"
import type { StoredError } from "@daybook/log/domain/Values"
import { draft } from "@daybook/log/events/SessionEvents"
import {
  type AppendError,
  type CursorAhead,
  type CursorExpired,
  EventLog,
  type ReadError
} from "@daybook/log/log/EventLog"
import { nothingPruned, prune } from "../request/Prune.ts"
import { nothingSpent, type UsageSum, spentFields } from "../request/TextRequest.ts"
import { uncontested } from "../support/Contested.ts"
import { described } from "../domain/RunFailure.ts"
import { type CompactionSettings, defaultSettings, exceeds } from "./Limits.ts"
import { type CompactionRequest, filesOf, limitsFor, type Plan, planOf } from "./Plan.ts"
import { serialize } from "./Serialize.ts"
import { summarize, SummaryFailed, withFiles } from "./Summary.ts"

// Runs a planned compaction between its two events; a failure leaves the shown history unchanged.

/** Errors that prevent an attempt from being recorded. */
type LogError = AppendError | Exclude<ReadError, CursorAhead | CursorExpired>

type Reason = "auto" | "manual"

interface Attempt {
  readonly log: EventLog["Type"]
  readonly request: CompactionRequest
  readonly reason: Reason
  readonly messageID: MessageID
}

/** The events of an attempt that fails before it starts. */
const refusal = (messageID: MessageID, reason: Reason, error: StoredError) =>
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
const complete = ({ log, messageID, reason, request }: Attempt, plan: Plan, summary: string, spent: UsageSum) => {
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
  // A concurrent write may have to be kept.
  return uncontested(ending)
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
const carryOut = Effect.fn("Compaction.compact")(function* (attempt: Attempt, plan: Plan | string) {
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

export type Compacted = "unchanged" | "pruned" | "compacted"

export class Compaction extends Context.Tag("@daybook/core/Compaction")<
  Compaction,
  {
    /** Whether compaction is enabled and the request exceeds its budget. Changes nothing. */
    readonly isNeeded: (request: CompactionRequest) => boolean
    /** Runs before a request is sent. Unless it returns `unchanged`, the caller assembles the request again (CM-9). */
    readonly compactIfNeeded: (request: CompactionRequest) => Effect.Effect<Compacted, LogError>
    /** Runs after the provider rejected the request as too long, before any answer (CM-10). True: try again. */
    readonly compactAfterOverflow: (request: CompactionRequest) => Effect.Effect<boolean, LogError>
    /** Runs a requested compaction. `messageID` is the request's; it ends here, whatever the outcome (CP-55). */
    readonly compactManually: (request: CompactionRequest, messageID: MessageID) => Effect.Effect<boolean, LogError>
    /** Fails a request that cannot be carried out. */
    readonly refuse: (
      request: Pick<CompactionRequest, "sessionID" | "owner">,
      messageID: MessageID,
      error: StoredError
    ) => Effect.Effect<void, LogError>
  }
>() {}

const make = Effect.fnUntraced(function* (settings: CompactionSettings) {
  const log = yield* EventLog
  const identifiers = yield* Identifiers

  const automatically = Effect.fnUntraced(function* (request: CompactionRequest) {
    const plan = planOf(request, settings)
    // Nothing to compact and nothing to report: the request is sent as it is (CM-5).
    if (typeof plan === "string") return false
    return yield* carryOut({ log, request, reason: "auto", messageID: yield* identifiers.message }, plan)
  })

  const isNeeded = (request: CompactionRequest): boolean =>
    settings.enabled && exceeds(request.tokens, limitsFor(request, settings))

  return Compaction.of({
    isNeeded,
    compactIfNeeded: Effect.fn("Compaction.compactIfNeeded")(function* (request) {
      if (!isNeeded(request)) return "unchanged"
      const { messages, model, owner, prunedSeq, sessionID, tokens } = request
      const limits = limitsFor(request, settings)
      const through = settings.prune
        ? prune({
            messages,
            through: prunedSeq ?? nothingPruned,
            tokens,
            target: limits.pruneTarget,
            protectTokens: limits.keepRecent,
            countTokens: model.countTokens
          })
        : undefined
      if (through !== undefined) {
        yield* log.append(sessionID, [draft("session.next.context.pruned", { through })], { owner })
        return "pruned"
      }
      return (yield* automatically(request)) ? "compacted" : "unchanged"
    }),
    compactAfterOverflow: Effect.fn("Compaction.compactAfterOverflow")((request) =>
      settings.enabled ? automatically({ ...request, refused: true }) : Effect.succeed(false)
    ),
    compactManually: (request, messageID) =>
      carryOut({ log, request, reason: "manual", messageID }, planOf(request, settings)),
    refuse: ({ owner, sessionID }, messageID, error) =>
      Effect.asVoid(log.append(sessionID, refusal(messageID, "manual", error), { owner }))
  })
})

/** Compaction with these settings; absent ones take the defaults. */
export const layer = (settings: Partial<CompactionSettings> = {}) =>
  Layer.effect(Compaction, make({ ...defaultSettings, ...settings }))
