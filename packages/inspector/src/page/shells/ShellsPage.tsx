/** The page of live shells: their list, and what the chosen one ran, drawn once a frame. Spec: SL-224..SL-229. */
import { useEffect, useMemo, useReducer, useRef, useState } from "preact/hooks"
import { isShellEvent } from "@daybook/shell/record/ShellList"
import { agoText, visible } from "../fold/Words.ts"
import { Api } from "../net/Api.ts"
import { follow, type FollowState } from "../net/Follow.ts"
import { Filter, isOpen, type Shell, ShellBook } from "./ShellBook.ts"
import { commandsText, type EntryKeys, ShellEntries } from "./ShellEntries.tsx"
import { reasonText } from "./ShellTexts.ts"

const states: Readonly<Record<FollowState, string>> = {
  connecting: "Reading the log",
  reading: "Reading the log",
  live: "Live",
  lost: "Connection lost, trying again",
  full: "Too many pages are open, trying again",
  unreadable: "The log cannot be read: daybook doctor says why",
  refused: "This address is no longer valid: use the one that the command printed last",
  removed: "The session was removed",
  expired: "The session was removed",
  ended: "The server has ended"
}

/** What the statuses of the stream mean. */
const refusals = { 401: "refused", 409: "again", 410: "removed", 500: "unreadable", 503: "full" } as const

/** Milliseconds between the last key and the search, and between updates of how long ago something was. */
const [searchAfter, clockEvery] = [120, 5_000]

/** The shell that is shown first: the open shell that was used last, else any shell that was used last. */
const first = (shells: ReadonlyArray<Shell>): Shell | undefined => {
  const open = shells.filter(isOpen)
  return (open.length > 0 ? open : shells).toSorted((a, b) => b.lastAt - a.lastAt)[0]
}

/** What the page follows. It draws when something changed, once a frame. */
class ShellsModel {
  book = new ShellBook()
  state: FollowState = "connecting"
  chosen: string | undefined
  readonly #draw: () => void
  #isWaiting = false

  constructor(draw: () => void) {
    this.#draw = draw
  }

  /** A page in the background draws no frames, and has nothing to draw. */
  readonly drawSoon = (): void => {
    if (this.#isWaiting) return
    this.#isWaiting = true
    requestAnimationFrame(() => {
      this.#isWaiting = false
      this.#draw()
    })
  }

  get isReading(): boolean {
    return this.state === "connecting" || this.state === "reading"
  }

  readonly choose = (key: string | undefined): void => {
    this.chosen = key
    this.drawSoon()
  }

  /** Chooses the shell before or after the chosen one in the list. */
  chooseBeside(by: number): void {
    const { shells } = this.book
    const at = shells.findIndex(({ key }) => key === this.chosen)
    const next = shells[at < 0 ? 0 : Math.min(Math.max(0, at + by), shells.length - 1)]
    if (next !== undefined) this.choose(next.key)
  }

  follow(token: string, signal: AbortSignal): void {
    void follow(new Api(token), {
      path: `events?token=${encodeURIComponent(token)}`,
      signal,
      refusals,
      again: () => {
        this.book = new ShellBook()
        this.choose(undefined)
      },
      frames: (frames) => {
        // A newer server, started after this page was loaded, may send other types too.
        for (const each of frames) if (each.frame === "event" && isShellEvent(each.event)) this.book.add(each.event)
        this.drawSoon()
      },
      state: (state) => {
        this.state = state
        this.drawSoon()
      }
    })
  }
}

const pictures = {
  local: (
    <>
      <rect x="1.5" y="2.5" width="13" height="11" rx="2" />
      <path d="M4.5 6l2 2-2 2M8.5 10.2h3" />
    </>
  ),
  ssh: (
    <path d="M6.5 9.5a3 3 0 0 0 4.3 0l2-2a3 3 0 0 0-4.3-4.3l-.8.8M9.5 6.5a3 3 0 0 0-4.3 0l-2 2a3 3 0 0 0 4.3 4.3l.8-.8" />
  ),
  docker: <path d="M8 1.8l5.5 3.1v6.2L8 14.2l-5.5-3.1V4.9zM2.5 4.9L8 8l5.5-3.1M8 8v6.2" />,
  unknown: (
    <>
      <circle cx="8" cy="8" r="6" />
      <path d="M6.3 6.4a1.8 1.8 0 1 1 2.5 1.7c-.5.2-.8.6-.8 1.1M8 11.4v.1" />
    </>
  )
}

const Icon = ({ listed }: Shell) => (
  <svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
    {pictures[listed.transport ?? "unknown"]}
  </svg>
)

const State = (shell: Shell) => (
  <span class={isOpen(shell) ? "state open" : "state shut"}>{isOpen(shell) ? "open" : "closed"}</span>
)

/** The number of commands, and when the last one ended, or why the shell closed: the log has no beginnings of commands. */
const activityOf = ({ lastAt, listed }: Shell, now: number): string => {
  const { closed, commands, lastEndAt, openedAt } = listed
  if (closed !== undefined) return `${commandsText(commands)} · ${closed.reason} ${agoText(closed.at, now)}`
  if (lastEndAt === undefined) return `no command yet · opened ${agoText(openedAt ?? lastAt, now)}`
  return `${commandsText(commands)} · ${agoText(lastEndAt, now)}`
}

const Line = ({ name, texts }: { readonly name: string; readonly texts: ReadonlyArray<string | undefined> }) => {
  const parts = texts.filter((text) => text !== undefined && text !== "").map((text) => visible(text ?? ""))
  if (parts.length === 0) return null
  return (
    <span class={name} title={parts.join("\n")}>
      {parts.map((part, at) => [at === 0 ? null : " · ", <bdi key={at}>{part}</bdi>])}
    </span>
  )
}

interface RowProps {
  readonly shell: Shell
  readonly isChosen: boolean
  /** Another session has a shell of this id. */
  readonly isTwice: boolean
  readonly filter: Filter | undefined
  readonly onChoose: () => void
}

const Row = ({ filter, isChosen, isTwice, onChoose, shell }: RowProps) => {
  const { cwd, shellID, title } = shell.listed
  const found = filter === undefined ? 0 : filter.matches(shell).length
  const kinds = [isOpen(shell) ? "" : "shut", filter !== undefined && found === 0 ? "unmatched" : ""]
  return (
    <li>
      <button
        type="button"
        class={["shell", ...kinds].join(" ").trim()}
        aria-current={isChosen ? "true" : undefined}
        onClick={onChoose}
      >
        <Icon {...shell} />
        <span class="about-shell">
          <span class="name">
            <bdi class="id" title={visible(shellID)}>
              {visible(shellID)}
            </bdi>
            <State {...shell} />
          </span>
          <Line name="where" texts={[title, cwd]} />
          {isTwice ? <Line name="of-session" texts={[shell.sessionID]} /> : null}
          <span class="activity">
            <span>{activityOf(shell, Date.now())}</span>
            {found === 0 ? null : <mark>{found} found</mark>}
          </span>
        </span>
      </button>
    </li>
  )
}

/** The heading above the commands of a shell. A shell changes in place: another `version` draws it again. */
const About = ({ shell }: { readonly shell: Shell; readonly version: number }) => {
  const { closed, cwd, shellID, title, transport } = shell.listed
  return (
    <div class="heading">
      <Icon {...shell} />
      <h2>
        <bdi>{visible(shellID)}</bdi>
      </h2>
      {transport === undefined ? null : <span class="transport">{transport}</span>}
      <State {...shell} />
      {closed === undefined ? null : <span class="why">{reasonText(closed.reason)}</span>}
      <Line name="title" texts={[title]} />
      <Line name="cwd" texts={[cwd]} />
      <Line name="of-session" texts={[shell.sessionID]} />
    </div>
  )
}

/** The watched shells, and a filter that is set when the last key was a moment ago. */
const useWatched = (token: string) => {
  const [version, draw] = useReducer((version: number) => version + 1, 0)
  const watched = useMemo(() => new ShellsModel(() => draw(undefined)), [])
  useEffect(() => {
    const abort = new AbortController()
    watched.follow(token, abort.signal)
    const clock = setInterval(watched.drawSoon, clockEvery)
    return () => (abort.abort(), clearInterval(clock))
  }, [watched, token])
  // While the log is read, the choice may still change.
  if (watched.chosen === undefined && !watched.isReading) watched.chosen = first(watched.book.shells)?.key
  return { watched, version }
}

/** `/` filters, Alt with an arrow changes the shell, End and Home move in the commands. */
const useKeys = (
  watched: ShellsModel,
  box: { readonly current: HTMLInputElement | null },
  keys: EntryKeys,
  clear: () => void
) =>
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      const isTyping = event.target === box.current
      if (event.key === "/" && !isTyping) box.current?.focus()
      else if (event.key === "Escape" && isTyping) clear()
      else if (event.altKey && event.key === "ArrowUp") watched.chooseBeside(-1)
      else if (event.altKey && event.key === "ArrowDown") watched.chooseBeside(1)
      else if (event.key === "End" && !isTyping) keys.toEnd()
      else if (event.key === "Home" && !isTyping) keys.toStart()
      else return
      event.preventDefault()
    }
    addEventListener("keydown", pressed)
    return () => removeEventListener("keydown", pressed)
  }, [watched])

/** `session`: the only one whose shells are shown, if there is one. */
export const ShellsPage = ({ session, token }: { readonly session: string | undefined; readonly token: string }) => {
  const { version, watched } = useWatched(token)
  const [filter, setFilter] = useState<Filter | undefined>(undefined)
  const [isListing, setListing] = useState(false)
  const box = useRef<HTMLInputElement>(null)
  const searching = useRef<ReturnType<typeof setTimeout> | undefined>(undefined)
  const keys = useMemo((): EntryKeys => ({ toEnd: () => undefined, toStart: () => undefined }), [])
  useKeys(watched, box, keys, () => {
    if (box.current !== null) box.current.value = ""
    box.current?.blur()
    clearTimeout(searching.current)
    setFilter(undefined)
  })
  const { book, chosen, state } = watched
  const { shells } = book
  const shell = chosen === undefined ? undefined : book.get(chosen)
  const entries = shell === undefined ? [] : filter === undefined ? shell.entries : filter.matches(shell)
  const open = shells.filter(isOpen).length
  useEffect(() => {
    document.title = `${open} open, Daybook shells`
  }, [open])
  const empty = watched.isReading
    ? states.reading
    : shell === undefined
      ? "No shell has been opened yet. This page shows each one as soon as it opens."
      : "Nothing in this shell contains the text of the filter."
  return (
    <div class={`shells-page${isListing ? " listing" : ""}`}>
      <a class="skip" href="#entries">
        Skip to the commands
      </a>
      <header class="shells-bar">
        <button
          type="button"
          class="menu"
          aria-expanded={isListing}
          aria-controls="side"
          onClick={() => setListing(!isListing)}
        >
          Shells
        </button>
        <h1>
          <span class="brand">Daybook</span>{" "}
          <span class="place">{session === undefined ? "shells" : `shells of ${session}`}</span>
        </h1>
        <label class="filter">
          <span class="hidden">Filter commands and outputs</span>
          <input
            ref={box}
            type="search"
            placeholder="Filter commands and outputs"
            autocomplete="off"
            spellcheck={false}
            aria-keyshortcuts="/"
            onInput={({ currentTarget: { value } }) => {
              clearTimeout(searching.current)
              searching.current = setTimeout(() => setFilter(value === "" ? undefined : new Filter(value)), searchAfter)
            }}
          />
          <kbd aria-hidden="true">/</kbd>
        </label>
        <p id="status" class="status" role="status" data-state={watched.isReading ? "reading" : state}>
          {states[state]}
        </p>
      </header>
      <div class="columns">
        <nav id="side" class="side" aria-label="Shells">
          <ul class="shells">
            {shells.map((each) => (
              <Row
                key={each.key}
                shell={each}
                isChosen={each.key === chosen}
                isTwice={shells.some((other) => other !== each && other.listed.shellID === each.listed.shellID)}
                filter={filter}
                onChoose={() => {
                  watched.choose(each.key)
                  setListing(false)
                }}
              />
            ))}
          </ul>
          <p class="shortcuts">
            <kbd>/</kbd> filter <kbd>Alt</kbd> <kbd>↑</kbd>
            <kbd>↓</kbd> shells <kbd>End</kbd> newest
          </p>
        </nav>
        <main class="commands">
          {shell === undefined ? <div /> : <About shell={shell} version={version} />}
          <ShellEntries
            key={`${chosen ?? ""} ${filter?.text ?? ""}`}
            entries={entries}
            pattern={filter?.pattern}
            empty={empty}
            dropped={shell?.dropped ?? 0}
            keys={keys}
            version={version}
          />
        </main>
      </div>
    </div>
  )
}
