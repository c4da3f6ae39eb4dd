/** Finds the entries that contain a text, whatever its case. No DOM. Spec: SL-227 in specs/shell.md. */
import type { Entry, Shell } from "./Book.ts"

/** The texts of an entry that are searched. */
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

interface Found {
  readonly entries: Array<Entry>
  /** How many entries of the shell were searched, dropped ones included. */
  searched: number
}

/** One text to find; remembers what was searched, so that each entry is searched once. */
export class Filter {
  readonly text: string
  readonly pattern: RegExp
  readonly #found = new WeakMap<Shell, Found>()

  constructor(text: string) {
    this.text = text
    this.pattern = new RegExp(literal(text), "i")
  }

  /** The shell's entries that contain the text. */
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
