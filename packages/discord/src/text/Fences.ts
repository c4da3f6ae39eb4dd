/**
 * Reads a text as paragraphs and blocks of code. Discord knows only fences of three backticks: other fences become such
 * ones, and backticks that would end a block early are parted by an invisible character. Pure. Spec: DI-20..DI-23.
 */

/** A paragraph, or the lines of a block of code. */
export interface Unit {
  readonly lines: ReadonlyArray<string>
  /** The line that opens the block; absent for a paragraph. */
  readonly fence?: string
  /** Whether an empty line stands before it. */
  readonly isApart: boolean
}

export const fence = "```"
const zeroWidth = "\u200b"

interface Opening {
  readonly marker: string
  readonly info: string
}

const opening = (line: string): Opening | undefined => {
  const [, marker, info = ""] = /^ {0,3}(`{3,}|~{3,})([^\n]*)$/.exec(line) ?? []
  if (marker === undefined || (marker.startsWith("`") && info.includes("`"))) return undefined
  return { marker, info: /^[\w+#.-]{1,32}/.exec(info.trim())?.[0] ?? "" }
}

const closes = (line: string, { marker }: Opening): boolean => {
  const [, closing = ""] = /^ {0,3}(`{3,}|~{3,})[ \t]*$/.exec(line) ?? []
  return closing.startsWith(marker.charAt(0)) && closing.length >= marker.length
}

/** A line without a fence in it: Discord would pair it with any other. */
const inside = (line: string): string => line.replaceAll(/`(?=``)/g, `\`${zeroWidth}`)

/** The paragraphs and blocks of a text. A block that is not closed ends with the text. */
export const units = (text: string): ReadonlyArray<Unit> => {
  const found: Array<Unit> = []
  let lines: Array<string> = []
  let open: Opening | undefined
  let isApart = false
  const end = () => {
    if (lines.length > 0 || open !== undefined) {
      found.push({ lines, isApart, ...(open === undefined ? {} : { fence: fence + open.info }) })
      isApart = false
    }
    lines = []
    open = undefined
  }
  for (const line of text.split("\n")) {
    if (open !== undefined) {
      if (closes(line, open)) end()
      else lines.push(inside(line))
      continue
    }
    const begun = opening(line)
    if (begun !== undefined) {
      end()
      open = begun
    } else if (line.trim() === "") {
      end()
      isApart = true
    } else lines.push(inside(line))
  }
  end()
  return found
}
