/** Finds values in quotes that continue on the next lines. Pure. Spec: FM-761. */

const longestLine = 512
const mostLines = 16

const quote = "[\"'`]"
const character = `(?:[^\\\\\\r\\n"'\`]|\\\\.|(?!\\1)${quote})`
/** The rest of a value from its opening quote on, over line ends. It ends before the closing quote. */
export const continuedValue = `(?=(${quote}))${quote}(?![\\s),;}\\]])(${character}{1,${longestLine}}\\\\?(?:\\r?\\n${character}{0,${longestLine}}\\\\?){1,${mostLines - 1}})(?=\\1(?:[\\s,;)}\\]"'\`]|$))`

const name =
  /(?:pass(?:word|wd|phrase)|secret|token|key|credentials?|connection[_-]?string|pwd|pass|auth)(?:_base)?["'`]?\]?[^\S\r\n]{0,8}(?:=>|:=|[:=])[^\S\r\n]{0,8}$/i

const isQuote = (code: number): boolean => code === 0x22 || code === 0x27 || code === 0x60

/** Where a value of a secret's name opens a quote that its line does not close. */
export const openQuote = (text: string, start: number, end: number): number | undefined => {
  const seen = new Set<number>()
  for (let at = end - 1; at > start && seen.size < 3; at--) {
    const code = text.charCodeAt(at)
    if (!isQuote(code) || seen.has(code)) continue
    seen.add(code)
    const before = text.slice(Math.max(start, at - 128), at)
    if (!name.test(before)) continue
    const others = before.split(String.fromCharCode(code)).length - 1
    return others % 2 === 0 ? at : undefined
  }
  return undefined
}

const rest = new RegExp(
  `(?=(${quote}))${quote}${character}{0,${longestLine}}\\\\?(?:\\r?\\n${character}{0,${longestLine}}\\\\?){0,${mostLines - 1}}`,
  "y"
)

/** The place of the closing quote of a value; "open" if later text may close it; undefined if it is none. */
export const closing = (text: string, at: number): number | "open" | undefined => {
  rest.lastIndex = at
  const match = rest.exec(text)
  if (match === null) return undefined
  const end = at + match[0].length
  if (end < text.length) return text[end] === match[1] ? end : undefined
  const [lines, last] = [match[0].split("\n").length, match[0].length - match[0].lastIndexOf("\n")]
  return lines < mostLines && last < longestLine ? "open" : undefined
}
