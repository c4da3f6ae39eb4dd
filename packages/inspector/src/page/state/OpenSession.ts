/**
 * The session that is shown: its record, its inbox, its open questions, its transcript, and its events as they come. The whole
 * history is folded only when a view needs it. Spec: IP-8, IP-11 in specs/http.md.
 */
import { signal } from "@preact/signals"
import type { EventsPage } from "@daybook/api/group/EventsApi"
import type { OpenPermission } from "@daybook/api/group/WorkApi"
import type { Frame } from "@daybook/api/wire/EventFrames"
import type { PendingQuestion } from "@daybook/core/domain/Question"
import type { Branched, Forked, Undone } from "@daybook/core/session/SessionOptions"
import type { Input, Session, Message } from "@daybook/log/domain/Message"
import type { TreePage } from "@daybook/log/domain/HistoryPath"
import type { PromptInput } from "@daybook/log/domain/Values"
import type { LiveEvent, SessionEvent } from "@daybook/log/events/SessionEvents"
import type { MessagePage } from "@daybook/log/store/Pages"
import { Story, storyTypes } from "../fold/Story.ts"
import { type Api, ApiError, withQuery } from "../net/Api.ts"
import { follow, type FollowState, joined } from "../net/Follow.ts"
import { type EventFilter, EventPages, filtersNothing, passes } from "./EventPages.ts"

const pageSize = 40
const reloadAfter = 120

const changedBy = ({ data }: SessionEvent): ReadonlyArray<string> =>
  [
    "assistantMessageID" in data ? data.assistantMessageID : undefined,
    "messageID" in data ? data.messageID : undefined
  ].filter((id) => id !== undefined)

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
  /** The transcript has to be read again. */
  #isOther = false
  /** Grows with each beginning: an earlier page may be one of another transcript. */
  #life = 0

  constructor(api: Api, sessionID: string) {
    this.#api = api
    this.#path = `/sessions/${sessionID}/messages`
    this.#refresh = joined(reloadAfter, () => this.#reload())
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

const refreshAfter = 200
/** Milliseconds between two drawings of a history that is being read. */
const drawEvery = 100

const eventsOf = (frames: ReadonlyArray<Frame>): ReadonlyArray<SessionEvent> =>
  frames.flatMap((frame) => (frame.frame === "event" ? [frame.event] : []))

const liveOf = (frames: ReadonlyArray<Frame>): ReadonlyArray<LiveEvent> =>
  frames.flatMap((frame) => (frame.frame === "live" ? [frame.live] : []))

export class OpenSession {
  readonly id: string
  readonly record = signal<Session | undefined>(undefined)
  readonly inbox = signal<ReadonlyArray<Input>>([])
  readonly questions = signal<ReadonlyArray<PendingQuestion>>([])
  readonly permissions = signal<ReadonlyArray<OpenPermission>>([])
  readonly state = signal<FollowState>("connecting")
  readonly error = signal<ApiError | undefined>(undefined)
  /** A text for the prompt box: of a prompt that was taken back. */
  readonly draft = signal<string | undefined>(undefined)
  /** The sequence number of the last event. */
  readonly head = signal(-1)
  readonly transcript: Transcript
  readonly pages: EventPages
  /** The fold of all events; `storyVersion` grows when it did. */
  readonly story = new Story()
  readonly storyVersion = signal(0)
  readonly storyState = signal<FollowState | undefined>(undefined)
  /** The oldest events were pruned: the fold begins at the first one that is kept. */
  readonly storyIsCut = signal(false)
  /** The events that pass the filter; undefined without one. */
  readonly matching = signal<ReadonlyArray<number> | undefined>(undefined)
  readonly api: Api
  readonly #abort = new AbortController()
  readonly #refresh: () => void
  #filter = new AbortController()
  /** Permissions that were decided here: a list that was asked for before may still have them. */
  readonly #decided = new Set<string>()

  constructor(api: Api, id: string) {
    this.api = api
    this.id = id
    this.transcript = new Transcript(api, id)
    this.pages = new EventPages(api, id)
    this.#refresh = joined(refreshAfter, () => this.#load())
  }

  get path(): string {
    return `/sessions/${this.id}`
  }

  async open(): Promise<void> {
    const { signal } = this.#abort
    // First the place to follow from: what happens while the records are read comes as events.
    const head = await this.api
      .get<{ seq: number; cursor: string }>(`${this.path}/head`, {}, signal)
      .catch((error: unknown) => this.#failed(error))
    await Promise.all([this.#load(), this.transcript.open()])
    if (head === undefined || signal.aborted) return
    this.head.value = Math.max(this.head.value, head.seq)
    await follow(this.api, {
      path: `${this.path}/events`,
      after: head.cursor,
      live: true,
      signal,
      // What happened meanwhile is in the records.
      pruned: () => {
        void this.transcript.open()
        this.#refresh()
      },
      state: (state) => (this.state.value = state),
      frames: (frames) => {
        const [events, live] = [eventsOf(frames), liveOf(frames)]
        if (live.length > 0) this.transcript.grow(live)
        if (events.length === 0) return
        this.head.value = events.at(-1)?.seq ?? this.head.value
        this.pages.add(events)
        this.transcript.add(events)
        this.#refresh()
      }
    })
  }

  close(): void {
    this.#abort.abort()
    this.#filter.abort()
  }

  /** Folds the whole history, and what follows it. */
  needStory(): void {
    if (this.storyState.value !== undefined) return
    let drawn = 0
    const draw = () => {
      drawn = performance.now()
      this.storyVersion.value++
    }
    this.storyState.value = "connecting"
    void follow(this.api, {
      path: withQuery(`${this.path}/events`, { type: storyTypes.join(",") }),
      signal: this.#abort.signal,
      pruned: () => (this.storyIsCut.value = true),
      state: (state) => {
        this.storyState.value = state
        draw()
      },
      frames: (frames) => {
        for (const event of eventsOf(frames)) this.story.add(event)
        if (this.storyState.value === "live" || performance.now() - drawn > drawEvery) draw()
      }
    })
  }

  /** Shows only events that pass; reads the history for it. */
  filter(filter: EventFilter): void {
    this.#filter.abort()
    if (filtersNothing(filter)) {
      this.matching.value = undefined
      return
    }
    this.#filter = new AbortController()
    const [found, isShown]: [Array<number>, (event: SessionEvent) => boolean] = [[], passes(filter)]
    this.matching.value = found
    void follow(this.api, {
      path: `${this.path}/events`,
      signal: this.#filter.signal,
      // The list says of each pruned event that it is not sent.
      pruned: () => undefined,
      frames: (frames) => {
        const before = found.length
        for (const event of eventsOf(frames)) if (isShown(event)) found.push(event.seq)
        if (found.length > before) this.matching.value = [...found]
      }
    })
  }

  prompt(text: string, delivery: "steer" | "queue", id: string): Promise<unknown> {
    return this.api.send("POST", `${this.path}/prompts`, { id, prompt: { text }, delivery })
  }

  rename(title: string): Promise<unknown> {
    return this.api.send("PUT", `${this.path}/title`, { title })
  }

  switchAgent(agent: string): Promise<unknown> {
    return this.api.send("PUT", `${this.path}/agent`, { agent })
  }

  switchModel(model: { readonly providerID: string; readonly id: string }): Promise<unknown> {
    return this.api.send("PUT", `${this.path}/model`, model)
  }

  /** Takes the last prompt back; its text is the next draft. */
  async undo(): Promise<void> {
    this.#draft(await this.api.send<Undone>("POST", `${this.path}/undo`, {}))
  }

  redo(): Promise<unknown> {
    return this.api.send("POST", `${this.path}/redo`, {})
  }

  compact(): Promise<unknown> {
    return this.api.send("POST", `${this.path}/compact`, {})
  }

  fork(): Promise<Forked | undefined> {
    return this.api.send("POST", `${this.path}/fork`, {})
  }

  /** Continues after a message of any branch, or before a prompt, whose text is the next draft. */
  async branch(messageID: string): Promise<void> {
    this.#draft(await this.api.send<Branched>("POST", `${this.path}/branch`, { messageID }))
  }

  #draft(moved: { readonly prompt?: PromptInput } | undefined): void {
    if (moved?.prompt !== undefined) this.draft.value = moved.prompt.text
  }

  /** Runs what a failed or cut-off activity left. It does not wait for its end. */
  resume(): Promise<unknown> {
    return this.api.send("POST", withQuery(`${this.path}/resume`, { id: crypto.randomUUID() }))
  }

  tree(cursor: number | undefined): Promise<TreePage> {
    return this.api.get(`${this.path}/tree`, { limit: 500, cursor })
  }

  /** Saves all events as a file of JSON lines. */
  async save(): Promise<void> {
    const lines: Array<string> = []
    let [after, hasMore]: [string | undefined, boolean] = [undefined, true]
    while (hasMore) {
      const page: EventsPage = await this.api.get(`${this.path}/history`, { after, limit: 500 })
      for (const event of page.events) lines.push(JSON.stringify(event))
      after = page.cursor
      hasMore = page.hasMore
    }
    const link = document.createElement("a")
    link.href = URL.createObjectURL(
      new Blob(
        lines.map((line) => `${line}\n`),
        { type: "application/jsonl" }
      )
    )
    link.download = `${this.id}.jsonl`
    link.click()
    URL.revokeObjectURL(link.href)
  }

  interrupt(): Promise<unknown> {
    return this.api.send("POST", `${this.path}/interrupt`, {})
  }

  withdraw(messageID: string): Promise<unknown> {
    return this.api.send("DELETE", `${this.path}/prompts/${messageID}`)
  }

  answer({ callID, messageID }: PendingQuestion, answers: ReadonlyArray<string>): Promise<unknown> {
    return this.api.send("POST", `${this.path}/questions/${messageID}/${encodeURIComponent(callID)}/answer`, {
      answers
    })
  }

  dismiss({ callID, messageID }: PendingQuestion): Promise<unknown> {
    return this.api.send("POST", `${this.path}/questions/${messageID}/${encodeURIComponent(callID)}/dismiss`)
  }

  async decide(ask: string, decision: unknown): Promise<void> {
    await this.api.send("POST", `${this.path}/permissions/${encodeURIComponent(ask)}`, decision)
    this.#decided.add(ask)
    this.permissions.value = this.#open(this.permissions.value)
  }

  #open(permissions: ReadonlyArray<OpenPermission>): ReadonlyArray<OpenPermission> {
    return permissions.filter(({ ask }) => !this.#decided.has(ask))
  }

  #waiting(): Promise<ReadonlyArray<OpenPermission>> {
    return this.api.get(`${this.path}/permissions`)
  }

  /** The server keeps open permissions in memory, and no event reports them: polls for them while the session works. */
  async lookForPermissions(): Promise<void> {
    const waiting = await this.#waiting().catch(() => this.permissions.value)
    this.permissions.value = this.#open(waiting)
  }

  async #load(): Promise<void> {
    try {
      const [record, inbox, questions, permissions] = await Promise.all([
        this.api.get<Session>(this.path),
        this.api.get<ReadonlyArray<Input>>(`${this.path}/prompts`),
        this.api.get<ReadonlyArray<PendingQuestion>>(`${this.path}/questions`),
        this.#waiting()
      ])
      this.record.value = record
      this.inbox.value = inbox
      this.questions.value = questions
      this.permissions.value = this.#open(permissions)
      this.error.value = undefined
    } catch (error) {
      this.#failed(error)
    }
  }

  #failed(error: unknown): undefined {
    if (this.#abort.signal.aborted) return
    this.error.value = error instanceof ApiError ? error : new ApiError(0, "Failed", String(error))
  }
}
