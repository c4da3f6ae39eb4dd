/**
 * Counts what Claude Code's logs say was spent. Each line of an API message repeats the message's usage, and only the last
 * has the final output; copies of a message repeat it again. Each message counts once. Pure but for its memory of counts.
 * Spec: FM-138 in specs/formats.md.
 */
import type { Spent } from "../conversation/Conversation.ts"
import { beyond, larger, nothing } from "../reading/Spending.ts"
import type { ApiUsage } from "./ClaudeRecord.ts"

/** Reasoning is part of the output and not counted apart. Only versions of 2025 say what a message cost. */
const spentOf = (usage: ApiUsage, cost: number): Spent => ({
  ...nothing,
  cost,
  input: usage.input_tokens ?? 0,
  output: usage.output_tokens ?? 0,
  cacheRead: usage.cache_read_input_tokens ?? 0,
  cacheWrite: usage.cache_creation_input_tokens ?? 0
})

export interface ClaudeUsage {
  /** What a line adds to what earlier lines of its message counted. */
  readonly count: (messageID: string, usage: ApiUsage | undefined, cost?: number) => Spent
}

export const make = (): ClaudeUsage => {
  const counted = new Map<string, Spent>()
  return {
    count: (messageID, usage, cost = 0) => {
      if (usage === undefined) return nothing
      const before = counted.get(messageID) ?? nothing
      const now = larger(before, spentOf(usage, cost))
      counted.set(messageID, now)
      return beyond(now, before)
    }
  }
}
