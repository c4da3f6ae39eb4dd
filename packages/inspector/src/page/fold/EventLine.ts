/** One line about an event, for lists: its short name, its kind, and its main text. Pure. Spec: IP-16 in specs/inspector.md. */
import type { SessionEvent } from "@daybook/log/events/SessionEvents"

/** `session.next.tool.called` is `tool.called`. */
export const shortType = (type: string): string => type.replace(/^session\.(?:next\.)?/, "")

const kinds = {
  prompt: "prompt",
  prompted: "prompt",
  step: "turn",
  text: "text",
  reasoning: "text",
  tool: "tool",
  question: "tool",
  permission: "tool",
  shell: "tool",
  compaction: "context",
  context: "context",
  request: "context",
  instructions: "context",
  synthetic: "context",
  activity: "activity",
  retried: "problem"
} as const

export type EventKind = (typeof kinds)[keyof typeof kinds] | "session"

const isKnown = (word: string): word is keyof typeof kinds => Object.hasOwn(kinds, word)

/** What an event is about; failures are problems. */
export const kindOf = (type: string): EventKind => {
  const short = shortType(type)
  if (short.endsWith(".failed")) return "problem"
  const word = short.split(".", 1)[0] ?? ""
  return isKnown(word) ? kinds[word] : "session"
}

const fields = ["text", "title", "command", "summary", "agent", "path", "trigger", "outcome", "finish", "name", "tool"]

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const textOf = (part: unknown): ReadonlyArray<string> =>
  isRecord(part) && typeof part["text"] === "string" ? [part["text"]] : []

/** The longest summary, in characters. */
const longest = 240

const mainText = (data: Readonly<Record<string, unknown>>): string => {
  const inner = ["prompt", "error"].flatMap((name) => {
    const value = data[name]
    const text = isRecord(value) ? (value["text"] ?? value["message"]) : undefined
    return typeof text === "string" ? [text] : []
  })
  const own = fields.flatMap((name) => {
    const value = data[name]
    return typeof value === "string" && value !== "" ? [value] : []
  })
  const input = isRecord(data["input"]) ? [JSON.stringify(data["input"])] : []
  const content = Array.isArray(data["content"]) ? data["content"].flatMap(textOf) : []
  return [...inner, ...own, ...input, ...content].join(" \u00b7 ")
}

/** The event's main text on one line, shortened; its data as JSON if it has none. */
export const summaryOf = ({ data }: Pick<SessionEvent, "data">): string => {
  const text = mainText({ ...data }) || JSON.stringify(data)
  return text
    .slice(0, 4 * longest)
    .replace(/\s+/g, " ")
    .trim()
    .slice(0, longest)
}

/** A filter: words that all have to be in the event's JSON, and the kinds that are shown (none: all). */
export interface EventFilter {
  readonly text: string
  readonly kinds: ReadonlyArray<EventKind>
}

export const filtersNothing = ({ kinds, text }: EventFilter): boolean => text.trim() === "" && kinds.length === 0

/** Whether an event passes a filter; upper and lower case are equal. */
export const passes = ({ kinds, text }: EventFilter): ((event: SessionEvent) => boolean) => {
  const words = text
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== "")
  return (event) => {
    if (kinds.length > 0 && !kinds.includes(kindOf(event.type))) return false
    if (words.length === 0) return true
    const whole = JSON.stringify(event).toLowerCase()
    return words.every((word) => whole.includes(word))
  }
}
