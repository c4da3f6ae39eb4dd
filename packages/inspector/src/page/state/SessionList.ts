/** The sessions of the server and whether they work, kept current by the feed of all sessions. Spec: IP-7. */
import { signal } from "@preact/signals"
import type { OpenPermission } from "@daybook/api/group/WorkApi"
import type { PendingQuestion } from "@daybook/core/domain/Question"
import type { Session } from "@daybook/log/domain/Message"
import type { SearchPage } from "@daybook/log/search/Search"
import type { SessionPage } from "@daybook/log/store/Pages"
import { type Api, ApiError } from "../net/Api.ts"
import { follow, type FollowState, joined } from "../net/Follow.ts"

const pageSize = 50
/** The most that the server sends at a time. */
const largestPage = 500
const refreshAfter = 250
/** Running sessions that are asked for open questions. */
const mostAsked = 20

export class SessionList {
  readonly items = signal<ReadonlyArray<Session>>([])
  readonly active = signal<ReadonlySet<string>>(new Set())
  /** Sessions whose work waits for a person: a permission or a question. */
  readonly needy = signal<ReadonlySet<string>>(new Set())
  readonly onlyNeedy = signal(false)
  readonly cursor = signal<string | undefined>(undefined)
  readonly search = signal("")
  readonly state = signal<FollowState>("connecting")
  readonly error = signal<ApiError | undefined>(undefined)
  readonly loaded = signal(false)
  /** Texts of sessions that match the search; undefined if the server does not search. */
  readonly found = signal<SearchPage | undefined>(undefined)
  readonly #api: Api
  readonly #abort = new AbortController()
  readonly #refresh: () => void
  /** The server has an index. */
  #searches = true
  /** How many sessions are shown, if there are so many. */
  #shown = pageSize

  constructor(api: Api) {
    this.#api = api
    this.#refresh = joined(refreshAfter, () => this.#load())
  }

  /** Reads the list, then follows the feed. */
  async open(): Promise<void> {
    await this.#load()
    const { signal } = this.#abort
    const head = await this.#api
      .get<{ cursor: string }>("/head", {}, signal)
      .catch((error: unknown) => this.#failed(error))
    if (head === undefined) return
    await follow(this.#api, {
      path: "/events",
      after: head.cursor,
      signal,
      pruned: () => this.#refresh(),
      frames: (frames) => {
        if (frames.some(({ frame }) => frame === "event")) this.#refresh()
      },
      state: (state) => {
        // The feed has no seam. What happened while nothing was heard is in the list.
        if (state === "reading") this.#refresh()
        this.state.value = state === "reading" ? "live" : state
      }
    })
  }

  close(): void {
    this.#abort.abort()
  }

  create(directory: string): Promise<Session | undefined> {
    return this.#api.send("POST", "/sessions", { location: { directory } })
  }

  find(text: string): void {
    this.search.value = text
    this.#shown = pageSize
    this.#refresh()
  }

  more(): Promise<void> {
    this.#shown += pageSize
    return this.#load()
  }

  /** A server without an index does not search; the list is found by titles and prompts all the same. */
  async #searchTexts(): Promise<void> {
    const query = this.search.value.trim()
    const ask = () =>
      this.#api.get<SearchPage>("/search", { query, limit: 20 }).catch((error: unknown) => {
        this.#searches = !(error instanceof ApiError && error.status === 501)
        return undefined
      })
    const found = query === "" || !this.#searches ? undefined : await ask()
    if (query === this.search.value.trim()) this.found.value = found
  }

  #page(limit: number, cursor?: string): Promise<SessionPage> {
    const search = this.search.value.trim() || undefined
    return this.#api.get("/sessions", { limit, search, cursor })
  }

  async #first(): Promise<SessionPage> {
    let page = await this.#page(Math.min(this.#shown, largestPage))
    while (page.cursor !== undefined && page.items.length < this.#shown) {
      const next = await this.#page(pageSize, page.cursor)
      page = { ...next, items: [...page.items, ...next.items] }
    }
    return page
  }

  /** No event reports a permission that is asked for, so the page looks for them while sessions run. */
  async lookForNeeds(): Promise<void> {
    const running = [...this.active.value].slice(0, mostAsked)
    try {
      const [permissions, ...questions] = await Promise.all([
        this.#api.get<ReadonlyArray<OpenPermission>>("/permissions"),
        ...running.map((id) => this.#api.get<ReadonlyArray<PendingQuestion>>(`/sessions/${id}/questions`))
      ])
      this.needy.value = new Set([
        ...permissions.map(({ sessionID }) => sessionID),
        ...running.filter((_, index) => (questions[index] ?? []).length > 0)
      ])
    } catch {
      // The feed reports a lost connection; a session that was removed meanwhile is left out the next time.
    }
  }

  async #load(): Promise<void> {
    const [search, shown] = [this.search.value, this.#shown]
    try {
      const [page, active] = await Promise.all([
        this.#first(),
        this.#api.get<ReadonlyArray<string>>("/sessions/active")
      ])
      // Something else is wanted meanwhile, and asked for.
      if (search !== this.search.value || shown !== this.#shown) return
      this.items.value = page.items
      this.cursor.value = page.cursor
      this.active.value = new Set(active)
      this.error.value = undefined
      await Promise.all([this.#searchTexts(), this.lookForNeeds()])
    } catch (error) {
      this.#failed(error)
    }
    this.loaded.value = true
  }

  #failed(error: unknown): undefined {
    this.error.value = error instanceof ApiError ? error : new ApiError(0, "Failed", String(error))
    if (this.error.value.status === 401) this.state.value = "refused"
  }
}
