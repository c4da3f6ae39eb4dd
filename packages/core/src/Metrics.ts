/** What the runtime counts. A host exports these with any Effect metrics exporter. Spec: specs/architecture.md. */
import { Metric, MetricBoundaries } from "effect"

/** Durable events appended. */
export const appends = Metric.counter("daybook_events_appended_total", { incremental: true })
/** Appends that shared one transaction. */
export const batchSize = Metric.histogram(
  "daybook_append_batch_size",
  MetricBoundaries.exponential({ start: 1, factor: 2, count: 9 }),
  "appends in one commit"
)
/** Events that a tail found waiting at one wake. */
export const tailLag = Metric.histogram(
  "daybook_tail_lag_events",
  MetricBoundaries.exponential({ start: 1, factor: 4, count: 7 }),
  "events a tail was behind when it woke"
)
/** Provider turns, by outcome. */
export const turns = Metric.counter("daybook_turns_total", { incremental: true })
/** Tokens, by kind. */
export const tokens = Metric.counter("daybook_tokens_total", { incremental: true })
/** Tool calls' run time in milliseconds, by tool. */
export const toolTime = Metric.histogram(
  "daybook_tool_duration_ms",
  MetricBoundaries.exponential({ start: 1, factor: 4, count: 10 }),
  "how long tool calls ran"
)
/** Inputs that wait in the inbox of the session last admitted to. */
export const inboxDepth = Metric.gauge("daybook_inbox_depth")
/** Milliseconds until every context source was looked at. */
export const contextTime = Metric.histogram(
  "daybook_context_observation_ms",
  MetricBoundaries.exponential({ start: 1, factor: 4, count: 8 }),
  "how long one look at all context sources took"
)
/** Looks at a context source that found it unavailable, by source. */
export const contextUnavailable = Metric.counter("daybook_context_unavailable_total", { incremental: true })
/** Characters of the baselines that were rendered. */
export const contextBaseline = Metric.histogram(
  "daybook_context_baseline_chars",
  MetricBoundaries.exponential({ start: 256, factor: 4, count: 8 }),
  "characters of a rendered baseline"
)
/** Characters of the changes that were told. */
export const contextUpdates = Metric.counter("daybook_context_update_chars_total", { incremental: true })
