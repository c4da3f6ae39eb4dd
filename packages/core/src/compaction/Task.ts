/**
 * Renders the prompt of the running work for a checkpoint: verbatim up to a limit, beyond it head and tail with a mark
 * between them. Pure. Spec: CP-50, CP-51.
 */
import type { MessageID } from "@daybook/log/domain/Identifiers"
import type { Message, UserMessage } from "@daybook/log/domain/Message"
import { type CountTokens, tokensOf } from "../request/TokenEstimate.ts"
import { promptLines, tighterClips } from "./Serialize.ts"

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

export interface TaskInput {
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
