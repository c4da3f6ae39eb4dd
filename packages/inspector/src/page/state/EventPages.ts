/**
 * The stored events of a session by sequence number, read in pages when they come into view. Keeps the pages used last.
 * Spec: IP-16 in specs/inspector.md.
 */
import { signal } from "@preact/signals"
import type { SessionEvent } from "@daybook/log/events/SessionEvents"
import type { Api } from "../net/Api.ts"

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
