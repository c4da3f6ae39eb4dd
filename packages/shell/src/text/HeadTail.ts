/**
 * Keeps the beginning and the end of a text that is too long, in bounded memory, and counts the rest. Pure; a mutable
 * accumulator. Used for streams and for single lines. Spec: SL-42.
 */

/** What was kept of a text. */
export interface Kept {
  readonly head: string
  /** Follows `head`, after `omitted` characters. */
  readonly tail: string
  /** Characters between `head` and `tail`. */
  readonly omitted: number
}

const isHigh = (code: number): boolean => code >= 0xd800 && code <= 0xdbff
const isLow = (code: number): boolean => code >= 0xdc00 && code <= 0xdfff

/** The first characters of a text, without half of a surrogate pair at the end. */
export const firstOf = (text: string, length: number): string => {
  const head = text.slice(0, length)
  return head.length < text.length && isHigh(head.charCodeAt(head.length - 1)) ? head.slice(0, -1) : head
}

/** The last characters of a text, without half of a surrogate pair at the beginning. */
export const lastOf = (text: string, length: number): string => {
  const tail = text.slice(Math.max(0, text.length - length))
  return tail.length < text.length && isLow(tail.charCodeAt(0)) ? tail.slice(1) : tail
}

/** A copy that does not keep the text alive that it is a part of. */
export const detached = (text: string): string => (text.length < 16 ? text : ` ${text}`.slice(1))

/** A tail of up to this length is not shortened: shortening copies it. */
const shortTail = 32_768

export class HeadTail {
  private readonly limit: number
  private readonly headLength: number
  private readonly tailLength: number
  private head = ""
  private tail = ""
  /** Characters of the whole text. */
  length = 0

  /** Keeps at most `limit` characters: a text of up to that length is whole. */
  constructor(limit: number) {
    this.limit = limit
    this.headLength = Math.ceil(limit / 2)
    this.tailLength = limit - this.headLength
  }

  add(text: string): void {
    this.length += text.length
    const room = this.headLength - this.head.length
    if (room > 0) this.head += detached(text.slice(0, room))
    if (room >= text.length) return
    const rest = room > 0 ? text.slice(room) : text
    // One character more shows whether the first is half of a pair.
    if (rest.length > this.tailLength) this.tail = detached(rest.slice(-this.tailLength - 1))
    else this.tail += detached(rest)
    if (this.tail.length > Math.max(2 * this.tailLength, shortTail)) {
      this.tail = detached(this.tail.slice(-this.tailLength - 1))
    }
  }

  /** What is kept now. */
  kept(): Kept {
    if (this.length <= this.limit) return { head: this.head + this.tail, tail: "", omitted: 0 }
    const head = firstOf(this.head + this.tail.slice(0, 1), this.headLength)
    const tail = lastOf(this.tail, this.tailLength)
    return { head, tail, omitted: this.length - head.length - tail.length }
  }
}
