/**
 * Thinking that a server leaves in the text, because it lacks the parser of its model: leading `<think>` tags, and the channels of
 * gpt-oss. Only what opens the text counts: later a tag is something that is said. Spec: MD-140, MD-141 in specs/models.md.
 */

export type Kind = "text" | "reasoning"

export interface Piece {
  readonly kind: Kind
  readonly words: string
}

/** What opens thinking or, in channels, text; and what closes it. */
interface Section {
  readonly kind: Kind
  readonly closings: ReadonlyArray<string>
}

const names = ["think", "thinking", "thought", "reasoning", "seed:think"]
const openings = new Map(names.map((name) => [`<${name}>`, `</${name}>`]))
const channel = /^(?:<\|start\|>\w*)?<\|channel\|>(\w*)[^|]{0,80}(?:<\|constrain\|>\w*)?<\|message\|>/
const channelEnds = ["<|end|>", "<|return|>", "<|call|>"]
/** More than the head of a channel, up to its message. */
const longestHead = 200

export class Tags {
  /** Text that may be a part of a tag. */
  #held = ""
  #section: Section | undefined
  /** Whether a tag was read, so that blanks before the text belong to it. */
  #tagged = false
  #isPlain = false

  /** The pieces that these words complete. */
  feed(words: string): ReadonlyArray<Piece> {
    if (this.#isPlain) return [{ kind: "text", words }]
    this.#held += words
    const pieces: Array<Piece> = []
    for (let goes = true; goes;) goes = this.#section === undefined ? this.#opens(pieces) : this.#continues(pieces)
    return pieces
  }

  /** What is held, as nothing follows it. What opens after it is a text. */
  end(): ReadonlyArray<Piece> {
    const words = this.#held
    const kind = this.#section?.kind ?? "text"
    this.#held = ""
    this.#section = undefined
    this.#isPlain = this.#isPlain || this.#tagged || words !== ""
    return words === "" ? [] : [{ kind, words }]
  }

  /** Reads an opening; false if more is needed, or the text is plain. */
  #opens(pieces: Array<Piece>): boolean {
    const text = this.#held.trimStart()
    const [tag, closing] = [...openings].find(([opening]) => text.startsWith(opening)) ?? []
    if (tag !== undefined && closing !== undefined) return this.#begin(text.slice(tag.length), "reasoning", [closing])
    const head = channel.exec(text)
    if (head !== null)
      return this.#begin(text.slice(head[0].length), head[1] === "analysis" ? "reasoning" : "text", channelEnds)
    // A template may have opened the tag in the prompt.
    const lone = [...openings.values()].find((one) => text.startsWith(one))
    if (lone !== undefined) {
      this.#held = text.slice(lone.length)
      this.#tagged = true
      return true
    }
    if (this.#held.length < longestHead && mayOpen(text)) return false
    pieces.push({ kind: "text", words: this.#tagged ? text : this.#held })
    this.#held = ""
    this.#isPlain = true
    return false
  }

  #begin(rest: string, kind: Kind, closings: ReadonlyArray<string>): boolean {
    this.#held = rest.trimStart()
    this.#section = { kind, closings }
    this.#tagged = true
    return true
  }

  /** Reads a section up to its closing; false if more is needed. */
  #continues(pieces: Array<Piece>): boolean {
    const { closings, kind } = this.#section ?? { closings: [], kind: "text" }
    const ends = closings.flatMap((closing) => {
      const at = this.#held.indexOf(closing)
      return at < 0 ? [] : [{ at, closing }]
    })
    const [first] = ends.toSorted((a, b) => a.at - b.at)
    const until = first?.at ?? this.#held.length - partOf(this.#held, closings)
    if (until > 0) pieces.push({ kind, words: this.#held.slice(0, until) })
    this.#held = this.#held.slice(until + (first?.closing.length ?? 0))
    if (first === undefined) return false
    this.#section = undefined
    return true
  }
}

const mayOpen = (text: string): boolean =>
  text === "" ||
  text.startsWith("<|") ||
  [...openings].flat().some((tag) => tag.startsWith(text)) ||
  "<|".startsWith(text)

/** The length of the end of a text that may begin a closing. */
const partOf = (text: string, closings: ReadonlyArray<string>): number => {
  for (let length = Math.min(text.length, 16); length > 0; length--) {
    const end = text.slice(-length)
    if (closings.some((closing) => closing.length > length && closing.startsWith(end))) return length
  }
  return 0
}
