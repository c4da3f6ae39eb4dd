/**
 * Reads a query of words and filters, and writes it in the language of FTS5. Every text is a query or a clear error; no
 * text is a syntax error of FTS5. Pure. Spec: SE-30..SE-34.
 */
import { Either } from "effect"
import { InvalidInput } from "../domain/InvalidInput.ts"
import { Role } from "./Document.ts"

// Prepares texts for the index's tokenizer. The same steps apply to indexed texts and to queries. Pure. Spec: SE-12.

/** Scripts that are written without spaces between words. */
const unspaced =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/gu

/** Ends a word and shows nothing: a zero-width space. */
const border = "\u200b"

/** Makes each character of these scripts a word: a phrase of them then finds any part of a sentence. */
export const separated = (text: string): string => text.replace(unspaced, `${border}$&${border}`)

/** Removes what `separated` inserted. */
export const joined = (text: string): string => text.replaceAll(border, "")

/** Whether the text has a character that the tokenizer keeps. */
const hasWord = (text: string): boolean => /[\p{L}\p{N}\p{Co}]/u.test(text)

/** A string of the index's query language: one word, or a phrase of several. */
const quoted = (text: string): string => `"${separated(text).replaceAll("\0", " ").replaceAll('"', '""')}"`

export interface Term {
  readonly text: string
  /** Also words that begin with it; of a phrase, its last word. */
  readonly prefix: boolean
}

/** A filter by a column of the index. */
export interface Tag {
  readonly name: "tool" | "model" | "role"
  readonly value: string
}

/** A query. Values of one filter are alternatives; everything else must hold together. */
export interface Query {
  readonly terms: ReadonlyArray<Term>
  readonly tags: ReadonlyArray<Tag>
  readonly without: ReadonlyArray<Term | Tag>
  readonly sessions: ReadonlyArray<string>
  readonly titles: ReadonlyArray<string>
  readonly folders: ReadonlyArray<string>
  /** Milliseconds since the epoch, inclusive. */
  readonly after: number | undefined
  /** Exclusive. */
  readonly before: number | undefined
}

export const [lengthLimit, itemLimit] = [1_000, 32]

const filters = ["tool", "model", "role", "session", "title", "cwd", "after", "before"] as const

const refuse = (details: string) => Either.left(new InvalidInput({ field: "query", details }))

/** One item of a query: a word, a phrase or a filter, as written. */
interface Item {
  readonly negative: boolean
  readonly name: (typeof filters)[number] | undefined
  readonly value: string
  readonly prefix: boolean
}

const pattern = new RegExp(
  `(?<minus>-)?(?:(?<name>${filters.join("|")}):)?(?:"(?<phrase>[^"]*)"(?<star>\\*)?|(?<word>[^\\s"]+))`,
  "giy"
)

/** Splits a query. A quote without its partner separates words. */
const itemsOf = (text: string): ReadonlyArray<Item> => {
  const items: Array<Item> = []
  for (let at = 0; at < text.length;) {
    pattern.lastIndex = at
    const groups = pattern.exec(text)?.groups
    if (groups === undefined) {
      at += 1
      continue
    }
    at = pattern.lastIndex
    const { minus, name, phrase, star, word = "" } = groups
    const starred = phrase === undefined && word.endsWith("*")
    items.push({
      negative: minus !== undefined,
      name: filters.find((filter) => filter === name?.toLowerCase()),
      value: phrase ?? (starred ? word.slice(0, -1) : word),
      prefix: starred || star !== undefined
    })
  }
  return items
}

const day = 86_400_000
const spans: Readonly<Record<string, number>> = { h: day / 24, d: day, w: 7 * day }

/** A time as written: a date, a time, or an age such as `7d`. In UTC unless it names a zone. */
const timeOf = (value: string, now: number): number | undefined => {
  const [, count, unit = ""] = /^(\d{1,5})([hdw])$/.exec(value) ?? []
  if (count !== undefined) return now - Number(count) * (spans[unit] ?? 0)
  const parts =
    /^(\d{4})(?:-(\d{2})(?:-(\d{2})(?:T(\d{2}:\d{2}(?::\d{2}(?:\.\d{1,3})?)?)(Z|[+-]\d{2}:\d{2})?)?)?)?$/.exec(value)
  if (parts === null) return undefined
  const [, year, month = "01", date = "01", time = "00:00", zone = "Z"] = parts
  const at = Date.parse(`${year}-${month}-${date}T${time}${zone}`)
  // 2026-02-30 is not a day, but some engines accept it.
  const same = new Date(`${year}-${month}-${date}T00:00Z`)
  return Number.isNaN(at) || same.getUTCDate() !== Number(date) ? undefined : at
}

const mutable = () => ({
  terms: [] as Array<Term>,
  tags: [] as Array<Tag>,
  without: [] as Array<Term | Tag>,
  sessions: [] as Array<string>,
  titles: [] as Array<string>,
  folders: [] as Array<string>,
  after: undefined as number | undefined,
  before: undefined as number | undefined
})

type Building = ReturnType<typeof mutable>

/** Adds an item; the reason if it is not valid. */
const add = (query: Building, { name, negative, prefix, value }: Item, now: number): string | undefined => {
  switch (name) {
    case undefined: {
      if (hasWord(value)) (negative ? query.without : query.terms).push({ text: value, prefix })
      return undefined
    }
    case "tool":
    case "model": {
      if (!hasWord(value)) return `${name}: needs a name, for example ${name === "tool" ? "tool:bash" : "model:claude"}`
      ;(negative ? query.without : query.tags).push({ name, value })
      return undefined
    }
    case "role": {
      const role = Role.literals.find((literal) => literal === value.toLowerCase())
      if (role === undefined) return `role: is ${Role.literals.join(", ")}, not "${value}"`
      ;(negative ? query.without : query.tags).push({ name, value: role })
      return undefined
    }
    case "session":
    case "title":
    case "cwd": {
      if (negative) return `-${name}: is not supported; only words, tool:, model: and role: can be excluded`
      if (value.trim() === "") return `${name}: needs a value`
      query[name === "session" ? "sessions" : name === "title" ? "titles" : "folders"].push(value)
      return undefined
    }
    case "after":
    case "before": {
      if (negative) return `-${name}: is not supported; use ${name === "after" ? "before" : "after"}:`
      const time = timeOf(value, now)
      if (time === undefined)
        return `${name}: is a date such as 2026-01-31, a time such as 2026-01-31T12:00Z, or an age such as 7d`
      if (name === "after") query.after = Math.max(query.after ?? time, time)
      else query.before = Math.min(query.before ?? time, time)
      return undefined
    }
  }
}

const isEmpty = ({ after, before, folders, sessions, tags, terms, titles, without }: Building) =>
  [folders, sessions, tags, terms, titles, without].every(({ length }) => length === 0) &&
  after === undefined &&
  before === undefined

/** Reads a query. `now` is for ages, in milliseconds since the epoch. */
export const parse = (text: string, now: number): Either.Either<Query, InvalidInput> => {
  if (text.length > lengthLimit) return refuse(`use ${lengthLimit} characters at most`)
  const items = itemsOf(text)
  if (items.length > itemLimit) return refuse(`use ${itemLimit} words and filters at most`)
  const query = mutable()
  for (const item of items) {
    const reason = add(query, item, now)
    if (reason !== undefined) return refuse(reason)
  }
  return isEmpty(query)
    ? refuse("give a word with a letter or a digit, or a filter such as tool:bash")
    : Either.right(query)
}

const termText = ({ prefix, text }: Term): string => `text : ${quoted(text)}${prefix ? " *" : ""}`

/** How a document is tagged with its role and its session. */
export const roleTag = (role: Role): string => `r${role}`
export const sessionTag = (session: number): string => `s${session}`

const tagText = ({ name, value }: Tag): string => (name === "role" ? `tag : "r${value}"` : `${name} : ${quoted(value)}`)

const anyOf = (texts: ReadonlyArray<string>): ReadonlyArray<string> =>
  texts.length === 0 ? [] : [texts.length === 1 ? (texts[0] ?? "") : `(${texts.join(" OR ")})`]

/** The query in the language of FTS5; with session numbers, only those sessions. */
export const matchText = (query: Query, sessions?: ReadonlyArray<number>): string => {
  const named = (name: Tag["name"]) => anyOf(query.tags.filter((tag) => tag.name === name).map(tagText))
  const needed = [
    ...query.terms.map(termText),
    ...named("tool"),
    ...named("model"),
    ...named("role"),
    ...anyOf((sessions ?? []).map((session) => `tag : "${sessionTag(session)}"`))
  ]
  // Every document has a role.
  const all = needed.length > 0 ? needed : anyOf(Role.literals.map((role) => `tag : "${roleTag(role)}"`))
  const excluded = query.without.map((each) => ("name" in each ? tagText(each) : termText(each)))
  return excluded.length === 0 ? all.join(" AND ") : `(${all.join(" AND ")}) NOT (${excluded.join(" OR ")})`
}

/** The words in the order of the query, next to each other; undefined for fewer than two plain words. */
export const phraseText = ({ terms }: Query): string | undefined =>
  terms.length < 2
    ? undefined
    : termText({ text: terms.map(({ text }) => text).join(" "), prefix: terms.at(-1)?.prefix ?? false })

/** A query for the words alone, any of them: for marking them in a text. */
export const markText = ({ terms }: Query): string | undefined =>
  terms.length === 0 ? undefined : terms.map(({ prefix, text }) => `${quoted(text)}${prefix ? " *" : ""}`).join(" OR ")

/** Prompts with words that begin with each of the given ones; undefined for all prompts. */
export const promptText = (words: ReadonlyArray<string>): string | undefined => {
  const terms = words.filter(hasWord).map((text) => termText({ text, prefix: true }))
  return terms.length === 0 ? undefined : [`tag : "${roleTag("user")}"`, ...terms].join(" AND ")
}
