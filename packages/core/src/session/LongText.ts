/**
 * How long a text of a model may be in one part of its message. A longer one goes on in the next part, so that no event,
 * row or line is longer than a few hundred kilobytes however long the answer is; readers of messages see one part again.
 * Pure. Spec: EX-R11 in specs/execution.md.
 */

/** UTF-16 code units of one part, at most. */
export const longestText = 131_072

const isHigh = (code: number): boolean => code >= 0xd800 && code <= 0xdbff

/**
 * Whether a part with this text goes on in the next: only a full part does. One that lacks a single code unit is full when
 * the next begins with a surrogate pair; without `next` it may be. Logs of before hold longer texts, which are whole.
 */
export const goesOn = (text: string, next?: string): boolean =>
  text.length === longestText ||
  (text.length === longestText - 1 && (next === undefined || /^[\uD800-\uDBFF][\uDC00-\uDFFF]/.test(next)))

/** How much of the delta still fits behind so much text: no surrogate pair is split. */
export const fitting = (length: number, delta: string): string => {
  const room = longestText - length
  if (delta.length <= room) return delta
  return delta.slice(0, isHigh(delta.charCodeAt(room - 1)) ? room - 1 : room)
}

/** The items, with each that goes on and the next as one. `textOf`: undefined for what is no text. */
export const joined = <A>(
  items: ReadonlyArray<A>,
  textOf: (item: A) => string | undefined,
  join: (first: A, text: string) => A
): ReadonlyArray<A> => {
  const all: Array<A> = []
  let pieces: Array<string> = []
  for (const item of items) {
    const text = textOf(item)
    const last = all.at(-1)
    const before = pieces.at(-1)
    if (text !== undefined && last !== undefined && before !== undefined && goesOn(before, text)) {
      pieces.push(text)
      continue
    }
    if (last !== undefined && pieces.length > 1) all[all.length - 1] = join(last, pieces.join(""))
    all.push(item)
    pieces = text === undefined ? [] : [text]
  }
  const last = all.at(-1)
  if (last !== undefined && pieces.length > 1) all[all.length - 1] = join(last, pieces.join(""))
  return all
}
