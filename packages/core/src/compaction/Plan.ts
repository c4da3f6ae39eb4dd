/**
 * Plans a compaction: the messages to summarize, the messages to keep, and the prompt of the summary. Pure. Spec:
 * CP-14..CP-18, CP-50, CP-51 in specs/context.md (CM-4, CM-5, CM-12).
 */
import type { Effect } from "effect"
import type { MessageID, SessionID } from "@daybook/log/domain/Identifiers"
import type { Message, UserMessage } from "@daybook/log/domain/Message"
import type { OwnerToken } from "@daybook/log/log/EventLog"
import type { ResolvedModel } from "../model/ModelResolver.ts"
import { lower } from "../request/Lowering.ts"
import { shownFor } from "../request/Request.ts"
import { type CountTokens, messageTokens, tokensOf } from "../request/TokenEstimate.ts"
import { withoutRefused } from "../request/Withholding.ts"
import { type CompactionSettings, type Limits, limitsOf } from "./Limits.ts"
import { promptLines, serialize, serializeMessage, tighterClips } from "./Serialize.ts"
import { fileOperations, noFiles, splitFiles, summaryFits, summaryPrompt, type TouchedFiles } from "./Summary.ts"

// Renders the prompt of the running work for a checkpoint: whole up to a limit, else head and tail.

const mark = (missing: number): string => `\n[... ${missing} characters of this prompt are left out here ...]\n`
/** Upper bound on the tokens of a mark. */
const markTokens = 24

/** The head and the tail of a text, without splitting a character. */
const ends = (text: string, chars: number): string => {
  const half = Math.max(0, Math.floor(chars / 2))
  const isLow = (at: number) => /[\udc00-\udfff]/.test(text.charAt(at))
  const head = isLow(half) ? half - 1 : half
  const tail = isLow(text.length - half) ? text.length - half + 1 : text.length - half
  return tail <= head ? text : `${text.slice(0, head)}${mark(tail - head)}${text.slice(tail)}`
}

/** The text within this many tokens, including the mark. */
const within = (text: string, limit: number, count: CountTokens | undefined): string => {
  if (tokensOf(text, count) <= limit) return text
  let chars = (limit - markTokens) * 4
  for (;;) {
    const kept = ends(text, chars)
    const size = tokensOf(kept, count)
    if (size <= limit || chars <= 0) return kept
    chars = Math.min(chars - 8, Math.floor((chars * limit) / size))
  }
}

/** One prompt with its attachments. Attachments are clipped before the prompt's own words. */
const promptText = (prompt: UserMessage, limit: number, count: CountTokens | undefined): string => {
  for (const clip of tighterClips) {
    const { beside, words } = promptLines(prompt, clip)
    const text = [...words, ...beside].join("\n")
    if (tokensOf(text, count) <= limit) return text
  }
  const { beside, words } = promptLines(prompt, tighterClips.at(-1) ?? 0)
  const rest = within(beside.join("\n"), Math.floor(limit / 4), count)
  const text = within(words.join("\n"), limit - tokensOf(rest, count), count)
  return rest === "" ? text : `${text}\n${rest}`
}

interface TaskInput {
  /** The messages shown to the model, including the last checkpoint. */
  readonly messages: ReadonlyArray<Message>
  /** The prompts that opened the running work; empty if there is none. */
  readonly opening: ReadonlyArray<MessageID>
  /** Messages that follow the checkpoint unchanged. */
  readonly kept: ReadonlyArray<Message>
  /** Tokens; several prompts share them equally. */
  readonly limit: number
  readonly countTokens: CountTokens | undefined
}

/** The task of the next checkpoint; undefined if no work runs, or if its prompts follow the checkpoint. */
export const taskOf = ({ countTokens, kept, limit, messages, opening }: TaskInput): string | undefined => {
  if (opening.length === 0) return undefined
  const ids = new Set<MessageID>(opening)
  const prompts = messages.filter((message) => message.type === "user" && ids.has(message.id))
  // Opened before the last checkpoint, which holds the task.
  if (prompts.length === 0) return messages.findLast((message) => message.type === "compaction")?.task
  const gone = prompts.filter((message) => !kept.includes(message))
  if (gone.length === 0) return undefined
  const share = Math.floor(limit / gone.length)
  return gone.flatMap((prompt) => (prompt.type === "user" ? [promptText(prompt, share, countTokens)] : [])).join("\n\n")
}

// Selects what a compaction summarizes: older messages; recent messages stay verbatim.

/** A message since the last checkpoint, with its size in serialized form. */
export interface Sized {
  readonly message: Message
  readonly tokens: number
}

type Selection = { readonly head: ReadonlyArray<Message>; readonly recent: ReadonlyArray<Message> }

/** The past, and the prompts without an answer, which stay unchanged with their attachments (CP-49). */
type Answered = { readonly past: ReadonlyArray<Message>; readonly pending: ReadonlyArray<Message> }

export const sized = (messages: ReadonlyArray<Message>, count?: CountTokens): ReadonlyArray<Sized> =>
  messages.map((message) => ({ message, tokens: tokensOf(serializeMessage(message), count) }))

/**
 * Returns the newest messages that fit `keepTokens`, and all others. The cut moves forward to the next user message if
 * that keeps at least half of what fits: a complete exchange is worth more than a partial answer. If the newest message
 * does not fit, nothing is recent.
 *
 * A greater budget never keeps less, and a longer history never moves the cut back.
 */
export const select = (messages: ReadonlyArray<Sized>, keepTokens: number): Selection => {
  let start = messages.length
  let kept = 0
  let [user, keptFromUser] = [start, 0]
  for (let at = messages.length - 1; at >= 0; at--) {
    const entry = messages[at]
    if (entry === undefined || kept + entry.tokens > keepTokens) break
    kept += entry.tokens
    start = at
    if (entry.message.type === "user") [user, keptFromUser] = [at, kept]
  }
  const cut = user < messages.length && keptFromUser * 2 >= kept ? user : start
  const all = messages.map(({ message }) => message)
  return { head: all.slice(0, cut), recent: all.slice(cut) }
}

/** Why a session cannot be compacted. */
type NotCompactable = "nothing-older" | "nothing-new" | "unsettled"

const notCompactableText: Readonly<Record<NotCompactable, string>> = {
  "nothing-older": "there is nothing older than the recent conversation to summarize",
  "nothing-new": "no answer has been given since the last checkpoint",
  unsettled: "a tool call is still running"
}

const hasCall = (message: Message, has: (state: "pending" | "running" | "completed" | "error") => boolean): boolean =>
  message.type === "assistant" && message.content.some((part) => part.type === "tool" && has(part.state))

/** The model wrote text or settled a call; a failed request is not an answer. */
const answered = (message: Message): boolean =>
  hasCall(message, (state) => state === "completed" || state === "error") ||
  (message.type === "assistant" && message.content.some((part) => part.type === "text" && (part.text ?? "") !== ""))

/** Separates the prompts that wait for an answer from everything else. */
const answeredUpTo = (messages: ReadonlyArray<Message>): Answered => {
  const last = messages.findLastIndex(answered)
  const waits = (message: Message, at: number) => at > last && message.type === "user"
  return {
    past: messages.filter((message, at) => !waits(message, at)),
    pending: messages.filter(waits)
  }
}

/**
 * Why this selection must not be compacted; undefined when it may. Without a checkpoint, an older message must exist
 * (CM-5). Since the last checkpoint, a model must have answered (CM-12). A running call blocks the compaction: its
 * result would end up before the checkpoint, where no model sees it.
 */
export const notCompactable = (
  selection: Selection,
  checkpoint: { readonly exists: boolean }
): NotCompactable | undefined => {
  const all = [...selection.head, ...selection.recent]
  if (!checkpoint.exists && selection.head.every((message) => serializeMessage(message) === "")) return "nothing-older"
  if (!all.some(answered)) return "nothing-new"
  const last = all.findLast((message) => message.type === "assistant")
  return last !== undefined && hasCall(last, (state) => state === "running") ? "unsettled" : undefined
}

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
