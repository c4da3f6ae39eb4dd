/**
 * Fits a session's requests into its model's window: prunes old tool results if that suffices, else summarizes the
 * older conversation and shows the summary in its place. Stored history stays complete. This file owns the events, the
 * summary request and their order; the files beside it select and phrase, and are pure.
 * Spec: specs/compaction.md (CM-1..CM-13).
 */
import { Cause, Context, Effect, Exit, Layer, Option } from "effect"
import { Identifiers, type MessageID, type SessionID } from "@daybook/log/domain/Identifiers"
import type { Message } from "@daybook/log/domain/Message"
import type { StoredError } from "@daybook/log/domain/Values"
import { type Draft, draft } from "@daybook/log/events/SessionEvents"
import {
  type AppendError,
  type CursorAhead,
  type CursorExpired,
  EventLog,
  type OwnerToken,
  type ReadError
} from "@daybook/log/log/EventLog"
import type { ResolvedModel } from "../model/ModelResolver.ts"
import { lower } from "../request/Lowering.ts"
import { nothingPruned, prune } from "../request/Prune.ts"
import { shownFor } from "../request/Request.ts"
import { messageTokens } from "../request/TokenEstimate.ts"
import { type FileOperations, fileOperations, noFiles } from "./FileOperations.ts"
import { type CompactionSettings, defaultSettings, exceeds, type Limits, limitsOf } from "./Limits.ts"
import { answeredUpTo, notCompactable, notCompactableText, select, type Selection, sized } from "./Selection.ts"
import { serialize, tighterClips } from "./Serialize.ts"
import { splitFiles, summaryFits, summaryPrompt, withFiles } from "./Summary.ts"
import { type Spent, spentFields, summarize, SummaryFailed } from "./SummaryRequest.ts"
import { taskOf } from "./Task.ts"

/** Errors that prevent an attempt from being recorded. */
type LogError = AppendError | Exclude<ReadError, CursorAhead | CursorExpired>

/** A request that is about to be sent, or that the provider rejected as too long. */
export interface CompactionRequest {
  readonly sessionID: SessionID
  readonly owner: OwnerToken
  readonly model: ResolvedModel
  /** Resolves the same model with this output limit. */
  readonly summarizer: (maxOutputTokens: number) => Effect.Effect<ResolvedModel>
  readonly requestedOutput: number | undefined
  /** The messages shown to the model, including the last checkpoint. */
  readonly messages: ReadonlyArray<Message>
  readonly prunedSeq: number | undefined
  /** The prompts that opened the running or interrupted work; empty if there is none. */
  readonly opening: ReadonlyArray<MessageID>
  /** Tokens of the whole request: system, messages and tools. */
  readonly tokens: number
  /** The provider rejected it as too long. */
  readonly refused?: boolean
}

export type Compacted = "unchanged" | "pruned" | "compacted"

export class Compaction extends Context.Tag("@daybook/core/Compaction")<
  Compaction,
  {
    /** Whether compaction is enabled and the request exceeds its budget. Changes nothing. */
    readonly isNeeded: (request: CompactionRequest) => boolean
    /**
     * Runs before a request is sent. Unless it returns `unchanged`, the caller assembles the request again, without a
     * second promotion (CM-9).
     */
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

type Checkpoint = Extract<Message, { readonly type: "compaction" }>

/** The events of an attempt that fails before it starts. */
const refusal = (messageID: MessageID, reason: "auto" | "manual", error: StoredError) =>
  [
    draft("session.next.compaction.started", { messageID, reason }),
    draft("session.next.compaction.failed", { messageID, error })
  ] as const

/** The compaction to run, decided before anything is written. */
interface Plan {
  readonly selection: Selection
  readonly checkpoint: Checkpoint | undefined
  readonly prompt: string
  readonly limits: Limits
  /** Sequence number of the first prompt that stays unchanged. */
  readonly firstKeptSeq: number | undefined
  /** The task of the running work, in the words of its prompt. */
  readonly task: string | undefined
}

const make = Effect.fnUntraced(function* (settings: CompactionSettings) {
  const log = yield* EventLog
  const identifiers = yield* Identifiers

  const limitsFor = ({ model: { info }, refused, requestedOutput, tokens }: CompactionRequest): Limits =>
    limitsOf(
      {
        // A rejected request does not fit, whatever the catalogue says (CP-39).
        contextTokens: refused === true ? Math.min(info.contextTokens || tokens, tokens) : info.contextTokens,
        outputTokens: info.outputTokens,
        ...(requestedOutput === undefined ? {} : { requestedOutput })
      },
      settings
    )

  /** Tokens of the messages in lowered form, with their files. */
  const tokensIn = (messages: ReadonlyArray<Message>, { model, prunedSeq }: CompactionRequest): number =>
    lower(messages, shownFor(model.info, prunedSeq)).reduce(
      (total, message) => total + messageTokens(message, model.countTokens),
      0
    )

  /** Returns the plan, or why there is none. */
  const planOf = (request: CompactionRequest): Plan | string => {
    const { messages, model } = request
    const limits = limitsFor(request)
    const checkpoint = messages.findLast((message): message is Checkpoint => message.type === "compaction")
    const since = messages.filter((message) => message.type !== "compaction")
    const { past, pending } = answeredUpTo(since)
    // Pending prompts that would fill more than half of the budget are summarized too.
    const stays = tokensIn(pending, request) <= limits.budget / 2
    const selection = select(sized(stays ? past : since, model.countTokens), limits.keepRecent)
    const task = taskOf({
      messages,
      opening: request.opening,
      kept: stays ? pending : [],
      limit: limits.task,
      countTokens: model.countTokens
    })
    const reason = notCompactable(selection, { exists: checkpoint !== undefined })
    if (reason !== undefined) return notCompactableText[reason]
    // Serialized text includes pruned results in full, so the head can exceed the window: clip tighter until it fits.
    for (const limit of tighterClips) {
      const prompt = summaryPrompt(serialize(selection.head, limit), checkpoint)
      if (summaryFits(prompt, limits, model.countTokens))
        return {
          selection,
          checkpoint,
          prompt,
          limits,
          firstKeptSeq: stays ? pending[0]?.seq : undefined,
          task
        }
    }
    return "the conversation to summarize is too long for the model"
  }

  /**
   * Messages that others wrote since the request was read (for example a switch of agents), and the current cursor.
   * They would end up before the checkpoint, where no model sees them.
   */
  const writtenSince = Effect.fnUntraced(function* ({ messages, sessionID }: CompactionRequest) {
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

  const filesOf = ({ checkpoint, selection }: Plan): FileOperations => {
    const before = checkpoint === undefined ? noFiles : splitFiles(checkpoint.summary).files
    return fileOperations([...selection.head, ...selection.recent], before)
  }

  /**
   * Runs the plan between its two events. A failed or interrupted attempt leaves the shown history unchanged (CM-7).
   */
  const carryOut = Effect.fn("Compaction.compact")(function* (
    request: CompactionRequest,
    plan: Plan | string,
    reason: "auto" | "manual",
    messageID: MessageID
  ) {
    const { owner, sessionID } = request
    const write = (event: Draft) => log.append(sessionID, [event], { owner })
    const started = draft("session.next.compaction.started", { messageID, reason })
    const spent: Spent = { cost: 0, tokens: undefined, estimated: false }
    let ended = false
    const failed = (error: StoredError) =>
      draft("session.next.compaction.failed", { messageID, error, ...spentFields(spent) })
    if (typeof plan === "string") {
      yield* log.append(sessionID, refusal(messageID, reason, { type: "not-compactable", message: plan }), { owner })
      return false
    }
    const body = Effect.gen(function* () {
      const summary = yield* summarize({ ...request, ...plan, log, messageID, spent })
      const files = filesOf(plan)
      const ending = Effect.gen(function* () {
        const { cursor, late } = yield* writtenSince(request)
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
        return yield* log.append(sessionID, [event], { owner, expectedSeq: cursor })
      })
      // A conflict means a concurrent write, which may have to be kept: read again.
      const completed = Effect.retry(ending, { times: 100, while: ({ _tag }) => _tag === "SeqConflict" })
      // An interrupt during this write finds the attempt completed.
      yield* Effect.uninterruptible(Effect.tap(completed, () => Effect.sync(() => (ended = true))))
      return true
    })
    const settle = (exit: Exit.Exit<boolean, SummaryFailed | LogError>) => {
      if (Exit.isSuccess(exit) || ended) return Effect.void
      const failure = Option.getOrUndefined(Cause.failureOption(exit.cause))
      const error: StoredError =
        failure instanceof SummaryFailed
          ? failure.error
          : Cause.isInterruptedOnly(exit.cause)
            ? { type: "aborted", message: "interrupted" }
            : { type: "internal", message: "an internal error ended the compaction" }
      return Effect.ignoreLogged(write(failed(error)))
    }
    return yield* Effect.uninterruptibleMask((restore) =>
      Effect.zipRight(write(started), Effect.onExit(restore(body), settle))
    ).pipe(
      Effect.catchIf(
        (error) => error instanceof SummaryFailed,
        () => Effect.succeed(false)
      )
    )
  })

  const automatically = Effect.fnUntraced(function* (request: CompactionRequest) {
    const plan = planOf(request)
    // Nothing to compact and nothing to report: the request is sent as it is (CM-5).
    if (typeof plan === "string") return false
    return yield* carryOut(request, plan, "auto", yield* identifiers.message)
  })

  const isNeeded = (request: CompactionRequest): boolean =>
    settings.enabled && exceeds(request.tokens, limitsFor(request))

  return Compaction.of({
    isNeeded,
    compactIfNeeded: Effect.fn("Compaction.compactIfNeeded")(function* (request) {
      if (!isNeeded(request)) return "unchanged"
      const { messages, model, owner, prunedSeq, sessionID, tokens } = request
      const limits = limitsFor(request)
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
    compactManually: (request, messageID) => carryOut(request, planOf(request), "manual", messageID),
    refuse: ({ owner, sessionID }, messageID, error) =>
      Effect.asVoid(log.append(sessionID, refusal(messageID, "manual", error), { owner }))
  })
})

/** Compaction with these settings; absent ones take the defaults. */
export const layer = (settings: Partial<CompactionSettings> = {}) =>
  Layer.effect(Compaction, make({ ...defaultSettings, ...settings }))
