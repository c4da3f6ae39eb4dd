/**
 * What the page of live shells knows: every shell with its events, in bounded memory, and which events a filter finds.
 * `ShellList` decides which shells there are and what is known about each shell; `ShellBook` keeps the events of the
 * shells. No DOM. Spec: SL-224, SL-227, SL-228 in specs/shell.md.
 */
import * as ShellList from "@daybook/shell/record/ShellList"
import type { ShellEvent } from "@daybook/shell/record/ShellList"
import { folderAfter } from "@daybook/shell/record/WatchText"

/** An event of a shell, and the folder in which its command started. */
export interface Entry {
  readonly event: ShellEvent
  /** Undefined if the log does not have it. */
  readonly folder: string | undefined
}

export interface Shell {
  readonly key: string
  readonly sessionID: string
  listed: ShellList.ListedShell
  /** Where the next command starts. */
  folder: string | undefined
  /** The latest ones, oldest first. */
  readonly entries: Array<Entry>
  /** The number of older entries that were dropped. */
  dropped: number
  /** When its last event happened, in milliseconds since the epoch. */
  lastAt: number
}

interface Bounds {
  readonly entries: number
  /** Code units of commands and outputs. */
  readonly characters: number
  /** Closed shells; each session has fewer already. */
  readonly closed: number
}

const defaults: Bounds = { entries: 20_000, characters: 32 * 1024 * 1024, closed: 300 }

/** The code units of an event's long texts. */
const lengthOf = (event: ShellEvent): number => {
  switch (event.type) {
    case "session.next.shell.executed":
      return (
        event.data.command.length +
        event.data.stdout.length +
        event.data.stderr.length +
        (event.data.lateOutput?.length ?? 0)
      )
    case "session.next.shell.blocked":
      return event.data.command.length + event.data.reason.length
    case "session.next.shell.opened":
    case "session.next.shell.checkpointed":
    case "session.next.shell.restored":
    case "session.next.shell.closed":
      return 0
    default:
      return event satisfies never
  }
}

export const isOpen = ({ listed }: Shell): boolean => listed.closed === undefined

const openedAt = ({ lastAt, listed }: Shell): number => listed.openedAt ?? lastAt

export class ShellBook {
  readonly #bounds: Bounds
  readonly #lists = new Map<string, ShellList.ShellList>()
  readonly #shells = new Map<string, Shell>()
  #arrivals: Array<Shell> = []
  #first = 0
  #characters = 0

  constructor(bounds: Partial<Bounds> = {}) {
    this.#bounds = { ...defaults, ...bounds }
  }

  /** The next event of the log. */
  add(event: ShellEvent): void {
    const { sessionID } = event
    const list = ShellList.evolve(this.#lists.get(sessionID) ?? ShellList.initial, event)
    this.#lists.set(sessionID, list)
    const key = `${sessionID} ${event.data.shellID}`
    const listed = list.get(event.data.shellID)
    if (listed === undefined) return
    const shell = this.#shells.get(key) ?? this.#create(key, sessionID, listed)
    shell.entries.push({ event, folder: shell.folder })
    shell.listed = listed
    shell.folder = folderAfter(event, shell.folder)
    shell.lastAt = event.created
    this.#arrivals.push(shell)
    this.#characters += lengthOf(event)
    if (event.type === "session.next.shell.closed") this.#forget(sessionID, list)
    while (this.#isFull()) this.#drop()
  }

  /** The open shells in the order of their opening, then the closed ones, the last closed first. */
  get shells(): ReadonlyArray<Shell> {
    const all = [...this.#shells.values()]
    return [
      ...all.filter(isOpen).sort((a, b) => openedAt(a) - openedAt(b)),
      ...all.filter((shell) => !isOpen(shell)).sort((a, b) => (b.listed.closed?.at ?? 0) - (a.listed.closed?.at ?? 0))
    ]
  }

  get(key: string): Shell | undefined {
    return this.#shells.get(key)
  }

  #create(key: string, sessionID: string, listed: ShellList.ListedShell): Shell {
    const shell = { key, sessionID, listed, folder: undefined, entries: [], dropped: 0, lastAt: 0 }
    this.#shells.set(key, shell)
    return shell
  }

  #isFull(): boolean {
    return this.#arrivals.length - this.#first > this.#bounds.entries || this.#characters > this.#bounds.characters
  }

  #drop(): void {
    const shell = this.#arrivals[this.#first++]
    const entry = shell?.entries.shift()
    if (shell !== undefined && entry !== undefined) {
      shell.dropped++
      this.#characters -= lengthOf(entry.event)
    }
    if (this.#first < 4_096) return
    this.#arrivals = this.#arrivals.slice(this.#first)
    this.#first = 0
  }

  /** Forgets closed shells that their session no longer lists, and the oldest ones of all sessions beyond the limit. */
  #forget(sessionID: string, list: ShellList.ShellList): void {
    for (const shell of this.#shells.values()) {
      if (shell.sessionID === sessionID && !list.has(shell.listed.shellID)) this.#remove(shell)
    }
    for (const shell of this.shells.filter((each) => !isOpen(each)).slice(this.#bounds.closed)) this.#remove(shell)
  }

  #remove(shell: Shell): void {
    this.#shells.delete(shell.key)
    for (const { event } of shell.entries) this.#characters -= lengthOf(event)
    // Its places among the arrivals find nothing to drop.
    shell.entries.length = 0
  }
}

const textsOf = ({ event }: Entry): ReadonlyArray<string | undefined> => {
  switch (event.type) {
    case "session.next.shell.executed":
      return [event.data.command, event.data.stdout, event.data.stderr, event.data.lateOutput]
    case "session.next.shell.blocked":
      return [event.data.command, event.data.reason]
    case "session.next.shell.checkpointed":
      return [event.data.checkpointID, event.data.label]
    case "session.next.shell.restored":
      return [event.data.checkpointID]
    case "session.next.shell.opened":
      return [event.data.title, event.data.cwd]
    case "session.next.shell.closed":
      return [event.data.reason]
    default:
      return event satisfies never
  }
}

const literal = (text: string): string => text.replaceAll(/[.*+?^${}()|[\]\\/-]/g, String.raw`\$&`)

type SearchResult = { readonly entries: Array<Entry>; searched: number }

/** One text to find; remembers what was searched, so that each entry is searched once. */
export class Filter {
  readonly text: string
  readonly pattern: RegExp
  readonly #found = new WeakMap<Shell, SearchResult>()

  constructor(text: string) {
    this.text = text
    this.pattern = new RegExp(literal(text), "i")
  }

  matches(shell: Shell): ReadonlyArray<Entry> {
    const found = this.#found.get(shell) ?? { entries: [], searched: 0 }
    this.#found.set(shell, found)
    const { dropped, entries } = shell
    for (const entry of entries.slice(Math.max(0, found.searched - dropped))) {
      if (textsOf(entry).some((text) => text !== undefined && this.pattern.test(text))) found.entries.push(entry)
    }
    found.searched = dropped + entries.length
    const [first] = entries
    // Dropped entries are the oldest ones.
    if (first !== undefined) {
      const kept = found.entries.findIndex(({ event }) => event.position >= first.event.position)
      found.entries.splice(0, kept < 0 ? found.entries.length : kept)
    }
    return found.entries
  }
}
