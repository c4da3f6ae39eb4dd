/** The stored events of a session, read in pages when they come into view; keeps recent pages. Spec: IP-16. */
import { signal } from "@preact/signals"
import type { SessionEvent } from "@daybook/log/events/SessionEvents"
import type { Api } from "../net/Api.ts"

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

/** Events of a page: the most that the server sends. */
const pageSize = 100
const mostPages = 40
/** Pages that wait and that are read at a time. */
const mostWanted = 6
const mostAsked = 3

export class EventPages {
  /** Grows with each page that arrived. */
  readonly version = signal(0)
  readonly #api: Api
  readonly #path: string
  readonly #pages = new Map<number, ReadonlyMap<number, SessionEvent>>()
  /** Pages to ask for, the latest last, and those that are being read. */
  #wanted: Array<number> = []
  readonly #asked = new Set<number>()

  constructor(api: Api, sessionID: string) {
    this.#api = api
    this.#path = `/sessions/${sessionID}/history`
  }

  /** The event; undefined while its page is being read; `absent` if the server does not send it: the first one, pruned ones. */
  at(seq: number): SessionEvent | "absent" | undefined {
    const number = Math.floor(seq / pageSize)
    const page = this.#pages.get(number)
    if (page === undefined) {
      this.#want(number)
      return undefined
    }
    this.#pages.delete(number)
    this.#pages.set(number, page)
    return page.get(seq) ?? "absent"
  }

  /** New events: they join the pages that are kept. */
  add(events: ReadonlyArray<SessionEvent>): void {
    for (const event of events) {
      const number = Math.floor(event.seq / pageSize)
      const page = this.#pages.get(number)
      if (page !== undefined) this.#pages.set(number, new Map(page).set(event.seq, event))
    }
    this.version.value++
  }

  /** Asks for a page: the latest first, and no longer for those that were scrolled past. */
  #want(number: number): void {
    if (this.#asked.has(number)) return
    this.#wanted = [...this.#wanted.filter((each) => each !== number), number].slice(-mostWanted)
    this.#pump()
  }

  #pump(): void {
    while (this.#asked.size < mostAsked) {
      const number = this.#wanted.pop()
      if (number === undefined) return
      if (!this.#asked.has(number) && !this.#pages.has(number)) this.#ask(number)
    }
  }

  #ask(number: number): void {
    this.#asked.add(number)
    this.#api
      .get<{ events: ReadonlyArray<SessionEvent> }>(this.#path, { after: number * pageSize - 1, limit: pageSize })
      .then(({ events }) => this.#keep(number, events))
      // The next look at it asks again.
      .catch(() => undefined)
      .finally(() => {
        this.#asked.delete(number)
        this.version.value++
        this.#pump()
      })
  }

  #keep(number: number, events: ReadonlyArray<SessionEvent>): void {
    this.#pages.set(number, new Map(events.map((event) => [event.seq, event])))
    for (const oldest of this.#pages.keys()) {
      if (this.#pages.size <= mostPages) return
      this.#pages.delete(oldest)
    }
  }
}
