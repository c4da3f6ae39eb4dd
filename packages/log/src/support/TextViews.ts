/** Other readings of a text in which a secret may stand: without escapes, and without line breaks. Pure. */

/** A reading of a text. `at` gives the place in the text of a place in the reading. */
export interface TextView {
  readonly text: string
  readonly at: (index: number) => number
}

const escape = /(?<!\\)\\+(?:u([0-9a-fA-F]{4})|["'/nrt])/g
const meaning: Readonly<Record<string, string>> = { n: "\n", r: "\r", t: "\t" }

const viewOf = (text: string, starts: ReadonlyArray<number>, places: ReadonlyArray<number>): TextView => ({
  text,
  at: (index) => {
    let [low, high] = [0, starts.length - 1]
    while (low < high) {
      const middle = (low + high + 1) >> 1
      if ((starts[middle] ?? 0) <= index) low = middle
      else high = middle - 1
    }
    return (places[low] ?? 0) + index - (starts[low] ?? 0)
  }
})

/** The text with escapes of JSON and of shells replaced, at any depth of escaping; undefined if it has none. */
export const withoutEscapes = (text: string): TextView | undefined => {
  if (!text.includes("\\")) return undefined
  const [starts, places] = [[0], [0]]
  let view = ""
  let last = 0
  for (const found of text.matchAll(escape)) {
    const [whole, hex] = found
    const char = whole.at(-1) ?? ""
    view += text.slice(last, found.index)
    starts.push(view.length)
    // A match that starts or ends at the replaced character covers the whole escape.
    places.push(found.index)
    view += hex === undefined ? (meaning[char] ?? char) : String.fromCharCode(Number.parseInt(hex, 16))
    last = found.index + whole.length
    starts.push(view.length)
    places.push(last)
  }
  return last === 0 ? undefined : viewOf(view + text.slice(last), starts, places)
}

const lineBreak = /[^\S\r\n]*\\?\r?\n[^\S\r\n]*/g
const isTokenChar = (code: number): boolean =>
  (code >= 48 && code <= 57) ||
  (code >= 65 && code <= 90) ||
  (code >= 97 && code <= 122) ||
  "-_+/=.".includes(String.fromCharCode(code))

/** Characters of one line that can belong to a broken token. */
const longestPiece = 512

const tailStart = (text: string, from: number, end: number): number => {
  let start = end
  while (start > from && end - start < longestPiece && isTokenChar(text.charCodeAt(start - 1))) start--
  return start
}

const headEnd = (text: string, start: number): number => {
  let end = start
  while (end < text.length && end - start < longestPiece && isTokenChar(text.charCodeAt(end))) end++
  return end
}

/** Words that a line break may have cut, joined. `seams` are the places in the view where lines were joined. */
export interface BrokenWord extends TextView {
  readonly seams: ReadonlyArray<number>
}

/** The last word of each line with the first word of the next; lines of one word only continue it. */
export const brokenWords = function* (text: string): Generator<BrokenWord> {
  let word = { text: "", starts: [] as Array<number>, places: [] as Array<number>, end: -1 }
  const complete = (): BrokenWord => ({ ...viewOf(word.text, word.starts, word.places), seams: word.starts.slice(1) })
  for (const found of text.matchAll(lineBreak)) {
    const after = found.index + found[0].length
    const end = headEnd(text, after)
    const continues = word.end === found.index && word.end >= 0
    const from = continues ? word.end : tailStart(text, Math.max(word.end, 0), found.index)
    if (!continues) {
      if (word.starts.length > 1) yield complete()
      word = { text: text.slice(from, found.index), starts: [0], places: [from], end: -1 }
    }
    if (end === after || word.text === "") {
      if (word.starts.length > 1) yield complete()
      word = { text: "", starts: [], places: [], end: -1 }
      continue
    }
    word.starts.push(word.text.length)
    word.places.push(after)
    word.text += text.slice(after, end)
    word.end = end
  }
  if (word.starts.length > 1) yield complete()
}
