/**
 * What the first bytes of an entry log say about a session, for lists: the header, the title, the first prompt. Pure. Spec:
 * FM-92 (OP-3).
 */
import { Option, Predicate, Schema } from "effect"
import { isHeader, isTitleSlot, readHeader, timeOf } from "../entry/Header.ts"
import { logEnding, oneLine, shortName } from "./LogName.ts"

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

const promptOf = (records: ReadonlyArray<JsonRecord>, cut: string): string | undefined => {
  const record = records.find((one) => roleOf(one) === "user")
  const message = record?.["message"]
  return (Predicate.isReadonlyRecord(message) ? contentText(message["content"]) : undefined) ?? cutPrompt(cut)
}

const titleIn = (records: ReadonlyArray<JsonRecord>): string | undefined => {
  const info = records.findLast(
    ({ name, type }) => type === "session_info" && Predicate.isString(name) && name.trim() !== ""
  )
  return Predicate.isString(info?.["name"]) ? info["name"] : undefined
}

/** Reads a prefix; undefined if it does not begin an entry log. */
export const summaryOf = (
  path: string,
  prefix: string,
  { modifiedAt, sizeBytes }: { readonly modifiedAt: number; readonly sizeBytes: number }
): LogSummary | undefined => {
  const lines = prefix.replace(/^\uFEFF/, "").split("\n")
  const cut = sizeBytes > prefixBytes ? (lines.pop() ?? "") : ""
  const records = lines.flatMap((line) => parsed(line.trim()))
  const slot = records[0] !== undefined && isTitleSlot(records[0]) ? records[0] : undefined
  const header = records[slot === undefined ? 0 : 1]
  if (header === undefined || !isHeader(header)) return undefined
  const { cwd, id, parent, title } = readHeader(header, slot)
  const names = [
    titleIn(records),
    title,
    promptOf(records, cut),
    id,
    path.slice(path.lastIndexOf("/") + 1, -logEnding.length)
  ]
  const name = Option.firstSomeOf(names.map((text) => Option.flatMap(Option.fromNullable(text), oneLine)))
  return {
    path,
    id,
    name: shortName(Option.getOrElse(name, () => id)),
    ...(cwd === undefined ? {} : { cwd }),
    ...(parent === undefined ? {} : { parent }),
    createdAt: timeOf(header["timestamp"]) ?? modifiedAt,
    modifiedAt,
    sizeBytes,
    hasMessages: records.some((record) => roleOf(record) !== undefined) || cut.startsWith('{"type":"message"')
  }
}
