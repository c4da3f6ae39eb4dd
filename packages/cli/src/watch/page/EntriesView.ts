/**
 * Shows the entries of the chosen shell: a window of them, so that the document stays small. It follows the newest entry until
 * the reader scrolls up. Spec: SL-227, SL-228 in specs/shell.md.
 */
import type { Entry } from "./Book.ts"
import { arrange, fill } from "./Dom.ts"
import { entryView } from "./EntryView.ts"
import { markFound } from "./Marks.ts"

/** Entries in the document, and how many a click adds. */
const [mostShown, step] = [300, 100]
/** Pixels from the end that count as the end. */
const near = 40

interface Parts {
  readonly scroller: HTMLElement
  readonly list: HTMLOListElement
  readonly earlier: HTMLButtonElement
  readonly later: HTMLButtonElement
  readonly newest: HTMLButtonElement
}

export class EntriesView {
  readonly #parts: Parts
  #entries: ReadonlyArray<Entry> = []
  /** The first entry of the window; undefined: the window ends with the newest entry. */
  #top: Entry | undefined
  #following = true
  #pattern: RegExp | undefined
  /** The newest entry that the reader has seen. */
  #seen: Entry | undefined
  readonly #nodes = new Map<Entry, HTMLLIElement>()
  /** The long texts that are shown whole. */
  readonly #whole = new WeakMap<Entry, Set<string>>()

  constructor(parts: Parts) {
    this.#parts = parts
    parts.earlier.addEventListener("click", () => this.#move(-step))
    parts.later.addEventListener("click", () => this.#move(step))
    parts.newest.addEventListener("click", () => {
      this.toEnd()
      parts.scroller.focus()
    })
    // After a click has unfolded a text.
    parts.list.addEventListener("click", () => this.#markFound())
    parts.scroller.addEventListener("scroll", () => this.#scrolled(), { passive: true })
    new ResizeObserver(() => this.#stay()).observe(parts.scroller)
  }

  /** Shows other entries, from their end, and marks what the pattern finds in them. */
  replace(entries: ReadonlyArray<Entry>, pattern: RegExp | undefined): void {
    this.#entries = entries
    this.#pattern = pattern
    this.#nodes.clear()
    this.toEnd()
  }

  /** Shows the entries after some were added at the end, or dropped from the start. */
  update(entries: ReadonlyArray<Entry>): void {
    this.#entries = entries
    if (this.#following) this.#top = undefined
    this.#render()
    this.#stay()
  }

  /** Shows the newest entry, and follows. */
  toEnd(): void {
    this.#top = undefined
    this.#following = true
    this.#render()
    this.#stay()
  }

  toStart(): void {
    this.#following = false
    this.#top = this.#entries[0]
    this.#render()
    this.#parts.scroller.scrollTop = 0
    this.#scrolled()
  }

  /** Where the window begins. An entry that was dropped is before the first one. */
  #start(): number {
    const last = Math.max(0, this.#entries.length - mostShown)
    if (this.#top === undefined) return last
    const { position } = this.#top.event
    const found = this.#entries.findIndex(({ event }) => event.position >= position)
    return found < 0 ? last : found
  }

  /** Moves the window by a number of entries; what the reader looks at stays in its place. */
  #move(by: number): void {
    const start = Math.min(Math.max(0, this.#start() + by), Math.max(0, this.#entries.length - 1))
    const kept = [...this.#nodes].find(([entry]) => entry === this.#entries[by < 0 ? this.#start() : start])?.[1]
    const before = kept?.getBoundingClientRect().top
    this.#following = false
    this.#top = this.#entries[start]
    this.#render()
    if (kept?.isConnected === true && before !== undefined) {
      this.#parts.scroller.scrollTop += kept.getBoundingClientRect().top - before
    }
  }

  #node(entry: Entry): HTMLLIElement {
    const known = this.#nodes.get(entry)
    if (known !== undefined) return known
    const whole = this.#whole.get(entry) ?? new Set()
    this.#whole.set(entry, whole)
    const made = entryView(entry, { whole, pattern: this.#pattern })
    this.#nodes.set(entry, made)
    return made
  }

  #render(): void {
    const start = this.#start()
    const shown = this.#entries.slice(start, start + mostShown)
    const wanted = new Set(shown)
    for (const entry of this.#nodes.keys()) if (!wanted.has(entry)) this.#nodes.delete(entry)
    arrange(
      this.#parts.list,
      shown.map((entry) => this.#node(entry))
    )
    this.#markFound()
    this.#parts.earlier.hidden = start === 0
    this.#parts.later.hidden = start + shown.length >= this.#entries.length
    this.#offer()
  }

  #markFound(): void {
    markFound(this.#parts.list, this.#pattern)
  }

  /** Offers the way to the newest entry, and says how many the reader has not seen. */
  #offer(): void {
    const newest = this.#entries.at(-1)
    if (this.#following) this.#seen = newest
    const seen = this.#seen?.event.position ?? 0
    const unseen = this.#entries.length - this.#entries.findLastIndex(({ event }) => event.position <= seen) - 1
    fill(this.#parts.newest, unseen === 0 ? "Newest ↓" : `${unseen} new ↓`)
    this.#parts.newest.hidden = this.#following
  }

  #stay(): void {
    const { scroller } = this.#parts
    if (this.#following) scroller.scrollTop = scroller.scrollHeight
  }

  #scrolled(): void {
    const { later, scroller } = this.#parts
    const isAtEnd = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < near
    const following = isAtEnd && later.hidden === true
    if (following === this.#following) return
    this.#following = following
    // What the reader looks at stays, also when entries are added.
    if (!following) this.#top ??= this.#entries[this.#start()]
    this.#offer()
  }
}
