/** Builds entries for tests in few words: `chain` gives ids, parents and times. */
import { type Entry, entryOf } from "../../../packages/formats/src/entry/Entry.ts"

export type Json = Readonly<Record<string, unknown>>

export const startedAt = "2026-02-16T10:20:30.000Z"
const start = Date.parse(startedAt)

export const header = {
  type: "session",
  version: 3,
  id: "1f9d2a6b9c0d1234",
  timestamp: startedAt,
  cwd: "/work/pi"
} satisfies Json

/** Records that follow each other, a second apart: e1, e2 and so on. A body may name its id, parent or time. */
export const chain = (...bodies: ReadonlyArray<Json>): ReadonlyArray<Json> => {
  let parentId: unknown = null
  return bodies.map((body, n) => {
    const record = {
      type: body["type"],
      id: `e${n + 1}`,
      parentId,
      timestamp: new Date(start + n * 1000).toISOString(),
      ...body
    }
    parentId = record.id
    return record
  })
}

export const entries = (...bodies: ReadonlyArray<Json>): ReadonlyArray<Entry> => chain(...bodies).map(entryOf)

export const message = (message: Json, more: Json = {}): Json => ({ type: "message", message, ...more })
export const user = (content: unknown, more: Json = {}): Json => message({ role: "user", content }, more)
export const answer = (text: string, model = "claude", more: Json = {}): Json =>
  message({ role: "assistant", provider: "anthropic", model, content: [{ type: "text", text }] }, more)
export const compaction = (summary: string, firstKeptEntryId?: string, more: Json = {}): Json => ({
  type: "compaction",
  summary,
  ...(firstKeptEntryId === undefined ? {} : { firstKeptEntryId }),
  tokensBefore: 42,
  ...more
})

/** The file of these records: an object becomes a line of JSON, a text a line as it is. */
export const fileOf = (...records: ReadonlyArray<Json | string>): string =>
  records.map((record) => `${typeof record === "string" ? record : JSON.stringify(record)}\n`).join("")
