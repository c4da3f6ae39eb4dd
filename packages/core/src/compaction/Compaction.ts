/**
 * Fits a session's requests into its model's window: prunes old tool results if that suffices, else summarizes the
 * older conversation and shows the summary in its place. Stored history stays complete. `Plan.ts` decides what is
 * summarized, `Attempt.ts` carries it out; the files beside them select and phrase, and are pure.
 * Spec: specs/compaction.md (CM-1..CM-13).
 */
import { Context, Effect, Layer } from "effect"
import { Identifiers, type MessageID } from "@daybook/log/domain/Identifiers"
import type { StoredError } from "@daybook/log/domain/Values"
import { draft } from "@daybook/log/events/SessionEvents"
import { EventLog } from "@daybook/log/log/EventLog"
import { nothingPruned, prune } from "../request/Prune.ts"
import { carryOut, type LogError, refusal } from "./Attempt.ts"
import { type CompactionSettings, defaultSettings, exceeds } from "./Limits.ts"
import { type CompactionRequest, limitsFor, planOf } from "./Plan.ts"

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
