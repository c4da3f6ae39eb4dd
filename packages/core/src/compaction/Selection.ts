/**
 * Where a compaction parts the past: the older messages are summarized, the recent ones stay word for word. Calls and
 * their results are one message here, so a cut between messages never parts them. Pure. Spec: CP-14 to CP-18
 * (CM-4, CM-5, CM-12).
 */
import type { Message } from "../session/Message.ts"
import { serializeMessage } from "./Serialize.ts"
import { tokensOf, type CountTokens } from "./TokenEstimate.ts"

/** A message since the last checkpoint, with its size in the form in which it would be kept. */
export interface Sized {
  readonly message: Message
  readonly tokens: number
}

export interface Selection {
  readonly head: ReadonlyArray<Message>
  readonly recent: ReadonlyArray<Message>
}

/** What is past, and the prompts that no model has answered: they stay as they are, with all they carry (CP-49). */
export interface Answered {
  readonly past: ReadonlyArray<Message>
  readonly pending: ReadonlyArray<Message>
}

/** Messages with their sizes as serialized text. */
export const sized = (messages: ReadonlyArray<Message>, count?: CountTokens): ReadonlyArray<Sized> =>
  messages.map((message) => ({ message, tokens: tokensOf(serializeMessage(message), count) }))

/**
 * The newest messages that fit `keepTokens`, and all others. The cut moves on to the next user message when that keeps
 * at least half of what fits: a part of an answer alone is worth less than a whole exchange, and more than nothing. A
 * newest message that does not fit leaves nothing recent.
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

/** Why there is nothing to compact. */
export type NotCompactable = "nothing-older" | "nothing-new" | "unsettled"

/** The same for a person. */
export const notCompactableText: Readonly<Record<NotCompactable, string>> = {
  "nothing-older": "there is nothing older than the recent conversation to summarize",
  "nothing-new": "no answer has been given since the last checkpoint",
  unsettled: "a tool call is still running"
}

type ToolState = "pending" | "running" | "completed" | "error"

const hasCall = (message: Message, has: (state: ToolState) => boolean): boolean =>
  message.type === "assistant" && message.content.some((part) => part.type === "tool" && has(part.state))

/** A model said something or did something; a request that was refused is no answer. */
const answered = (message: Message): boolean =>
  hasCall(message, (state) => state === "completed" || state === "error") ||
  (message.type === "assistant" && message.content.some((part) => part.type === "text" && (part.text ?? "") !== ""))

/** Parts the prompts that wait for their answer from everything else. */
export const answeredUpTo = (messages: ReadonlyArray<Message>): Answered => {
  const last = messages.findLastIndex(answered)
  const waits = (message: Message, at: number) => at > last && message.type === "user"
  return {
    past: messages.filter((message, at) => !waits(message, at)),
    pending: messages.filter(waits)
  }
}

/**
 * Why this selection must not be compacted, or undefined when it may. Before the first checkpoint there has to be
 * something older (CM-5); at any time a model must have answered something since (CM-12). While the last answer's call
 * runs, its result would come to lie behind the checkpoint, where nobody is shown it.
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
