/** Plans a compaction: the messages to summarize, the messages to keep, and the prompt of the summary. Pure. */
import type { Effect } from "effect"
import type { MessageID, SessionID } from "@daybook/log/domain/Identifiers"
import type { Message } from "@daybook/log/domain/Message"
import type { OwnerToken } from "@daybook/log/log/EventLog"
import type { ResolvedModel } from "../model/ModelResolver.ts"
import { lower } from "../request/Lowering.ts"
import { shownFor } from "../request/Request.ts"
import { messageTokens } from "../request/TokenEstimate.ts"
import { withoutRefused } from "../request/Withholding.ts"
import { type CompactionSettings, type Limits, limitsOf } from "./Limits.ts"
import { answeredUpTo, notCompactable, notCompactableText, select, type Selection, sized } from "./Selection.ts"
import { serialize, tighterClips } from "./Serialize.ts"
import { splitFiles, summaryFits, summaryPrompt } from "./Summary.ts"
import { taskOf } from "./Task.ts"
import { fileOperations, noFiles, type TouchedFiles } from "./TouchedFiles.ts"

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

type Checkpoint = Extract<Message, { readonly type: "compaction" }>

/** The compaction to run, decided before anything is written. */
export interface Plan {
  readonly selection: Selection
  readonly checkpoint: Checkpoint | undefined
  readonly prompt: string
  /** The prompt without results, attachments and reasoning, in case the server refuses their content. */
  readonly bare: string
  readonly limits: Limits
  /** Sequence number of the first prompt that stays unchanged. */
  readonly firstKeptSeq: number | undefined
  /** The task of the running work, in the words of its prompt. */
  readonly task: string | undefined
}

/** The limits of a request. */
export const limitsFor = (
  { model: { info }, refused, requestedOutput, tokens }: CompactionRequest,
  settings: CompactionSettings
): Limits =>
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
export const planOf = (request: CompactionRequest, settings: CompactionSettings): Plan | string => {
  const { model } = request
  const messages = withoutRefused(request.messages, model.info.ref)
  const limits = limitsFor(request, settings)
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
        bare: summaryPrompt(serialize(selection.head, 0), checkpoint),
        limits,
        firstKeptSeq: stays ? pending[0]?.seq : undefined,
        task
      }
  }
  return "the conversation to summarize is too long for the model"
}

/** The files that the summarized conversation, and those before it, worked on. */
export const filesOf = ({ checkpoint, selection }: Plan): TouchedFiles => {
  const before = checkpoint === undefined ? noFiles : splitFiles(checkpoint.summary).files
  return fileOperations([...selection.head, ...selection.recent], before)
}
