/**
 * What the first bytes of an entry log say about a session, for lists: the header, the title, the first prompt. Pure. Spec:
 * FM-92 (OP-3).
 */
import { Option, Predicate, Schema } from "effect"
import { isHeader, isTitleSlot, readHeader, timeOf } from "../entry/Header.ts"
import type { FileStart } from "../storage/SessionStorage.ts"
import { oneLine, shortName } from "./LogName.ts"

/** Bytes that are read of a log for a list. */
export const prefixBytes = 4096

/** A log in a list. */
export const LogSummary = Schema.Struct({
  path: Schema.String,
  id: Schema.String,
  /** Title, else first prompt, else id; at most 40 characters. */
  name: Schema.String,
  cwd: Schema.optionalWith(Schema.String, { exact: true }),
  parent: Schema.optionalWith(Schema.String, { exact: true }),
  /** Milliseconds since the epoch. */
  createdAt: Schema.Finite,
  modifiedAt: Schema.Finite,
  sizeBytes: Schema.NonNegativeInt,
  /** The prefix shows a message. */
  hasMessages: Schema.Boolean
})
export type LogSummary = typeof LogSummary.Type

type JsonRecord = Readonly<Record<string, unknown>>

const parsed = (line: string): ReadonlyArray<JsonRecord> => {
  if (!line.startsWith("{")) return []
  try {
    const value: unknown = JSON.parse(line)
    return Predicate.isReadonlyRecord(value) ? [value] : []
  } catch {
    return []
  }
}

const contentText = (content: unknown): string | undefined => {
  if (Predicate.isString(content)) return content
  if (!Array.isArray(content)) return undefined
  const block: unknown = content.find((part) => Predicate.isRecord(part) && part["type"] === "text")
  return Predicate.isRecord(block) && Predicate.isString(block["text"]) ? block["text"] : undefined
}

/** The text of the first prompt in a line that the prefix cuts. */
const cutPrompt = (line: string): string | undefined => {
  if (!/^\{"type":"message",.*?"role":"user"/.test(line)) return undefined
  const text = /"(?:text|content)":"((?:[^"\\]|\\.)*)/.exec(line)?.[1]
  return text === undefined ? undefined : parsedText(text)
}

const parsedText = (escaped: string): string | undefined => {
  try {
    const text: unknown = JSON.parse(`"${escaped.replace(/\\u[0-9a-fA-F]{0,3}$/, "")}"`)
    return Predicate.isString(text) ? text : undefined
  } catch {
    return undefined
  }
}

const roleOf = ({ message, type }: JsonRecord): unknown =>
  type === "message" && Predicate.isReadonlyRecord(message) ? message["role"] : undefined

/** The lines that hold a word. The text is not divided into all its lines. */
function* linesWith(text: string, word: string): Generator<string> {
  for (let at = text.indexOf(word); at >= 0;) {
    const end = text.indexOf("\n", at)
    yield text.slice(text.lastIndexOf("\n", at) + 1, end < 0 ? undefined : end).trim()
    at = end < 0 ? end : text.indexOf(word, end)
  }
}

/** The text of the first prompt. Only lines that may hold it are parsed. */
const promptOf = (entries: string, cut: string): string | undefined => {
  for (const line of linesWith(entries, '"user"')) {
    const [record] = parsed(line)
    if (record === undefined || roleOf(record) !== "user") continue
    const { message } = record
    return Predicate.isReadonlyRecord(message) ? contentText(message["content"]) : undefined
  }
  return cutPrompt(cut)
}

/** The latest title that an entry gives. */
const titleIn = (entries: string): string | undefined => {
  // A short word is found fastest; the type says whether it is one.
  const titles = [...linesWith(entries, '_info"')]
    .flatMap(parsed)
    .flatMap(({ name, type }) =>
      type === "session_info" && Predicate.isString(name) && name.trim() !== "" ? [name] : []
    )
  return titles.at(-1)
}

const isMessage = (text: string): boolean => text.includes('"type":"message"')

/** The start of a text as one line: a name needs no more. */
const lineOf = (text: string) => oneLine(text.slice(0, 400))

/** The first line that is not blank, and what follows it. */
const firstLine = (text: string): readonly [line: string, rest: string] => {
  const written = text.trimStart()
  const end = written.indexOf("\n")
  return end < 0 ? [written.trim(), ""] : [written.slice(0, end).trim(), written.slice(end + 1)]
}

/** Reads the start of a file; undefined if it does not begin an entry log. */
export const summaryOf = (path: string, { modifiedAt, sizeBytes, text }: FileStart): LogSummary | undefined => {
  const whole = sizeBytes > prefixBytes ? text.lastIndexOf("\n") + 1 : text.length
  // A byte order mark is white space.
  const [line, others] = firstLine(text.slice(0, whole))
  const [first] = parsed(line)
  const slot = first !== undefined && isTitleSlot(first) ? first : undefined
  const [second, afterSlot] = slot === undefined ? ["", ""] : firstLine(others)
  const header = slot === undefined ? first : parsed(second)[0]
  if (header === undefined || !isHeader(header)) return undefined
  const [entries, cut] = [slot === undefined ? others : afterSlot, text.slice(whole)]
  const { cwd, id, parent, title } = readHeader(header, slot)
  const named = (text: string | undefined) => Option.flatMap(Option.fromNullable(text), lineOf)
  const name = named(titleIn(entries)).pipe(
    Option.orElse(() => named(title)),
    Option.orElse(() => named(promptOf(entries, cut))),
    Option.getOrElse(() => id)
  )
  return {
    path,
    id,
    name: shortName(name),
    ...(cwd === undefined ? {} : { cwd }),
    ...(parent === undefined ? {} : { parent }),
    createdAt: timeOf(header["timestamp"]) ?? modifiedAt,
    modifiedAt,
    sizeBytes,
    hasMessages: isMessage(entries) || isMessage(cut)
  }
}
