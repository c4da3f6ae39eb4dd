/** The list of shells, and what is known about the chosen one. Spec: SL-224 in specs/shell.md. */
import { visible } from "../../render/Plain.ts"
import type { Shell } from "./Book.ts"
import { arrange, type Child, element, fill, picture } from "./Dom.ts"
import type { Filter } from "./Filter.ts"
import { agoText, commandsText, reasonText } from "./Words.ts"

const icon = ({ listed }: Shell) => picture(listed.transport ?? "unknown")

const isOpen = ({ listed }: Shell): boolean => listed.closed === undefined

const state = (shell: Shell) =>
  element("span", { class: isOpen(shell) ? "state open" : "state shut" }, isOpen(shell) ? "open" : "closed")

/** The number of commands, and when the last one ended, or why the shell closed: the log has no beginnings of commands. */
const activity = ({ lastAt, listed }: Shell, now: number): string => {
  const { closed, commands, lastEndAt, openedAt } = listed
  if (closed !== undefined) return `${commandsText(commands)} · ${closed.reason} ${agoText(closed.at, now)}`
  if (lastEndAt === undefined) return `no command yet · opened ${agoText(openedAt ?? lastAt, now)}`
  return `${commandsText(commands)} · ${agoText(lastEndAt, now)}`
}

const isText = (text: string | undefined): text is string => text !== undefined && text !== ""

const line = (name: string, ...texts: ReadonlyArray<string | undefined>) => {
  const parts = texts.filter(isText)
  if (parts.length === 0) return undefined
  const shown = parts.flatMap((part, at) => [at === 0 ? undefined : " · ", element("bdi", {}, part)])
  return element("span", { class: name, title: visible(parts.join("\n")) }, ...shown)
}

/** What a row depends on. */
const factsOf = (shell: Shell, { filter, now, shells }: Shown) => {
  const { cwd, shellID, title, transport } = shell.listed
  // The session is needed only where another one has a shell of this id.
  const isTwice = shells.some((other) => other !== shell && other.listed.shellID === shellID)
  const session = isTwice ? shell.sessionID : undefined
  const found = filter === undefined ? 0 : filter.matches(shell).length
  return { shellID, transport, title, cwd, session, active: activity(shell, now), isOpen: isOpen(shell), found }
}

const rowView = (shell: Shell, facts: ReturnType<typeof factsOf>): ReadonlyArray<Child> => {
  const { active, cwd, found, session, shellID, title } = facts
  return [
    icon(shell),
    element(
      "span",
      { class: "facts" },
      element(
        "span",
        { class: "name" },
        element("bdi", { class: "id", title: visible(shellID) }, shellID),
        state(shell)
      ),
      line("where", title, cwd),
      line("session", session),
      element(
        "span",
        { class: "activity" },
        element("span", {}, active),
        found === 0 ? undefined : element("mark", {}, `${found} found`)
      )
    )
  ]
}

interface Row {
  readonly item: HTMLLIElement
  readonly button: HTMLButtonElement
  shown: string
}

interface Shown {
  readonly shells: ReadonlyArray<Shell>
  readonly chosen: string | undefined
  readonly filter: Filter | undefined
  readonly now: number
}

export class ShellsView {
  readonly #list: HTMLUListElement
  readonly #choose: (key: string) => void
  readonly #rows = new Map<string, Row>()

  constructor(list: HTMLUListElement, choose: (key: string) => void) {
    this.#list = list
    this.#choose = choose
  }

  show(shown: Shown): void {
    const { chosen, filter, shells } = shown
    const keys = new Set(shells.map(({ key }) => key))
    for (const key of this.#rows.keys()) if (!keys.has(key)) this.#rows.delete(key)
    const rows = shells.map((shell) => {
      const row = this.#row(shell.key)
      const facts = factsOf(shell, shown)
      const signature = JSON.stringify(facts)
      if (row.shown !== signature) {
        row.shown = signature
        fill(row.button, ...rowView(shell, facts))
      }
      if (shell.key === chosen) row.button.setAttribute("aria-current", "true")
      else row.button.removeAttribute("aria-current")
      row.button.classList.toggle("shut", shell.listed.closed !== undefined)
      row.button.classList.toggle("unmatched", filter !== undefined && filter.matches(shell).length === 0)
      return row.item
    })
    arrange(this.#list, rows)
  }

  #row(key: string): Row {
    const known = this.#rows.get(key)
    if (known !== undefined) return known
    const button = element("button", { type: "button", class: "shell" })
    button.addEventListener("click", () => this.#choose(key))
    const made = { item: element("li", {}, button), button, shown: "" }
    this.#rows.set(key, made)
    return made
  }
}

/** The heading above the commands of a shell. */
export const aboutView = (shell: Shell): ReadonlyArray<Child> => {
  const { closed, cwd, shellID, title, transport } = shell.listed
  return [
    icon(shell),
    element("h2", {}, element("bdi", {}, shellID)),
    transport === undefined ? undefined : element("span", { class: "transport" }, transport),
    state(shell),
    closed === undefined ? undefined : element("span", { class: "why" }, reasonText(closed.reason)),
    line("title", title),
    line("cwd", cwd),
    line("session", shell.sessionID)
  ]
}
