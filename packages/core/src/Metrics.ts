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
