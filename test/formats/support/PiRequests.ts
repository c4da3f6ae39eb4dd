/** The request that pi makes of a log: its own context of the records. */
import { entryOf } from "../../../packages/formats/src/entry/Entry.ts"
import * as SessionContext from "../../../packages/formats/src/entry/SessionContext.ts"
import type { JsonRecord } from "../../../packages/log/src/domain/Json.ts"

/** What pi would send after opening the log: the words of each message, or the call of a result. */
export const requestOf = (log: string): ReadonlyArray<string> => {
  const records = log
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as JsonRecord)
  return SessionContext.build(records.slice(1).map(entryOf)).messages.map((message: JsonRecord) => {
    if (message["role"] === "toolResult") return `result ${String(message["toolCallId"])}`
    const { content } = message
    const calls = Array.isArray(content)
      ? content.flatMap((part: JsonRecord) => (part["type"] === "toolCall" ? [` calls ${String(part["id"])}`] : []))
      : []
    const text = Array.isArray(content)
      ? content.flatMap((part: JsonRecord) => (part["type"] === "text" ? [String(part["text"])] : [])).join("")
      : String(content)
    return `${text}${calls.join("")}`
  })
}

/** The results that do not follow the answer with their call. */
export const orphansOf = (request: ReadonlyArray<string>): ReadonlyArray<string> => {
  let called = ""
  return request.filter((shown) => {
    if (!shown.startsWith("result ")) called = shown
    return shown.startsWith("result ") && !called.includes(`calls ${shown.slice("result ".length)}`)
  })
}
