/** Defines the metrics of the bot. Spec: DI-67 in specs/discord.md. */
import { Metric } from "effect"

export const posts = Metric.counter("daybook_discord_posts", {
  description: "messages that were created",
  incremental: true
})
export const edits = Metric.counter("daybook_discord_edits", {
  description: "messages that were changed",
  incremental: true
})
export const doubts = Metric.counter("daybook_discord_doubts", {
  description: "posts that were looked for, because the end of a request was unknown",
  incremental: true
})
export const failures = Metric.counter("daybook_discord_failures", {
  description: "requests that failed, by reason",
  incremental: true
})
export const prompts = Metric.counter("daybook_discord_prompts", {
  description: "messages that were admitted as prompts",
  incremental: true
})
