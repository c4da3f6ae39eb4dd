/**
 * Texts of the page of live shells: both ends of a long text and what a filter finds in it, until the reader asks for the
 * whole, and what the page says in words. No DOM. Spec: SL-224, SL-225, SL-227 in specs/shell.md.
 */
import type { ShellCloseReason } from "@daybook/log/events/LiveShellEvents"
import { countText } from "../fold/Words.ts"

/** A part that is not shown. */
export interface Hidden {
  /** 0 if only part of a line is hidden. */
  readonly lines: number
  readonly characters: number
}

/** A shown part of a text, or a hidden one. */
type Piece = string | Hidden

/** Lines and code units that are shown at each end of a folded text, and of a text that is short enough to stay whole. */
const [endLines, endLength] = [8, 1_500]
const [mostLines, mostLength] = [24, 4_000]
/** Code units that are shown on each side of a find. */
const aroundFind = 200

const isLow = (code: number): boolean => code >= 0xdc00 && code <= 0xdfff

/** The place after this many code units, or one less if it would split a character. */
const between = (text: string, at: number): number => (isLow(text.charCodeAt(at)) ? at - 1 : at)

/** The place of the nth line break from the start, or from the end. */
const nthBreak = (text: string, n: number, step: 1 | -1): number => {
  let at = step > 0 ? -1 : text.length
  for (let i = 0; i < n; i++) {
    const next = step > 0 ? text.indexOf("\n", at + 1) : at === 0 ? -1 : text.lastIndexOf("\n", at - 1)
    if (next < 0) return step > 0 ? text.length : -1
    at = next
  }
  return at
}

const countLines = (text: string): number => text.split("\n").length

const hidden = (text: string): Hidden => ({
  lines: text.includes("\n") ? countLines(text.replace(/^\n/, "").replace(/\n$/, "")) : 0,
  characters: text.length
})

/** The hidden part as pieces; if the pattern is found only here, the line of the first find is shown. */
const middle = (text: string, found: RegExpExecArray | null): ReadonlyArray<Piece> => {
  if (found === null) return [hidden(text)]
  const end = found.index + found[0].length
  const before = text.lastIndexOf("\n", found.index - 1) + 1
  const after = text.indexOf("\n", end)
  const from = between(text, found.index === 0 ? 0 : Math.max(before, found.index - aroundFind))
  const to = between(text, Math.min(after < 0 ? text.length : after, end + aroundFind))
  return [text.slice(0, from), text.slice(from, to), text.slice(to)].flatMap((part, at): ReadonlyArray<Piece> =>
    part === "" ? [] : [at === 1 ? part : hidden(part)]
  )
}

/** Both ends of a long text and what is between them; undefined for a text that is shown whole. */
export const fold = (text: string, pattern?: RegExp): ReadonlyArray<Piece> | undefined => {
  if (text.length <= mostLength && countLines(text) <= mostLines) return undefined
  const from = between(text, Math.min(nthBreak(text, endLines, 1), endLength))
  const to = between(text, Math.max(nthBreak(text, endLines, -1) + 1, text.length - endLength, from))
  const [head, rest, tail] = [text.slice(0, from), text.slice(from, to), text.slice(to)]
  const isShown = pattern === undefined || pattern.test(head) || pattern.test(tail)
  return [head, ...middle(rest, isShown ? null : pattern.exec(rest)), tail]
}

const reasons: Readonly<Record<ShellCloseReason, string>> = {
  destroyed: "on request",
  reaped: "it was idle for too long",
  exited: "the shell ended",
  timeout: "a command did not stop in time",
  lost: "its connection or its process ended",
  shutdown: "its host ended",
  processes: "it had too many processes",
  memory: "it used too much memory",
  unprotected: "a protected file was replaced"
}

/** Why a shell closed: `reaped: it was idle for too long`. */
export const reasonText = (reason: ShellCloseReason): string => `${reason}: ${reasons[reason]}`

export const hiddenText = ({ characters, lines }: Hidden): string =>
  lines > 0 ? `Show ${countText(lines, "more line")}` : `Show ${countText(characters, "more character")}`

export const droppedText = (dropped: number): string =>
  `${countText(dropped, "older event")} of this shell ${dropped === 1 ? "is" : "are"} no longer on this page: ` +
  "daybook shell watch --output prints them."

export const filesText = (files: number): string => `${countText(files, "file")} changed`
