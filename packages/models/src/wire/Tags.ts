/**
 * Thinking that a server leaves in the text, because it lacks the parser of its model: leading `<think>` tags, and the channels of
 * gpt-oss. Only what opens the text counts: later a tag is something that is said. Spec: MD-140, MD-141 in specs/models.md.
 */

export type Kind = "text" | "reasoning"

export interface Piece {
  readonly kind: Kind
  readonly words: string
}

interface Section {
  readonly kind: Kind
  readonly closing: RegExp
}

/** Also in the brackets of Magistral and of Kimi. */
const tag = /^([<[◁])(\/?)(think|thinking|thought|reasoning|seed:think|THINK)([>\]▷])/
const channel = /^(?:<\|start\|>\w*)?<\|channel\|>(\w*)[^|]{0,80}(?:<\|constrain\|>\w*)?<\|message\|>/
const gemmaChannel = /^<\|channel>(\w*)\n/
const channelEnd = /<\|(?:end|return|call)\|>|<channel\|>/
/** The beginning of a tag, or of the head of a channel. */
const begun = /^(?:[<[◁]\/?[a-zA-Z:]*|<\|[^]{0,200})?$/
/** The end of a text that may begin a closing. */
const closes = /[<[◁][^<>[\]◁▷]{0,15}$/

const escaped = (text: string): string => text.replaceAll(/[[\]]/g, "\\$&")

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
    const [opening, left = "", slash, name, right = ""] = tag.exec(text) ?? []
    const [head, channelName] = channel.exec(text) ?? gemmaChannel.exec(text) ?? []
    if (opening !== undefined) {
      // A closing alone: a template opened the tag in the prompt.
      const closing = new RegExp(`${escaped(left)}/${name}${escaped(right)}`)
      this.#section = slash === "" ? { kind: "reasoning", closing } : undefined
    } else if (head !== undefined) {
      const isThought = channelName === "analysis" || channelName === "thought"
      this.#section = { kind: isThought ? "reasoning" : "text", closing: channelEnd }
    } else {
      if (begun.test(text)) return false
      pieces.push({ kind: "text", words: this.#tagged ? text : this.#held })
      this.#held = ""
      this.#isPlain = true
      return false
    }
    this.#held = text.slice((opening ?? head ?? "").length).trimStart()
    this.#tagged = true
    return true
  }

  /** Reads a section up to its closing; false if more is needed. */
  #continues(pieces: Array<Piece>): boolean {
    const { closing = channelEnd, kind = "text" } = this.#section ?? {}
    const end = closing.exec(this.#held)
    const until = (end ?? closes.exec(this.#held))?.index ?? this.#held.length
    if (until > 0) pieces.push({ kind, words: this.#held.slice(0, until) })
    this.#held = this.#held.slice(until + (end?.[0].length ?? 0))
    if (end !== null) this.#section = undefined
    return end !== null
  }
}
