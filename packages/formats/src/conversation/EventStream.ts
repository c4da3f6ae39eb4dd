/**
 * Recognises the event streams that tools print for programs. Event streams look like logs, but only the tool's own log
 * has the ids and all messages. Spec: FM-444 in specs/formats.md.
 */
import { Predicate, Schema } from "effect"
import type { JsonRecord } from "@daybook/log/domain/Json"

/** The file is what a tool printed while it worked. */
export class EventStream extends Schema.TaggedError<EventStream>("@daybook/formats/EventStream")("EventStream", {
  tool: Schema.Literal("pi", "claude", "codex"),
  /** The session's id in the tool; absent if the stream does not say it. */
  id: Schema.optionalWith(Schema.String, { exact: true })
}) {
  override get message() {
    const { command, log } = streams[this.tool](this.id ?? "*")
    return (
      `this is the event stream of ${command}, not a session log; import the log that the run kept, ${log} ` +
      "(a run that keeps no session has none)"
    )
  }
}

const streams = {
  pi: (id: string) => ({ command: "pi --mode json", log: `~/.pi/agent/sessions/*/*_${id}.jsonl` }),
  claude: (id: string) => ({
    command: "claude --output-format stream-json",
    log: `~/.claude/projects/*/${id}.jsonl`
  }),
  codex: (id: string) => ({ command: "codex exec --json", log: `~/.codex/sessions/*/*/*/rollout-*-${id}.jsonl` })
}

const eventsOfPi =
  /^(?:agent|turn|message|tool_execution|compaction|auto_retry|auto_compaction)_(?:start|update|end|settled)$/
const eventsOfCodex = /^(?:thread|turn|item)\.(?:started|resumed|updated|completed|failed)$/

const text = (value: unknown): string | undefined => (Predicate.isString(value) && value !== "" ? value : undefined)

const typeOf = ({ type }: JsonRecord): string => text(type) ?? ""

const isHeader = (record: JsonRecord): boolean => typeOf(record) === "session"

/** An entry of a log, wherever it comes from, is more than an event. */
const isEntry = (record: JsonRecord): boolean => "parentId" in record && text(record["id"]) !== undefined

const isOfPi = (record: JsonRecord): boolean => eventsOfPi.test(typeOf(record))

const isOfClaude = (record: JsonRecord): boolean =>
  text(record["session_id"]) !== undefined &&
  !("sessionId" in record) &&
  (/^(?:user|assistant|result|stream_event)$/.test(typeOf(record)) ||
    (typeOf(record) === "system" && record["subtype"] === "init"))

const isOfCodex = (record: JsonRecord): boolean => eventsOfCodex.test(typeOf(record)) && !("payload" in record)

const named = (tool: EventStream["tool"], id: unknown): EventStream => {
  const known = text(id)
  return new EventStream({ tool, ...(known === undefined ? {} : { id: known }) })
}

/** The stream that begins with these records; undefined if they are none, or hold an entry of a log. */
export const streamOf = (records: ReadonlyArray<JsonRecord>): EventStream | undefined => {
  if (records.some(isEntry)) return undefined
  if (records.some(isOfPi)) return named("pi", records.find(isHeader)?.["id"])
  const claude = records.find(isOfClaude)
  if (claude !== undefined) return named("claude", claude["session_id"])
  if (!records.some(isOfCodex)) return undefined
  return named("codex", records.find((record) => "thread_id" in record)?.["thread_id"])
}
