/**
 * Leaving old tool results out of what the model is shown, before anything is summarized. It yields one number, up to
 * which message results are shown as a placeholder: what is stored stays as it is, and the number can be taken back.
 * Pure. Spec: CP-30 to CP-35.
 */
import type { Message, ToolPart } from "../session/Message.ts"
import { imageTokens, tokensOf, type CountTokens } from "./TokenEstimate.ts"

/** Results up to this many characters are not worth a placeholder. */
const minChars = 200
/** Guidance that an agent has asked for is no output that ages. */
const lasting: ReadonlySet<string> = new Set(["skill"])

/** Nothing is left out. */
export const nothingPruned = -1

/** What the model reads of a result: its text, else its facts. */
const shownText = ({ content, structured }: ToolPart): string => {
  const texts = (content ?? []).flatMap((part) => (part.type === "text" ? [part.text] : []))
  return texts.length > 0 ? texts.join("\n") : JSON.stringify(structured ?? {})
}

const mediaCount = (part: ToolPart): number => (part.content ?? []).filter(({ type }) => type === "file").length

/** Whether a result may be left out: a local call's own, completed, and long or with media. */
export const prunable = (part: ToolPart): boolean =>
  part.state === "completed" &&
  part.provider?.executed !== true &&
  !lasting.has(part.name) &&
  (shownText(part).length > minChars || mediaCount(part) > 0)

/** What is shown in place of a result. */
export const placeholder = (part: ToolPart): string => {
  const media = mediaCount(part)
  const files = media === 0 ? "" : ` and ${media} ${media === 1 ? "file" : "files"}`
  return (
    `[The result of ${part.name} is no longer shown: ${shownText(part).length} characters${files}. ` +
    "The session's log has it; call the tool again if it is needed.]"
  )
}

/** Whether a part is shown as its placeholder when results up to `through` are left out. */
export const isPruned = (message: Message, part: ToolPart, through: number): boolean =>
  message.seq <= through && prunable(part)

const toolParts = (message: Message): ReadonlyArray<ToolPart> =>
  message.type === "assistant" ? message.content.filter((part): part is ToolPart => part.type === "tool") : []

const sum = (sizes: ReadonlyArray<number>): number => sizes.reduce((total, size) => total + size, 0)

const resultTokens = (part: ToolPart, count: CountTokens | undefined): number =>
  tokensOf(shownText(part), count) + mediaCount(part) * imageTokens

/** Tokens that a message loses with its results. */
const saving = (message: Message, count: CountTokens | undefined): number =>
  sum(
    toolParts(message)
      .filter(prunable)
      .map((part) => Math.max(0, resultTokens(part, count) - tokensOf(placeholder(part), count)))
  )

/** Turns of this many of the newest user messages keep their results. */
const protectedUserMessages = 2

/** The place from which messages keep their results: both protections hold, so the earlier one counts. */
const firstProtected = (
  messages: ReadonlyArray<Message>,
  protectTokens: number,
  count: CountTokens | undefined
): number => {
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
  /** What is shown since the last checkpoint, in order. */
  readonly messages: ReadonlyArray<Message>
  /** Up to where results are left out already; {@link nothingPruned} at first. */
  readonly through: number
  /** The request's tokens as it would go out now. */
  readonly tokens: number
  /** Tokens to come down to. */
  readonly target: number
  /** Tokens of the newest tool results that stay. */
  readonly protectTokens: number
  readonly countTokens?: CountTokens | undefined
}

/**
 * Up to which message results have to be left out for the request to come down to its target: the least that does.
 * Undefined when there is nothing to do, or when it would not be enough: then nothing is left out for nothing.
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
