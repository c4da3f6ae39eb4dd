/** Finds code in Markdown text: fenced blocks, and backtick spans within one paragraph. Pure and linear. */

/** UTF-16 offsets; the end is exclusive. */
export type Range = readonly [start: number, end: number]

const fence = /^[\s>]*(`{3,}|~{3,})(.*)$/s

/** Spans between two backtick runs of equal length; an unmatched run is text. */
const inlineRanges = (text: string, from: number, to: number): ReadonlyArray<Range> => {
  const block = text.slice(from, to)
  const runs = [...block.matchAll(/`+/g)].filter(({ 0: run, index }) => run.length > 1 || block[index - 1] !== "\\")
  const partner: Array<number | undefined> = []
  const later = new Map<number, number>()
  for (let index = runs.length - 1; index >= 0; index--) {
    const length = runs[index]?.[0].length ?? 0
    partner[index] = later.get(length)
    later.set(length, index)
  }
  const ranges: Array<Range> = []
  for (let index = 0; index < runs.length; index++) {
    const [open, close] = [runs[index], runs[partner[index] ?? -1]]
    if (open === undefined || close === undefined) continue
    ranges.push([from + open.index, from + close.index + close[0].length])
    index = partner[index] ?? index
  }
  return ranges
}

/** The ranges of code in a text, in order; an unclosed fence extends to the end. */
export const codeRanges = (text: string): ReadonlyArray<Range> => {
  const ranges: Array<Range> = []
  let paragraph = 0
  let open: { readonly start: number; readonly mark: string } | undefined
  for (let start = 0; start < text.length;) {
    const newline = text.indexOf("\n", start)
    const end = newline < 0 ? text.length : newline + 1
    const line = text.slice(start, newline < 0 ? end : newline)
    const [, mark = "", rest = ""] = fence.exec(line) ?? []
    if (open !== undefined) {
      if (mark.startsWith(open.mark) && rest.trim() === "") {
        ranges.push([open.start, end])
        open = undefined
        paragraph = end
      }
    } else if (mark !== "" && !(mark.startsWith("`") && rest.includes("`"))) {
      for (const range of inlineRanges(text, paragraph, start)) ranges.push(range)
      open = { start, mark }
    } else if (line.trim() === "") {
      for (const range of inlineRanges(text, paragraph, start)) ranges.push(range)
      paragraph = end
    }
    start = end
  }
  for (const range of open === undefined
    ? inlineRanges(text, paragraph, text.length)
    : [[open.start, text.length] as const]) {
    ranges.push(range)
  }
  return ranges
}
