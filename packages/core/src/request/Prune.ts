/**
 * Decides which old tool results are hidden from the model, before anything is summarized. The result is one sequence
 * number: results of messages up to it are shown as placeholders. Stored results stay, and the number can be reset.
 * Pure. Spec: CP-30 to CP-35.
 */
import type { Message, ToolPart } from "@daybook/log/domain/Message"
import { type CountTokens, imageTokens, tokensOf } from "./TokenEstimate.ts"

/** Texts up to this many characters are not worth a placeholder. */
const minChars = 200
/** Tools whose results do not age: guidance that the agent loaded. */
const lasting: ReadonlySet<string> = new Set(["skill"])

/** The value for no pruning. */
export const nothingPruned = -1

/** What the model reads of a result: its text, else its structured data. */
export const shownText = ({ content, structured }: ToolPart): string => {
  const texts = (content ?? []).flatMap((part) => (part.type === "text" ? [part.text] : []))
  return texts.length > 0 ? texts.join("\n") : JSON.stringify(structured ?? {})
}

const mediaCount = (part: ToolPart): number => (part.content ?? []).filter(({ type }) => type === "file").length

/** Whether a result may be pruned: a completed local call whose result is long or has media. */
export const prunable = (part: ToolPart): boolean =>
  part.state === "completed" &&
  part.provider?.executed !== true &&
  !lasting.has(part.name) &&
  (shownText(part).length > minChars || mediaCount(part) > 0)

/** The text shown in place of a result. */
export const placeholder = (part: ToolPart): string => {
  const media = mediaCount(part)
  const files = media === 0 ? "" : ` and ${media} ${media === 1 ? "file" : "files"}`
  return (
    `[The result of ${part.name} is no longer shown: ${shownText(part).length} characters${files}. ` +
    "The session's log has it; call the tool again if it is needed.]"
  )
}

/** Whether this part is shown as a placeholder when results up to `through` are pruned. */
export const isPruned = (message: Message, part: ToolPart, through: number) => message.seq <= through && prunable(part)

const toolParts = (message: Message): ReadonlyArray<ToolPart> =>
  message.type === "assistant" ? message.content.filter((part): part is ToolPart => part.type === "tool") : []

const sum = (sizes: ReadonlyArray<number>): number => sizes.reduce((total, size) => total + size, 0)

const resultTokens = (part: ToolPart, count: CountTokens | undefined): number =>
  tokensOf(shownText(part), count) + mediaCount(part) * imageTokens

const saving = (message: Message, count: CountTokens | undefined): number =>
  sum(
    toolParts(message)
      .filter(prunable)
      .map((part) => Math.max(0, resultTokens(part, count) - tokensOf(placeholder(part), count)))
  )

/** Turns since this many newest user messages keep their results. */
const protectedUserMessages = 2

/** The index from which messages keep their results: the earlier of the two protections. */
const firstProtected = (messages: ReadonlyArray<Message>, protectTokens: number, count: CountTokens | undefined) => {
  const users = messages.flatMap((message, at) => (message.type === "user" ? [at] : []))
  const byTurns = users.at(-protectedUserMessages) ?? 0
  let [bySize, tokens] = [messages.length, 0]
  for (const message of messages.toReversed()) {
    tokens += sum(toolParts(message).map((part) => (part.state === "completed" ? resultTokens(part, count) : 0)))
    if (tokens > protectTokens) break
    bySize -= 1
  }
  return Math.min(byTurns, bySize)
}

export interface PruneInput {
  /** Messages since the last checkpoint, in order. */
  readonly messages: ReadonlyArray<Message>
  /** The current pruning limit; {@link nothingPruned} at first. */
  readonly through: number
  /** Tokens of the request in its current form. */
  readonly tokens: number
  /** Tokens to reach. */
  readonly target: number
  /** Tokens of the newest tool results that stay. */
  readonly protectTokens: number
  readonly countTokens?: CountTokens | undefined
}

/**
 * Returns the lowest sequence number up to which results must be pruned to reach the target. Returns undefined when the
 * request is small enough, or when pruning cannot reach the target: then nothing is pruned.
 */
export const prune = (input: PruneInput): number | undefined => {
  if (input.tokens <= input.target) return undefined
  const end = firstProtected(input.messages, input.protectTokens, input.countTokens)
  let tokens = input.tokens
  for (const message of input.messages.slice(0, end)) {
    if (message.seq <= input.through) continue
    const saved = saving(message, input.countTokens)
    if (saved === 0) continue
    tokens -= saved
    if (tokens <= input.target) return message.seq
  }
  return undefined
}
