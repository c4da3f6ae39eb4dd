/** Defines the runtime's metrics. A host exports them with any Effect metrics exporter. Spec: specs/architecture.md. */
import { Metric, MetricBoundaries, MetricKey, MetricLabel } from "effect"

/** The metrics of a key by the value of a tag, each made once: to tag a metric costs more than to count. */
const byTag = <Tagged>(tag: string, of: (labels: ReadonlyArray<MetricLabel.MetricLabel>) => Tagged) => {
  const made = new Map<string, Tagged>()
  return (value: string): Tagged => {
    const tagged = made.get(value) ?? of([MetricLabel.make(tag, value)])
    made.set(value, tagged)
    return tagged
  }
}

const counterBy = (name: string, tag: string) => {
  const key = MetricKey.counter(name, { incremental: true })
  return byTag(tag, (labels) => Metric.fromMetricKey(MetricKey.taggedWithLabels(key, labels)))
}

const gaugeBy = (name: string, tag: string) => {
  const key = MetricKey.gauge(name)
  return byTag(tag, (labels) => Metric.fromMetricKey(MetricKey.taggedWithLabels(key, labels)))
}

export const appends = Metric.counter("daybook_events_appended_total", { incremental: true })
export const batchSize = Metric.histogram(
  "daybook_append_batch_size",
  MetricBoundaries.exponential({ start: 1, factor: 2, count: 9 }),
  "appends in one commit"
)
/** Number of new events that a tail found at one wake. */
export const tailLag = Metric.histogram(
  "daybook_tail_lag_events",
  MetricBoundaries.exponential({ start: 1, factor: 4, count: 7 }),
  "events a tail was behind when it woke"
)
export const turnsWith = counterBy("daybook_turns_total", "outcome")
/** Tokens, by kind. */
export const tokensOf = counterBy("daybook_tokens_total", "kind")
/** Run time of tool calls in milliseconds, by tool. */
export const toolTime = Metric.histogram(
  "daybook_tool_duration_ms",
  MetricBoundaries.exponential({ start: 1, factor: 4, count: 10 }),
  "how long tool calls ran"
)
/** Waiting inputs of the session that admitted last. */
export const inboxDepth = Metric.gauge("daybook_inbox_depth")
/** Milliseconds to observe all context sources. */
export const contextTime = Metric.histogram(
  "daybook_context_observation_ms",
  MetricBoundaries.exponential({ start: 1, factor: 4, count: 8 }),
  "how long one look at all context sources took"
)
/** Observations that found a context source unavailable, by source. */
export const contextUnavailable = Metric.counter("daybook_context_unavailable_total", { incremental: true })
/** Characters of rendered baselines. */
export const contextBaseline = Metric.histogram(
  "daybook_context_baseline_chars",
  MetricBoundaries.exponential({ start: 256, factor: 4, count: 8 }),
  "characters of a rendered baseline"
)
export const contextUpdates = Metric.counter("daybook_context_update_chars_total", { incremental: true })
/** How far a consumer's cursor is behind its source, by consumer. */
export const consumerLag = Metric.gauge("daybook_consumer_lag_events")
export const consumerEvents = Metric.counter("daybook_consumer_events_total", { incremental: true })
export const consumerSkipped = Metric.counter("daybook_consumer_skipped_total", { incremental: true })
/** How late the event loop served its timers, in milliseconds, by quantile of the last fifth of a second. */
export const loopLagAt = gaugeBy("daybook_loop_lag_ms", "quantile")
/** Sessions that moved between processes: `given` to the next owner, or `taken` from the last one. */
export const handOvers = counterBy("daybook_hand_overs_total", "direction")
/** When the last one did, in milliseconds since the epoch. */
export const handOverAt = Metric.gauge("daybook_hand_over_timestamp_ms")
/** Events that retention removed. */
export const pruned = Metric.counter("daybook_events_pruned_total", { incremental: true })
export const databaseBytes = Metric.gauge("daybook_database_bytes")
/** How far the search index is behind the log, in positions. */
export const searchLag = Metric.gauge("daybook_search_lag_events")
