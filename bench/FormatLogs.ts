/** Writes entry logs for the benchmarks: exchanges with a call each, and a compaction now and then. */
import { closeSync, openSync, writeSync } from "node:fs"

/** Characters of a record's text: with the other fields, a record has some 2.4 KB, as in logs of pi. */
const textChars = 2_000
const compactEvery = 2_000

const usage = {
  input: 1200,
  output: 80,
  cacheRead: 300,
  cacheWrite: 20,
  totalTokens: 1600,
  cost: { input: 0.0036, output: 0.0012, cacheRead: 0.0001, cacheWrite: 0.0001, total: 0.005 }
}
const words = "The workspace holds a readme, a licence, four packages and their tests, as the listing above shows. "
const text = words.repeat(Math.ceil(textChars / words.length)).slice(0, textChars)

const start = Date.UTC(2026, 1, 16)

/** Writes a log of pi with so many entries. */
export const write = (path: string, entries: number): void => {
  const file = openSync(path, "w")
  let lines: Array<string> = []
  let [count, parent]: [number, string | null] = [0, null]
  const line = (record: object) => lines.push(`${JSON.stringify(record)}\n`)
  const add = (type: string, fields: object) => {
    const id = (++count).toString(16).padStart(8, "0")
    line({ type, id, parentId: parent, timestamp: new Date(start + count * 1000).toISOString(), ...fields })
    parent = id
  }
  const message = (fields: object) => add("message", { message: { ...fields, timestamp: start + count * 1000 } })
  const answer = { api: "anthropic-messages", provider: "anthropic", model: "claude-sonnet-4-5", usage }
  line({ type: "session", version: 3, id: `bench-${entries}`, timestamp: new Date(start).toISOString(), cwd: "/tmp" })
  for (let n = count; n < entries; n = count) {
    message({ role: "user", content: [{ type: "text", text: `${n} ${text}` }] })
    message({
      role: "assistant",
      content: [
        { type: "text", text: `I look at ${n}. ${text}` },
        { type: "toolCall", id: `call_${n}`, name: "bash", arguments: { command: `ls ${n}` } }
      ],
      ...answer,
      stopReason: "toolUse"
    })
    message({
      role: "toolResult",
      toolCallId: `call_${n}`,
      toolName: "bash",
      content: [{ type: "text", text: `${n} ${text}` }],
      isError: false
    })
    message({ role: "assistant", content: [{ type: "text", text: `${n} ${text}` }], ...answer, stopReason: "stop" })
    if (Math.floor(n / compactEvery) < Math.floor(count / compactEvery)) {
      const firstKeptEntryId = (count - 19).toString(16).padStart(8, "0")
      add("compaction", { summary: text, firstKeptEntryId, tokensBefore: 100_000 })
    }
    if (lines.length > 500) {
      writeSync(file, lines.join(""))
      lines = []
    }
  }
  writeSync(file, lines.join(""))
  closeSync(file)
}
