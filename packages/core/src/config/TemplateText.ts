/** A template's text with what was typed after its name. Pure. Spec: CF-18. */
import { Either, Schema } from "effect"

/** The text came out longer than a prompt may be. */
export class TemplateTooLong extends Schema.TaggedError<TemplateTooLong>("@daybook/core/TemplateTooLong")(
  "TemplateTooLong",
  { limit: Schema.Int }
) {
  override get message() {
    return `with its arguments the template has more than ${this.limit.toLocaleString("en")} characters`
  }
}

const limit = 1024 * 1024

/** Characters that mean nothing but themselves: outside quotes, and within either kind. */
const plain = { "": /[^\s"'\\]+/y, "'": /[^']+/y, '"': /[^"\\]+/y } as const

/**
 * Words as a shell splits them: at white space, except within quotes. Single quotes keep everything; in double quotes a
 * backslash keeps a quote or a backslash; elsewhere it keeps any character. A quote that is not closed ends with the text.
 */
export const splitWords = (text: string): ReadonlyArray<string> => {
  const words: Array<string> = []
  let quote: keyof typeof plain = ""
  // Undefined between words: an empty word is one.
  let word: string | undefined
  for (let index = 0; index < text.length; index++) {
    const run = plain[quote]
    run.lastIndex = index
    const [same] = run.exec(text) ?? []
    const character = text.charAt(index)
    const next = text.charAt(index + 1)
    if (same !== undefined) {
      word = (word ?? "") + same
      index += same.length - 1
    } else if (character === "\\") {
      const keeps = next !== "" && (quote === "" || next === '"' || next === "\\")
      word = (word ?? "") + (keeps ? next : character)
      if (keeps) index++
    } else if (character === quote) {
      quote = ""
    } else if (character === '"' || character === "'") {
      quote = character
      word ??= ""
    } else {
      // White space outside quotes: everything else has been taken.
      if (word !== undefined) words.push(word)
      word = undefined
    }
  }
  return word === undefined ? words : [...words, word]
}

/** A second dollar sign before it makes a placeholder plain text. */
const placeholder = /(\$?)\$(ARGUMENTS(?!\w)|[1-9](?!\d))/g

/**
 * Puts arguments in their places: `$ARGUMENTS` is all of them as typed, `$1` to `$9` are words; a word that was not given
 * is nothing. What is put in is not looked at again. A template without a place has them after it.
 */
export const expandTemplate = (body: string, argumentsText: string): Either.Either<string, TemplateTooLong> => {
  const typed = argumentsText.trim()
  const words = splitWords(typed)
  let [placed, length] = [false, body.length]
  const parts: Array<string> = []
  let from = 0
  for (const match of body.matchAll(placeholder)) {
    const [whole, escape, name = ""] = match
    if (escape === "") placed = true
    const value = escape === "" ? (name === "ARGUMENTS" ? typed : (words[Number(name) - 1] ?? "")) : `$${name}`
    length += value.length - whole.length
    // Before the text is put together: a few bytes of template can ask for very much of it.
    if (length > limit) return Either.left(new TemplateTooLong({ limit }))
    parts.push(body.slice(from, match.index), value)
    from = match.index + whole.length
  }
  const expanded = [...parts, body.slice(from)].join("")
  const text = placed || typed === "" ? expanded : `${expanded}\n\n${typed}`
  return text.length > limit ? Either.left(new TemplateTooLong({ limit })) : Either.right(text)
}
