/**
 * The messages of a session that were loaded: the newest page first, earlier ones when they are asked for, and each message
 * again when an event changed it. Running texts grow by their deltas. Spec: IP-8 in specs/inspector.md.
 */
import { signal } from "@preact/signals"
import type { Message } from "@daybook/log/domain/Message"
import type { LiveEvent, SessionEvent } from "@daybook/log/events/SessionEvents"
import type { MessagePage } from "@daybook/log/store/Pages"
import { type Api, ApiError } from "../net/Api.ts"
import { joined } from "./Debounce.ts"

const pageSize = 40
const refreshAfter = 120

/** The messages that an event changed. */
const changedBy = ({ data }: SessionEvent): ReadonlyArray<string> =>
  [
    "assistantMessageID" in data ? data.assistantMessageID : undefined,
    "messageID" in data ? data.messageID : undefined
  ].filter((id) => id !== undefined)

/** Whether an event changes which messages the transcript has. */
const movesPath = ({ type }: SessionEvent): boolean => type === "session.next.leaf.moved"

export class Transcript {
  /** Oldest first. */
  readonly messages = signal<ReadonlyArray<Message>>([])
  readonly total = signal(0)
  /** Where the next earlier page begins; undefined if there is none. */
  readonly earlier = signal<number | undefined>(undefined)
  readonly loaded = signal(false)
  readonly error = signal<string | undefined>(undefined)
  /** The pieces so far of texts that are being written, by message and part. */
  readonly growing = signal<ReadonlyMap<string, string>>(new Map())
  readonly #api: Api
  readonly #path: string
  readonly #dirty = new Set<string>()
  readonly #refresh: () => void
  #isLoading = false
  /** The transcript has to be read anew. */
  #isOther = false
  /** Grows with each beginning: an earlier page may be one of another transcript. */
  #life = 0

  constructor(api: Api, sessionID: string) {
    this.#api = api
    this.#path = `/sessions/${sessionID}/messages`
    this.#refresh = joined(refreshAfter, () => this.#reload())
  }

  /** Reads the newest page; returns whether it could be read. */
  async open(): Promise<boolean> {
    this.#life++
    const isRead = await this.#guarded(async () => {
      const page = await this.#page(undefined)
      this.messages.value = page.items.toReversed()
      this.total.value = page.total
      this.earlier.value = page.cursor
    })
    this.loaded.value = true
    return isRead
  }

  /** Loads the page before the first message. */
  async loadEarlier(): Promise<void> {
    const cursor = this.earlier.value
    if (cursor === undefined || this.#isLoading) return
    this.#isLoading = true
    const life = this.#life
    await this.#guarded(async () => {
      const page = await this.#page(cursor)
      if (life !== this.#life) return
      this.messages.value = [...page.items.toReversed(), ...this.messages.value]
      this.earlier.value = page.cursor
    })
    this.#isLoading = false
  }

  /** Reads what could not be read: changed messages now, an earlier page when the list asks for it again. */
  again(): void {
    this.error.value = undefined
    if (this.#isOther || this.#dirty.size > 0) this.#refresh()
  }

  add(events: ReadonlyArray<SessionEvent>): void {
    for (const event of events) for (const id of changedBy(event)) this.#dirty.add(id)
    if (events.some(movesPath)) this.#isOther = true
    if (this.#isOther || this.#dirty.size > 0) this.#refresh()
  }

  /** Deltas of texts that are being written. */
  grow(events: ReadonlyArray<LiveEvent>): void {
    const growing = new Map(this.growing.value)
    for (const { data, type } of events) {
      if (type === "session.next.text.delta" || type === "session.next.reasoning.delta") {
        const key = `${data.assistantMessageID} ${type === "session.next.text.delta" ? data.textID : data.reasoningID}`
        growing.set(key, (growing.get(key) ?? "") + data.delta)
      }
    }
    this.growing.value = growing
  }

  #page(cursor: number | undefined): Promise<MessagePage> {
    return this.#api.get(this.#path, { limit: pageSize, order: "desc", cursor })
  }

  async #reload(): Promise<void> {
    const ids = [...this.#dirty]
    this.#dirty.clear()
    if (this.#isOther) {
      this.#isOther = false
      if (!(await this.open())) this.#isOther = true
      return
    }
    const isRead = await this.#guarded(async () => {
      const found = await Promise.all(ids.map((id) => this.#api.get<Message | null>(`${this.#path}/${id}`)))
      const known = new Map(this.messages.value.map((message) => [message.id as string, message]))
      for (const message of found) {
        // An earlier message comes with its page.
        if (message !== null && message.seq > (this.earlier.value ?? -1)) known.set(message.id, message)
      }
      this.total.value += Math.max(0, known.size - this.messages.value.length)
      this.messages.value = [...known.values()].sort((a, b) => a.seq - b.seq)
      const isWhole = new Set(
        found
          .flatMap((message) => (message?.type === "assistant" ? message.content : []))
          .flatMap((part) => (part.type !== "tool" && part.text !== undefined ? [part.id] : []))
      )
      this.growing.value = new Map([...this.growing.value].filter(([key]) => !isWhole.has(key.split(" ")[1] ?? "")))
    })
    if (!isRead) for (const id of ids) this.#dirty.add(id)
  }

  async #guarded(work: () => Promise<void>): Promise<boolean> {
    try {
      await work()
      this.error.value = undefined
      return true
    } catch (error) {
      this.error.value = error instanceof ApiError ? error.message : String(error)
      return false
    }
  }
}
