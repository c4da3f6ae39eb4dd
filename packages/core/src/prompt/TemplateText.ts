/** Expands a template with the arguments after its name. Pure. Spec: CF-18, CF-48. */
import { Either, Schema } from "effect"

/** The expanded text is longer than a prompt may be. */
export class TemplateTooLong extends Schema.TaggedError<TemplateTooLong>("@daybook/core/TemplateTooLong")(
  "TemplateTooLong",
  { limit: Schema.Int }
) {
  override get message() {
    return `with its arguments the template has more than ${this.limit.toLocaleString("en")} characters`
  }
}

const limit = 1024 * 1024

/** Runs of literal characters: outside quotes, and within either kind. */
const plain = { "": /[^\s"'\\]+/y, "'": /[^']+/y, '"': /[^"\\]+/y } as const

/**
 * Splits words as a shell does: at white space, except within quotes. Single quotes keep everything. In double quotes,
 * a backslash escapes a quote or a backslash; outside quotes, it escapes any character. An unclosed quote ends with the
 * text.
 */
export const splitWords = (text: string): ReadonlyArray<string> => {
  const words: Array<string> = []
  let quote: keyof typeof plain = ""
  // Undefined between words: an empty word counts.
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
      // White space outside quotes; all other cases are handled above.
      if (word !== undefined) words.push(word)
      word = undefined
    }
  }
  return word === undefined ? words : [...words, word]
}

/** A second dollar sign before a placeholder makes it literal. */
const placeholder = /(\$?)\$(ARGUMENTS(?!\w)|[1-9](?!\d))/g

/**
 * Inserts arguments: `$ARGUMENTS` is the typed text, `$1` to `$9` are its words; a missing word is empty. Inserted text
 * is not expanded again. A template without a placeholder gets the arguments appended.
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
    // Checked before the text is built: a short template can expand to a huge text.
    if (length > limit) return Either.left(new TemplateTooLong({ limit }))
    parts.push(body.slice(from, match.index), value)
    from = match.index + whole.length
  }
  const expanded = [...parts, body.slice(from)].join("")
  const text = placed || typed === "" ? expanded : `${expanded}\n\n${typed}`
  return text.length > limit ? Either.left(new TemplateTooLong({ limit })) : Either.right(text)
}
