/**
 * Selects what a compaction summarizes: older messages are summarized, recent ones are kept verbatim. A call and its
 * result are one message here, so a cut between messages never separates them. Pure. Spec: CP-14 to CP-18 (CM-4, CM-5,
 * CM-12).
 */
import type { Message } from "@daybook/log/domain/Message"
import { type CountTokens, tokensOf } from "../request/TokenEstimate.ts"
import { serializeMessage } from "./Serialize.ts"

/** A message since the last checkpoint, with its size in serialized form. */
export interface Sized {
  readonly message: Message
  readonly tokens: number
}

export interface Selection {
  readonly head: ReadonlyArray<Message>
  readonly recent: ReadonlyArray<Message>
}

/** The past, and the prompts without an answer, which stay unchanged with their attachments (CP-49). */
export interface Answered {
  readonly past: ReadonlyArray<Message>
  readonly pending: ReadonlyArray<Message>
}

/** Messages with their sizes as serialized text. */
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
export type NotCompactable = "nothing-older" | "nothing-new" | "unsettled"

/** The reasons as text for people. */
export const notCompactableText: Readonly<Record<NotCompactable, string>> = {
  "nothing-older": "there is nothing older than the recent conversation to summarize",
  "nothing-new": "no answer has been given since the last checkpoint",
  unsettled: "a tool call is still running"
}

type ToolState = "pending" | "running" | "completed" | "error"

const hasCall = (message: Message, has: (state: ToolState) => boolean): boolean =>
  message.type === "assistant" && message.content.some((part) => part.type === "tool" && has(part.state))

/** The model wrote text or settled a call; a failed request is not an answer. */
const answered = (message: Message): boolean =>
  hasCall(message, (state) => state === "completed" || state === "error") ||
  (message.type === "assistant" && message.content.some((part) => part.type === "text" && (part.text ?? "") !== ""))

/** Separates the prompts that wait for an answer from everything else. */
export const answeredUpTo = (messages: ReadonlyArray<Message>): Answered => {
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
