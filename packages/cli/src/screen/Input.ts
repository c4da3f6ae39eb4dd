/** The screen's editor: the library's, with completion of commands and of the folder's files. Spec: SC-516..SC-519. */
import { readdirSync } from "node:fs"
import { join } from "node:path"
import type {
  AutocompleteItem,
  AutocompleteProvider,
  AutocompleteSuggestions
} from "@mariozechner/pi-tui/dist/autocomplete.js"
import { Editor } from "@mariozechner/pi-tui/dist/components/editor.js"
import { CURSOR_MARKER, TUI } from "@mariozechner/pi-tui/dist/tui.js"
import { visibleWidth } from "@mariozechner/pi-tui/dist/utils.js"
import type { Choice } from "./Ask.ts"
import type { Size } from "./Draw.ts"
import type { Theme } from "./Theme.ts"

export interface Completed {
  readonly name: string
  readonly about: string
  /** What its first word can be. */
  readonly values?: () => Promise<ReadonlyArray<Choice>>
}

/** The terminal as the editor sees it: it only asks for the size. */
const sizeOnly = (size: () => Size) => {
  const none = () => undefined
  return {
    start: none,
    stop: none,
    drainInput: () => Promise.resolve(),
    write: none,
    get columns() {
      return size().columns
    },
    get rows() {
      return size().rows
    },
    kittyProtocolActive: false,
    moveBy: none,
    hideCursor: none,
    showCursor: none,
    clearLine: none,
    clearFromCursor: none,
    clearScreen: none,
    setTitle: none,
    setProgress: none
  }
}

/** The library's surface, drawn by `Frame.ts`: its own would clear what has scrolled away. */
class Surface extends TUI {
  readonly #changed: () => void
  constructor(size: () => Size, changed: () => void) {
    super(sizeOnly(size))
    this.#changed = changed
  }
  override requestRender() {
    this.#changed()
  }
}

const most = 20
const hiddenFolders = new Set([".git", "node_modules"])

/** The files of a folder whose names hold the words, folders first. */
const filesIn = (directory: string, typed: string): ReadonlyArray<AutocompleteItem> => {
  const slash = typed.lastIndexOf("/")
  const [folder, begin] = [typed.slice(0, slash + 1), typed.slice(slash + 1).toLowerCase()]
  try {
    const entries = readdirSync(join(directory, folder), { withFileTypes: true })
      .filter(({ name }) => (begin.startsWith(".") || !name.startsWith(".")) && !hiddenFolders.has(name))
      .filter(({ name }) => name.toLowerCase().includes(begin))
      .map((entry) => ({ name: entry.name, isFolder: entry.isDirectory() }))
    const rank = ({ isFolder, name }: { readonly isFolder: boolean; readonly name: string }) =>
      (name.toLowerCase().startsWith(begin) ? 0 : 2) + (isFolder ? 0 : 1)
    return entries
      .sort((a, b) => rank(a) - rank(b) || (a.name < b.name ? -1 : 1))
      .slice(0, most)
      .map(({ isFolder, name }) => {
        const path = `${folder}${name}${isFolder ? "/" : ""}`
        return { value: `@${path}`, label: path }
      })
  } catch {
    return []
  }
}

/** What is completed at the cursor: a command, its first word, or a file. */
export const completion = (directory: () => string, commands: ReadonlyArray<Completed>): AutocompleteProvider => ({
  getSuggestions: async (lines, row, column): Promise<AutocompleteSuggestions | null> => {
    const before = (lines[row] ?? "").slice(0, column)
    const [, name, word] = row === 0 ? (/^\/(\S*)(?:\s+(\S*))?$/.exec(before) ?? []) : []
    if (name !== undefined && word === undefined) {
      const items = commands
        .filter((command) => command.name.startsWith(name))
        .map((command) => ({ value: command.name, label: command.name, description: command.about }))
      return items.length === 0 ? null : { items, prefix: `/${name}` }
    }
    if (name !== undefined && word !== undefined) {
      const all = (await commands.find((command) => command.name === name)?.values?.()) ?? []
      const items = all
        .filter(({ value }) => value.toLowerCase().includes(word.toLowerCase()))
        .slice(0, most)
        .map(({ about = "", label, value }) => ({ value, label, description: about }))
      return items.length === 0 ? null : { items, prefix: word }
    }
    const [, typed] = /(?:^|\s)@([^\s@]*)$/.exec(before) ?? []
    if (typed === undefined) return null
    const items = filesIn(directory(), typed)
    return items.length === 0 ? null : { items: [...items], prefix: `@${typed}` }
  },
  applyCompletion: (lines, row, column, item, prefix) => {
    const line = lines[row] ?? ""
    const isCommand = prefix.startsWith("/") && row === 0 && column === prefix.length
    const value = isCommand ? `/${item.value}` : item.value
    // A folder is completed further; everything else has ended.
    const gap = value.endsWith("/") ? "" : " "
    const before = `${line.slice(0, column - prefix.length)}${value}${gap}`
    const changed = [...lines]
    changed[row] = before + line.slice(column)
    return { lines: changed, cursorLine: row, cursorCol: before.length }
  },
  shouldTriggerFileCompletion: () => false
})

export interface Input {
  readonly editor: Editor
  /** The editor's lines and its cursor. */
  readonly draw: (columns: number) => {
    readonly lines: ReadonlyArray<string>
    readonly cursor: { readonly row: number; readonly column: number }
  }
}

const pasteBegins = "\u001b[200~"
const pasteEnds = "\u001b[201~"

/** A paste as the editor takes it; a long one becomes a chip. The last line's end is typed after it: a chip counts lines. */
export const pasted = (text: string): string => {
  const lines = text.replaceAll(pasteEnds, "").replace(/\r?\n$|\r$/, "")
  return `${pasteBegins}${lines}${pasteEnds}${/[\r\n]$/.test(text) ? "\n" : ""}`
}

/** An editor; `changed` is called when it must be drawn again. */
export const make = (options: {
  readonly theme: Theme
  readonly size: () => Size
  readonly changed: () => void
}): Input => {
  const { changed, size, theme } = options
  const editor = new Editor(new Surface(size, changed), { borderColor: theme.style.dim, selectList: theme.list })
  editor.focused = true
  return {
    editor,
    draw: (columns) => {
      const cursor = { row: 0, column: 0 }
      const lines = editor.render(Math.max(4, columns - 1)).map((line, row) => {
        const at = line.indexOf(CURSOR_MARKER)
        if (at < 0) return line
        cursor.row = row
        cursor.column = visibleWidth(line.slice(0, at))
        return line.slice(0, at) + line.slice(at + CURSOR_MARKER.length)
      })
      return { lines, cursor }
    }
  }
}
