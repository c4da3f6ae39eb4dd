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

export class EventPages {
  /** Grows with each page that arrived. */
  readonly version = signal(0)
  readonly #api: Api
  readonly #path: string
  readonly #pages = new Map<number, ReadonlyMap<number, SessionEvent> | "asked">()

  constructor(api: Api, sessionID: string) {
    this.#api = api
    this.#path = `/sessions/${sessionID}/history`
  }

  /** The event, or undefined while its page is being read, or if it does not exist. */
  at(seq: number): SessionEvent | undefined {
    const number = Math.floor(seq / pageSize)
    const page = this.#pages.get(number)
    if (page === undefined) this.#read(number)
    if (page === undefined || page === "asked") return undefined
    this.#pages.delete(number)
    this.#pages.set(number, page)
    return page.get(seq)
  }

  /** New events: they join the pages that are kept. */
  add(events: ReadonlyArray<SessionEvent>): void {
    for (const event of events) {
      const number = Math.floor(event.seq / pageSize)
      const page = this.#pages.get(number)
      if (page !== undefined && page !== "asked") this.#pages.set(number, new Map(page).set(event.seq, event))
    }
    this.version.value++
  }

  #read(number: number): void {
    this.#pages.set(number, "asked")
    this.#api
      .get<{ events: ReadonlyArray<SessionEvent> }>(this.#path, { after: number * pageSize - 1, limit: pageSize })
      .then(({ events }) => {
        this.#pages.set(number, new Map(events.map((event) => [event.seq, event])))
        for (const oldest of this.#pages.keys()) {
          if (this.#pages.size <= mostPages) break
          this.#pages.delete(oldest)
        }
      })
      // The next look at it asks again.
      .catch(() => this.#pages.delete(number))
      .finally(() => this.version.value++)
  }
}
