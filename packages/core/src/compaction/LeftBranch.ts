/**
 * Selects what a summary of a branch that was left covers: the newest messages that fit, without tool results, back to the
 * last checkpoint of the branch. Pure. Spec: HP-26 (CP-16).
 */
import type { Message } from "@daybook/log/domain/Message"
import { type CountTokens, tokensOf } from "../request/TokenEstimate.ts"
import { serializeMessage } from "./Serialize.ts"

/** Maximum tokens of the summary. */
export const summaryTokens = 2_048
/** Tokens of the window that the conversation leaves free. */
export const reserveTokens = 16_384
/** The summary of a branch without a word. */
export const nothingSaid = "Nothing had been said in the branch that was left."

/** The share of the budget up to which a summary may exceed it. */
const nearlyFull = 0.9

/** The message without the results of its calls. */
const withoutResults = (message: Message): Message =>
  message.type !== "assistant"
    ? message
    : {
        ...message,
        content: message.content.map((part) =>
          part.type === "tool" && part.state === "completed"
            ? { ...part, content: [{ type: "text" as const, text: "(left out)" }] }
            : part
        )
      }

const textOf = (message: Message): string =>
  message.type === "compaction"
    ? `[Summary of what came before]: ${message.summary}`
    : serializeMessage(withoutResults(message))

const isSummary = ({ type }: Message): boolean => type === "compaction" || type === "branch-summary"

/** The conversation as text, oldest first; `messages` are those of the branch, newest first. */
export const conversationOf = (messages: ReadonlyArray<Message>, budget: number, count?: CountTokens): string => {
  const texts: Array<string> = []
  let tokens = 0
  for (const message of messages) {
    const text = textOf(message)
    const size = tokensOf(text, count)
    // A summary says much in few words, so it may exceed the budget a little.
    if (tokens + size > budget && !(isSummary(message) && tokens < budget * nearlyFull)) break
    tokens += size
    if (text !== "") texts.unshift(text)
    if (message.type === "compaction") break
  }
  return texts.join("\n\n")
}
