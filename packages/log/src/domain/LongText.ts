/**
 * Splits a model's long text into parts and joins them again. A longer text continues in the next part, so that no
 * event, row or line exceeds a few hundred kilobytes, however long the answer is; readers of messages see one part.
 * Pure. Spec: EX-R11 in specs/execution.md.
 */

/** Maximum UTF-16 code units of one part. */
export const longestText = 131_072

export const isHigh = (code: number): boolean => code >= 0xd800 && code <= 0xdbff

/**
 * Whether a part with this text continues in the next one: only a full part does. A part that lacks a single code unit
 * counts as full if `next` begins with a surrogate pair, or if `next` is unknown. Older logs contain longer texts,
 * which are complete.
 */
export const goesOn = (text: string, next?: string): boolean =>
  text.length === longestText ||
  (text.length === longestText - 1 && (next === undefined || /^[\uD800-\uDBFF][\uDC00-\uDFFF]/.test(next)))

/** The beginning of `delta` that fits after `length` code units; it never splits a surrogate pair. */
export const fitting = (length: number, delta: string): string => {
  const room = longestText - length
  if (delta.length <= room) return delta
  return delta.slice(0, isHigh(delta.charCodeAt(room - 1)) ? room - 1 : room)
}

/** Joins each item that continues with the next one. `textOf` returns undefined for items that are not text. */
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
