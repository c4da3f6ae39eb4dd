/**
 * Finds a text that differs from what was asked for only in characters that look alike: typographic quotes and dashes, blanks
 * that are no plain spaces, tabs in place of blanks, blanks at the end of lines, and line ends. Pure. Spec: TO-541, TO-542.
 */

/** Characters that models write as another one. */
const plain: ReadonlyMap<string, string> = new Map([
  ...Array.from("\u2018\u2019\u201A\u201B\u2032", (each) => [each, "'"] as const),
  ...Array.from("\u201C\u201D\u201E\u201F\u2033", (each) => [each, '"'] as const),
  ...Array.from("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", (each) => [each, "-"] as const),
  ...Array.from(
    "\u00A0\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200A\u202F\u205F\u3000",
    (each) => [each, " "] as const
  )
])

/** How much two texts may differ: in look-alike characters and line ends, or also in the number and kind of blanks. */
export const nearness = ["characters", "blanks"] as const
export type Nearness = (typeof nearness)[number]

const isBlank = (character: string): boolean => character === " " || character === "\t"

/** A text in plain characters, and for each of them, and the end, where it begins in the text. */
const plainOf = (text: string, near: Nearness) => {
  const characters: Array<string> = []
  const starts: Array<number> = []
  const put = (character: string, at: number) => {
    characters.push(character)
    starts.push(at)
  }
  for (let at = 0; at < text.length;) {
    const character = plain.get(text[at] ?? "") ?? text[at] ?? ""
    if (character === "\r" && text[at + 1] === "\n") {
      put("\n", at)
      at += 2
    } else if (near === "blanks" && isBlank(character)) {
      let end = at + 1
      while (end < text.length && isBlank(plain.get(text[end] ?? "") ?? text[end] ?? "")) end++
      // Blanks before a line end have no place in the plain text.
      if (text[end] !== "\n" && text[end] !== "\r") put(" ", at)
      at = end
    } else put(character, at++)
  }
  starts.push(text.length)
  return { text: characters.join(""), starts }
}

export const plainLine = (line: string, near: Nearness): string =>
  near === "characters" ? plainOf(line, near).text.trimEnd() : plainOf(`${line}\n`, near).text.slice(0, -1)

const indentOf = (line: string): string => /^[^\S\r\n]*/.exec(line)?.[0] ?? ""

/** Gives lines the indentation of the file: that of `asked` becomes that of `found`, at each depth. */
export const reindenting = (asked: ReadonlyArray<string>, found: ReadonlyArray<string>): ((line: string) => string) => {
  const known = new Map<string, string>()
  for (const [at, line] of asked.entries()) {
    const [from, to] = [indentOf(line), indentOf(found[at] ?? "")]
    if (line.trim() !== "" && from !== "" && !known.has(from)) known.set(from, to)
  }
  const longest = [...known].sort(([one], [other]) => other.length - one.length)
  if (longest.every(([from, to]) => from === to)) return (line) => line
  return (line) => {
    let rest = indentOf(line)
    let indent = ""
    while (rest !== "") {
      const match = longest.find(([from]) => rest.startsWith(from))
      if (match === undefined) break
      indent += match[1]
      rest = rest.slice(match[0].length)
    }
    return indent + rest + line.slice(indentOf(line).length)
  }
}

type NearPlace =
  | { readonly found: 1; readonly near: Nearness; readonly start: number; readonly end: number }
  | { readonly found: number }

const placesOf = (text: string, sought: string): ReadonlyArray<number> => {
  const places: Array<number> = []
  for (let at = text.indexOf(sought); at >= 0 && places.length < 10; at = text.indexOf(sought, at + 1)) places.push(at)
  return places
}

/** Where the content is near a text that it does not contain. */
export const nearPlace = (content: string, text: string): NearPlace => {
  for (const near of nearness) {
    const sought = plainOf(text, near).text
    if (sought.trim() === "") continue
    const { starts, text: within } = plainOf(content, near)
    const places = placesOf(within, sought)
    const [place] = places
    if (place === undefined) continue
    if (places.length > 1) return { found: places.length }
    return { found: 1, near, start: starts[place] ?? 0, end: starts[place + sought.length] ?? content.length }
  }
  return { found: 0 }
}

/** How many characters two texts have in common at their start, and then at their end. */
const commonEnds = (one: string, other: string): readonly [head: number, tail: number] => {
  const most = Math.min(one.length, other.length)
  let head = 0
  while (head < most && one[head] === other[head]) head++
  let tail = 0
  while (tail < most - head && one[one.length - 1 - tail] === other[other.length - 1 - tail]) tail++
  return [head, tail]
}

/**
 * The replacement in the terms of the file: what `newText` has in common with `oldText` at its start and end stays as the file
 * has it, and the rest gets the indentation and the line ends of the file.
 */
export const replacementFor = (found: string, oldText: string, newText: string, near: Nearness): string => {
  const newline = found.includes("\r\n") && !/(^|[^\r])\n/.test(found) ? "\r\n" : "\n"
  const old = plainOf(oldText, near)
  const kept = plainOf(found, near)
  const [head, tail] = commonEnds(oldText, newText)
  /** A place of the asked text in the found one; none inside what is one blank in the plain text. */
  const placeIn = (at: number): number | undefined => {
    const index = old.starts.indexOf(at)
    return index < 0 ? undefined : kept.starts[index]
  }
  const [from, to] = [placeIn(head), placeIn(oldText.length - tail)]
  const isCut = from !== undefined && to !== undefined
  const middle = isCut ? newText.slice(head, newText.length - tail) : newText
  const lines = (text: string) => text.split(/\r?\n/)
  const indented = reindenting(lines(oldText), lines(found))
  const own = lines(middle)
    .map((line, at) => (at === 0 && isCut ? line : indented(line)))
    .join(newline)
  return isCut ? found.slice(0, from) + own + found.slice(to) : own
}
