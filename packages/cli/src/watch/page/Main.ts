/**
 * The script of the live page of all shells. Events arrive one by one; the page is drawn once a frame.
 * Spec: SL-224..SL-229 in specs/shell.md.
 */
import { Book, type Shell } from "./Book.ts"
import { Connection, type State } from "./Connection.ts"
import { fill, find } from "./Dom.ts"
import { EntriesView } from "./EntriesView.ts"
import { Filter } from "./Filter.ts"
import { aboutView, ShellsView } from "./ShellsView.ts"
import { droppedText } from "./Words.ts"

const states: Readonly<Record<State, string>> = {
  reading: "Reading the log",
  live: "Live",
  lost: "Connection lost, trying again",
  full: "Too many pages are open, trying again",
  unreadable: "The log cannot be read: daybook doctor says why",
  refused: "This address is no longer valid: use the one that the command printed last",
  gone: "The session was removed"
}

/** Milliseconds between the last key and the search, and between updates of how long ago something was. */
const [searchAfter, clockEvery] = [120, 5_000]

const status = find("status", HTMLElement)
const about = find("about", HTMLElement)
const empty = find("empty", HTMLElement)
const dropped = find("dropped", HTMLElement)
const box = find("filter", HTMLInputElement)
const menu = find("menu", HTMLButtonElement)

let book = new Book()
let state: State = "reading"
let chosen: string | undefined
let filter: Filter | undefined
/** The shell and filter that the entries are shown of. */
let shown: { readonly shell: Shell | undefined; readonly filter: Filter | undefined } | undefined

const entriesView = new EntriesView({
  scroller: find("scroller", HTMLElement),
  list: find("entries", HTMLOListElement),
  earlier: find("earlier", HTMLButtonElement),
  later: find("later", HTMLButtonElement),
  newest: find("newest", HTMLButtonElement)
})
const shellsView = new ShellsView(find("shells", HTMLUListElement), (key) => {
  choose(key)
  openMenu(false)
})

/** The narrow page shows either the list or the commands. */
const openMenu = (open: boolean): void => {
  document.body.classList.toggle("listing", open)
  menu.setAttribute("aria-expanded", String(open))
}

/** The shell that is shown at first: the open one that was used last, else the one that was. */
const first = (shells: ReadonlyArray<Shell>): Shell | undefined => {
  const open = shells.filter(({ listed }) => listed.closed === undefined)
  return (open.length > 0 ? open : shells).toSorted((a, b) => b.lastAt - a.lastAt)[0]
}

const emptyText = (shell: Shell | undefined): string => {
  if (state === "reading") return states.reading
  if (shell === undefined) return "No shell has been opened yet. This page shows each one as soon as it opens."
  return "Nothing in this shell contains the text of the filter."
}

const draw = (): void => {
  const { shells } = book
  // While the log is read, the choice may still change.
  if (chosen === undefined && state !== "reading") chosen = first(shells)?.key
  const shell = chosen === undefined ? undefined : book.get(chosen)
  shellsView.show({ shells, chosen, filter, now: Date.now() })
  fill(about, ...(shell === undefined ? [] : aboutView(shell)))
  const entries = shell === undefined ? [] : filter === undefined ? shell.entries : filter.matches(shell)
  if (shown?.shell === shell && shown?.filter === filter) entriesView.update(entries)
  else entriesView.replace(entries, filter?.pattern)
  shown = { shell, filter }
  empty.hidden = entries.length > 0
  fill(empty, emptyText(shell))
  dropped.hidden = (shell?.dropped ?? 0) === 0
  fill(dropped, droppedText(shell?.dropped ?? 0))
  const open = shells.filter(({ listed }) => listed.closed === undefined).length
  document.title = `${open} open, Daybook shells`
}

let waiting = false
const drawSoon = (): void => {
  if (waiting) return
  waiting = true
  // A page in the background draws no frames, and has nothing to draw.
  requestAnimationFrame(() => {
    waiting = false
    draw()
  })
}

const choose = (key: string | undefined): void => {
  chosen = key
  drawSoon()
}

/** Chooses the shell before or after the chosen one in the list. */
const chooseBeside = (by: number): void => {
  const { shells } = book
  const at = shells.findIndex(({ key }) => key === chosen)
  const next = shells[at < 0 ? 0 : Math.min(Math.max(0, at + by), shells.length - 1)]
  if (next !== undefined) choose(next.key)
}

let searching: ReturnType<typeof setTimeout> | undefined
box.addEventListener("input", () => {
  clearTimeout(searching)
  searching = setTimeout(() => {
    filter = box.value === "" ? undefined : new Filter(box.value)
    drawSoon()
  }, searchAfter)
})
menu.addEventListener("click", () => openMenu(menu.getAttribute("aria-expanded") !== "true"))

document.addEventListener("keydown", (event) => {
  const isTyping = event.target === box
  if (event.key === "/" && !isTyping) box.focus()
  else if (event.key === "Escape" && isTyping) {
    box.value = ""
    filter = undefined
    box.blur()
    drawSoon()
  } else if (event.altKey && event.key === "ArrowUp") chooseBeside(-1)
  else if (event.altKey && event.key === "ArrowDown") chooseBeside(1)
  else if (event.key === "End" && !isTyping) entriesView.toEnd()
  else if (event.key === "Home" && !isTyping) entriesView.toStart()
  else return
  event.preventDefault()
})

const token = new URLSearchParams(location.search).get("token") ?? ""
new Connection(token, {
  event: (event) => {
    book.add(event)
    drawSoon()
  },
  state: (next) => {
    state = next
    status.dataset["state"] = next
    fill(status, states[next])
    drawSoon()
  },
  reset: () => {
    book = new Book()
    chosen = undefined
    shown = undefined
    state = "reading"
    drawSoon()
  }
}).open()
setInterval(drawSoon, clockEvery)
