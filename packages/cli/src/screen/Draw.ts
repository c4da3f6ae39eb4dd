/** Draws blocks, the running work and the status line in lines of the terminal's width. Pure. Spec: SC-507..SC-512. */
import { truncateToWidth } from "@mariozechner/pi-tui/dist/utils.js"
import { modelText } from "@daybook/log/domain/Values"
import type { Session } from "@daybook/log/domain/Message"
import { callText, changes, elapsed, tail } from "../render/CallText.ts"
import { liveLines, fit } from "../render/LiveLines.ts"
import { oneLine, visible, rowsAtWords, width } from "../render/Plain.ts"
import { many } from "../support/Amounts.ts"
import * as Markdown from "./Markdown.ts"
import type { Theme } from "./Theme.ts"
import type { Block, EndedCall, OpenText, View, WaitingPrompt } from "./View.ts"

export interface Size {
  readonly columns: number
  readonly rows: number
}

/** What of the finished work is shown in full. */
export interface Details {
  readonly thinking: boolean
  readonly results: boolean
}

/** The last cell of a row stays empty: terminals disagree about the cursor's position after it. */
const room = (columns: number): number => Math.max(4, columns - 1)

/** Rows of a text without markup, broken at words. */
const rowsOf = (text: string, cells: number): ReadonlyArray<string> =>
  visible(text)
    .replaceAll("\t", "    ")
    .split("\n")
    .flatMap((line) => rowsAtWords(line, Math.max(2, cells)))
    .map((row) => row.trimEnd())

/** A line of a table with less between its columns; that of two columns is left, because its last one can go on below. */
const closer = (line: string): string =>
  /\S\s{2,}\S.*\s{2,}\S|^\s{8,}\S/.test(line) ? line.replaceAll(/ {3,}/g, "  ") : line

/** Rows of a line of output; those of a table's last column stand below its beginning, if there is room. */
export const hanging = (wide: string, columns: number): ReadonlyArray<string> => {
  const cells = Math.max(2, columns - 1)
  if (width(wide) <= cells) return [wide.trimEnd()]
  const line = closer(wide)
  if (width(line) <= cells) return [line.trimEnd()]
  const [begin = ""] = /^\s*\S.*?\s{2,}(?=\S)/.exec(line) ?? []
  const indent = width(begin)
  if (indent === 0 || indent > cells / 2) return rowsAtWords(line, cells).map((row) => row.trimEnd())
  const rows = rowsAtWords(line.slice(begin.length), cells - indent)
  return rows.map((row, at) => `${at === 0 ? begin : " ".repeat(indent)}${row}`.trimEnd())
}

const promptRows = 40

const promptLines = (text: string, files: number, columns: number, theme: Theme): ReadonlyArray<string> => {
  const rows = rowsOf(text, room(columns) - 2)
  const hidden = rows.length - promptRows
  return [
    "",
    ...rows.slice(0, promptRows).map((row) => `${theme.accent("▌")} ${row}`),
    ...(hidden > 0 ? [`${theme.accent("▌")} ${theme.style.dim(`… ${hidden} more lines`)}`] : []),
    ...(files > 0 ? [`${theme.accent("▌")} ${theme.style.dim(`with ${many(files, "file")}`)}`] : [])
  ]
}

/** Lines of a folded result: the end of a command's output, which says how it went. */
const foldedLines = 3

/** The same of a command that failed: it says why. */
const failedLines = 8

const resultLines = (
  { call, failure, output }: EndedCall,
  { columns, theme, whole }: { readonly columns: number; readonly theme: Theme; readonly whole: boolean }
): ReadonlyArray<string> => {
  if (output.trim() === "") return []
  const { dim } = theme.style
  if (whole) return rowsOf(output.trimEnd(), room(columns) - 2).map((row) => dim(`  ${row}`))
  if (call.tool !== "bash") return []
  // The line above says it too.
  const text = output
    .trimEnd()
    .replace(/\n*\[Exit code \d+\.\]$/, "")
    .trimEnd()
  if (text === "") return []
  const shown = failure === undefined ? foldedLines : failedLines
  const more = text.split("\n").length - shown
  return [
    ...(more > 0 ? [dim(fit(`  … ${more} more ${more === 1 ? "line" : "lines"}: Ctrl-O`, columns))] : []),
    ...tail(text, shown).map((line) => dim(fit(`  ${line}`, columns)))
  ]
}

const callLines = (ended: EndedCall, columns: number, theme: Theme, whole: boolean): ReadonlyArray<string> => {
  const { bad, dim, good } = theme.style
  const { call, failure, milliseconds } = ended
  const time = milliseconds < 1_000 ? "" : ` (${elapsed(milliseconds)})`
  const why = failure === undefined ? "" : `: ${failure}`
  const line = fit(`${callText(call, Math.max(20, columns - 12))}${why}${time}`, columns - 2)
  return [
    "",
    `${failure === undefined ? good("✓") : bad("✗")} ${line}`,
    ...changes(call).map(({ sign, text }) => {
      const row = fit(`  ${sign} ${text.replaceAll("\t", "    ")}`, columns)
      return sign === "+" ? good(row) : sign === "-" ? bad(row) : dim(row)
    }),
    ...(failure === undefined || whole || call.tool === "bash" ? resultLines(ended, { columns, theme, whole }) : [])
  ]
}

/** The whole result of a call, for a person who unfolds it. */
export const unfolded = (ended: EndedCall, columns: number, theme: Theme): ReadonlyArray<string> => [
  "",
  theme.style.dim(fit(`${callText(ended.call, Math.max(20, columns - 12))}:`, columns)),
  ...resultLines(ended, { columns, theme, whole: true })
]

export const blockLines = (block: Block, columns: number, theme: Theme, shown: Details): ReadonlyArray<string> => {
  const { bad, dim } = theme.style
  switch (block.type) {
    case "prompt":
      return promptLines(block.text, block.files, columns, theme)
    case "text":
      return Markdown.lines(block.piece, room(columns), theme)
    case "thinking":
      return shown.thinking
        ? ["", ...rowsOf(block.text, room(columns) - 2).map((row) => dim(`> ${row}`))]
        : ["", dim(fit(`> thought: ${oneLine(block.text, columns)}`, columns))]
    case "call":
      return callLines(block, columns, theme, shown.results)
    case "shell":
      return [
        "",
        `${theme.accent("!")} ${fit(oneLine(block.command, columns), columns - 2)}`,
        ...rowsOf(block.output.trimEnd(), room(columns) - 2).map((row) => dim(`  ${row}`))
      ]
    case "moved":
      return ["", dim("… the session went on from an earlier message")]
    case "note": {
      const rows = rowsOf(block.text, room(columns) - 2)
      return [
        "",
        ...rows.map((row, at) => (at > 0 ? `  ${row}` : block.bad === true ? `${bad("✗")} ${row}` : dim(`… ${row}`)))
      ]
    }
  }
}

/** The last rows of a text that is being written. */
const openLines = ({ channel, open, said }: OpenText, columns: number, theme: Theme, thinking: boolean) => {
  if (channel === "text") {
    const piece = Markdown.end(open)
    return piece === undefined ? [] : Markdown.lines(piece, room(columns), theme)
  }
  if (!thinking || said.trim() === "") return []
  const rows = rowsOf(said.trim().slice(-4_000), room(columns) - 2)
  return ["", ...rows.slice(-6).map((row) => theme.style.dim(`> ${row}`))]
}

const waitingLine = ({ delivery, text }: WaitingPrompt, columns: number): string =>
  fit(`⋯ ${delivery === "queue" ? "queued" : "joins"}: ${oneLine(text, columns)}`, columns)

/** Waiting prompts that are shown, at most. */
const shownWaiting = 3

const waitingLines = (view: View, columns: number, { style }: Theme): ReadonlyArray<string> => {
  const all = [...view.waiting.values()]
  if (all.length === 0) return []
  const more = all.length - shownWaiting
  return [
    ...all.slice(0, shownWaiting).map((each) => style.dim(waitingLine(each, columns))),
    ...(more > 0 ? [style.dim(fit(`  and ${more} more`, columns))] : []),
    style.dim(fit(`  Alt-Up takes the last one back${view.activity === undefined ? ", Enter runs them" : ""}`, columns))
  ]
}

/** What goes on: the open text, running calls, what is waited for, and waiting prompts. */
export const workLines = (
  view: View,
  now: number,
  size: Size,
  theme: Theme,
  { asks, shown, stopping }: { readonly shown: Details; readonly stopping: boolean; readonly asks: boolean }
): ReadonlyArray<string> => {
  const { columns } = size
  const texts = [...view.texts.values()].flatMap((text) => openLines(text, columns, theme, shown.thinking))
  const live =
    view.activity === undefined
      ? []
      : [
          "",
          ...liveLines(
            {
              startedAt: view.activity.startedAt,
              phase: stopping ? { type: "stopping" } : view.phase,
              running: [...view.running.values()],
              asks,
              advice: "Esc stops"
            },
            now,
            size,
            theme.style
          )
        ]
  return [...texts, ...live, ...waitingLines(view, columns, theme)]
}

/** What the status line tells besides the view. */
export interface Facts {
  readonly session: Session | undefined
  readonly directory: string
  readonly branch: string | undefined
  /** The context window of the model in tokens; 0 if it is not known. */
  readonly window: number
  /** MCP servers that failed. */
  readonly lost: ReadonlyArray<string>
  readonly server: string | undefined
  /** What this run may do besides the agent's rules, in a word or two. */
  readonly mode: string | undefined
}

const amount = (tokens: number): string =>
  tokens < 1_000
    ? String(tokens)
    : tokens < 100_000
      ? `${(tokens / 1_000).toFixed(1)}k`
      : tokens < 1_000_000
        ? `${Math.round(tokens / 1_000)}k`
        : `${(tokens / 1_000_000).toFixed(1)}M`

const contextText = ({ last }: View, window: number): string | undefined => {
  if (last === undefined) return undefined
  const used = last.input + last.output
  return window === 0
    ? `${amount(used)} context`
    : `${amount(used)}/${amount(window)} ${Math.round((100 * used) / window)}%`
}

const folderText = (directory: string, home: string | undefined): string => {
  const under = home !== undefined && (directory === home || directory.startsWith(`${home}/`))
  return under ? `~${directory.slice(home.length)}` : directory
}

/** The status line: what matters most comes first, because a narrow terminal shows less. */
export const statusLine = (view: View, facts: Facts, columns: number, home: string | undefined): string => {
  const { branch, directory, lost, mode, server, session, window } = facts
  const model = view.model ?? session?.model
  const tokens = session === undefined ? 0 : session.tokens.input + session.tokens.output
  const cost = session?.cost ?? 0
  const parts = [
    model === undefined ? undefined : modelText(model),
    view.agent ?? session?.agent ?? "build",
    mode,
    contextText(view, window),
    tokens === 0 ? undefined : `${amount(tokens)} tokens${cost === 0 ? "" : ` $${cost.toFixed(2)}`}`,
    view.waiting.size === 0 ? undefined : `${view.waiting.size} waiting`,
    lost.length === 0 ? undefined : `MCP ${lost.join(", ")} failed`,
    `${folderText(directory, home)}${branch === undefined ? "" : ` (${branch})`}`,
    server,
    view.title ?? session?.title
  ]
  const line = parts.flatMap((part) => (part === undefined ? [] : [oneLine(part, 80)])).join(" · ")
  return fit(line, columns)
}

/** The lines that fit above the terminal's edge: the last ones, which are being written. */
export const lastLines = (lines: ReadonlyArray<string>, most: number): ReadonlyArray<string> =>
  lines.length <= most ? lines : lines.slice(lines.length - Math.max(0, most))

/**
 * Lines of components, which may be as wide as the terminal, in the terminal's room. Most lines of a drawing are those of the one
 * before, and finding the width of a line costs more than all else in it.
 */
export const makeNarrowing = () => {
  let known = { columns: 0, lines: new Map<string, string>() }
  return (lines: ReadonlyArray<string>, columns: number): ReadonlyArray<string> => {
    const before = known.columns === columns ? known.lines : undefined
    const narrowed = lines.map((line) => before?.get(line) ?? truncateToWidth(line, room(columns), ""))
    known = { columns, lines: new Map(lines.map((line, at) => [line, narrowed[at] ?? ""])) }
    return narrowed
  }
}

/** What a new screen says. */
export const welcome = (offered: Session | undefined, columns: number): ReadonlyArray<string> => [
  "daybook: /help lists commands and keys",
  ...(offered === undefined
    ? []
    : [
        fit(`Enter goes on with "${oneLine(offered.title ?? offered.id, columns)}"`, columns),
        fit("A prompt begins a new session", columns)
      ])
]
