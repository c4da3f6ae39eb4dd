/** Other readings of a text in which a secret may stand: without escapes, and without line breaks. Pure. */

/** A reading of a text. `at` gives the place in the text of a place in the reading. */
export interface TextView {
  readonly text: string
  readonly at: (index: number) => number
}

const backslash = 0x5c
const escaped: Readonly<Record<string, string>> = { '"': '"', "'": "'", "/": "/", n: "\n", r: "\r", t: "\t" }
const hexadecimal = /[0-9a-fA-F]{4}/y

/** The character of the escape whose last part begins at the index, and the length of that; undefined if it is none. */
const meaning = (text: string, at: number): { readonly char: string; readonly length: number } | undefined => {
  const letter = text[at] ?? ""
  const char = escaped[letter]
  if (char !== undefined) return { char, length: 1 }
  if (letter !== "u") return undefined
  hexadecimal.lastIndex = at + 1
  if (!hexadecimal.test(text)) return undefined
  return { char: String.fromCharCode(Number.parseInt(text.slice(at + 1, at + 5), 16)), length: 5 }
}

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
  let slash = text.indexOf("\\")
  if (slash < 0) return undefined
  const [starts, places] = [[0], [0]]
  let view = ""
  let last = 0
  while (slash >= 0) {
    let at = slash + 1
    while (text.charCodeAt(at) === backslash) at++
    const found = meaning(text, at)
    if (found !== undefined) {
      view += text.slice(last, slash) + found.char
      last = at + found.length
      // Before this place, the view continues the text up to the escape.
      starts.push(view.length)
      places.push(last)
    }
    slash = text.indexOf("\\", found === undefined ? at : last)
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
