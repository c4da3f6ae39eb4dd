/**
 * Counts what a rollout says was spent. `token_count` events repeat the cumulative usage at will, so only its growth
 * counts. A count that falls belongs to a new window or a resumed session: then the last request counts. FM-156.
 */
import type { Spent } from "../conversation/Conversation.ts"
import { beyond, nothing } from "../reading/Spending.ts"
import type { Payload, TokenUsage } from "./CodexRecord.ts"

const spentOf = (usage: TokenUsage): Spent => {
  const cacheRead = usage.cached_input_tokens ?? 0
  const cacheWrite = usage.cache_write_input_tokens ?? 0
  return {
    ...nothing,
    input: Math.max(0, (usage.input_tokens ?? 0) - cacheRead - cacheWrite),
    output: usage.output_tokens ?? 0,
    reasoning: usage.reasoning_output_tokens ?? 0,
    cacheRead,
    cacheWrite
  }
}

const allOf = ({ cacheRead, cacheWrite, input, output }: Spent): number => input + cacheRead + cacheWrite + output

export interface CodexUsage {
  /** What was spent since the last count. */
  readonly count: (payload: Payload) => Spent
}

export const make = (): CodexUsage => {
  let before = nothing
  return {
    count: ({ info, thread_token_usage, usage }) => {
      const total = info?.total_token_usage ?? thread_token_usage
      const last = info?.last_token_usage ?? usage
      if (total === undefined) return last === undefined ? nothing : spentOf(last)
      const now = spentOf(total)
      const fell = allOf(now) < allOf(before)
      const growth = fell ? spentOf(last ?? total) : beyond(now, before)
      before = now
      return growth
    }
  }
}
