/**
 * Summarizes a branch that is about to be left: from its leaf back to where the next history begins. A failed or
 * interrupted summary moves nothing; what it used is charged. Spec: HP-26 to HP-28 (CP-16).
 */
import { Effect, Struct } from "effect"
import { edited } from "@daybook/log/domain/EditedMessages"
import * as HistoryPath from "@daybook/log/domain/HistoryPath"
import { Identifiers, type MessageID, type SessionID } from "@daybook/log/domain/Identifiers"
import type { Message } from "@daybook/log/domain/Message"
import { draft } from "@daybook/log/events/SessionEvents"
import { EventLog, type OwnerToken } from "@daybook/log/log/EventLog"
import { type Leaf, SessionStore } from "@daybook/log/store/SessionStore"
import { Lineage } from "../agent/Lineage.ts"
import { conversationOf, nothingSaid, reserveTokens, summaryTokens } from "../compaction/LeftBranch.ts"
import { defaultSettings, limitsOf } from "../compaction/Limits.ts"
import { summaryPrompt, withFiles } from "../compaction/Summary.ts"
import { summarize, SummaryFailed } from "../compaction/SummaryRequest.ts"
import { fileOperations, noFiles } from "../compaction/TouchedFiles.ts"
import { BranchNotSummarized } from "../domain/SummaryError.ts"
import { type ModelResolutionError, ModelResolver } from "../model/ModelResolver.ts"
import { withoutRefused } from "../request/Withholding.ts"
import { nothingSpent, spentFields } from "../request/TextRequest.ts"
import * as BudgetCheck from "../runner/BudgetCheck.ts"
import type { BudgetExceeded, PriceUnknown } from "../runner/BudgetCheck.ts"
import { modelOf } from "../runner/Preparation.ts"

export { BranchNotSummarized } from "../domain/SummaryError.ts"

/** Why no summary was requested: no model or agent, or a spent budget. */
export type SummaryRefused =
  ModelResolutionError | BudgetExceeded | PriceUnknown | Effect.Effect.Error<ReturnType<Lineage["Type"]["agentOf"]>>

/** Messages per read. */
const pageSize = 50

export const make = Effect.gen(function* () {
  const log = yield* EventLog
  const store = yield* SessionStore
  const lineage = yield* Lineage
  const models = yield* ModelResolver
  const identifiers = yield* Identifiers
  const budget = BudgetCheck.make(store, {})

  /** The messages of the path that the next history does not have, newest first, back to a checkpoint. */
  const left = Effect.fnUntraced(function* (sessionID: SessionID, next: HistoryPath.HistoryPath) {
    const messages: Array<Message> = []
    let cursor: number | undefined
    do {
      const page = yield* store.messages({ sessionID, order: "desc", limit: pageSize, cursor })
      for (const message of page.items) {
        if (HistoryPath.contains(next, message.seq)) return messages
        messages.push(message)
        if (message.type === "compaction") return messages
      }
      cursor = page.cursor
    } while (cursor !== undefined)
    return messages
  })

  /** The event that holds the summary. */
  return Effect.fn("BranchSummary.of")(function* (
    sessionID: SessionID,
    owner: OwnerToken,
    leaf: Leaf,
    next: HistoryPath.HistoryPath
  ) {
    const messageID = yield* identifiers.message
    const from: { readonly from?: MessageID } = leaf.messageID === undefined ? {} : { from: leaf.messageID }
    const messages = edited(yield* left(sessionID, next))
    const session = yield* store.get(sessionID)
    const agent = yield* lineage.agentOf(session)
    const settings = Struct.omit(agent.settings ?? {}, "stop")
    const summarizer = (maxOutputTokens: number) =>
      models.resolve(modelOf(session, agent), { ...settings, maxOutputTokens })
    const model = yield* summarizer(summaryTokens)
    const limits = limitsOf(model.info, { ...defaultSettings, reserveTokens })
    const conversation = conversationOf(withoutRefused(messages, model.info.ref), limits.budget, model.countTokens)
    if (conversation === "") return draft("session.next.branch.summarized", { messageID, text: nothingSaid, ...from })
    yield* budget(session, model.info)
    const spent = nothingSpent()
    const charge = (details: string) =>
      spent.tokens === undefined
        ? Effect.void
        : log.append(
            sessionID,
            [
              draft("session.next.compaction.failed", {
                messageID,
                error: { type: "branch.summary", message: details },
                ...spentFields(spent)
              })
            ],
            { owner }
          )
    const text = yield* summarize({
      log,
      sessionID,
      owner,
      messageID,
      model,
      summarizer: (tokens) => Effect.orElseSucceed(summarizer(tokens), () => model),
      limits: { ...limits, summary: Math.min(summaryTokens, limits.summary) },
      prompt: summaryPrompt(conversation),
      spent
    }).pipe(
      Effect.onInterrupt(() => Effect.ignoreLogged(charge("interrupted"))),
      Effect.catchIf(
        (error) => error instanceof SummaryFailed,
        ({ error }) =>
          Effect.zipRight(
            charge(error.message),
            Effect.fail(new BranchNotSummarized({ sessionID, details: error.message }))
          )
      )
    )
    const files = fileOperations(messages.toReversed(), noFiles)
    return draft("session.next.branch.summarized", {
      messageID,
      text: withFiles(text, files),
      ...from,
      readFiles: files.read.paths,
      modifiedFiles: files.modified.paths,
      ...spentFields(spent)
    })
  })
})

export type BranchSummary = Effect.Effect.Success<typeof make>
