/**
 * The session that is shown: its record, its inbox, its open questions, its transcript, and its events as they come. The whole
 * history is folded only when a view needs it. Spec: IP-8, IP-11 in specs/inspector.md.
 */
import { signal } from "@preact/signals"
import type { EventsPage } from "@daybook/api/group/EventsApi"
import type { OpenPermission } from "@daybook/api/group/WorkApi"
import type { Frame } from "@daybook/api/wire/EventFrames"
import type { PendingQuestion } from "@daybook/core/domain/Question"
import type { Branched, Forked, Undone } from "@daybook/core/session/SessionOptions"
import type { Input, Session } from "@daybook/log/domain/Message"
import type { TreePage } from "@daybook/log/domain/HistoryPath"
import type { PromptInput } from "@daybook/log/domain/Values"
import type { LiveEvent, SessionEvent } from "@daybook/log/events/SessionEvents"
import { type EventFilter, filtersNothing, passes } from "../fold/EventLine.ts"
import { Story, storyTypes } from "../fold/Story.ts"
import { type Api, ApiError, withQuery } from "../net/Api.ts"
import { follow, type FollowState } from "../net/Follow.ts"
import { joined } from "./Debounce.ts"
import { EventPages } from "./EventPages.ts"
import { Transcript } from "./Transcript.ts"

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

  /** Answers a call that waits for permission. */
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
