/** What the specification shows is what the schemas say. */
import { readFileSync } from "node:fs"
import { assert, it } from "@effect/vitest"
import { Schema } from "effect"
import { Meta } from "../../packages/files/src/layout/Layout.ts"
import { EventRow, MessageRow } from "../../packages/transcript/src/row/Rows.ts"

const spec = readFileSync(new URL("../../specs/files.md", import.meta.url), "utf8")

/** The lines of the first fenced block after the text. */
const block = (after: string): ReadonlyArray<string> => {
  const [, body = ""] = /```jsonl?\n([^]*?)\n *```/.exec(spec.slice(spec.indexOf(after))) ?? []
  return body.split("\n").map((line) => line.trim())
}

const sameAs = <A, I>(schema: Schema.Schema<A, I>, line: string) =>
  assert.strictEqual(
    JSON.stringify(Schema.decodeUnknownSync(schema, { onExcessProperty: "error" })(JSON.parse(line))),
    line
  )

it("FL-4: the specification's messages are rows, every role among them", () => {
  const lines = block("### `messages.jsonl`")
  lines.forEach((line) => sameAs(MessageRow, line))
  assert.deepStrictEqual([...new Set(lines.map((line) => JSON.parse(line).role))].toSorted(), [
    "assistant",
    "system",
    "tool",
    "user"
  ])
})

it("FL-5: the specification's events are rows, every type among them", () => {
  const lines = block("### `events.jsonl`")
  lines.forEach((line) => sameAs(EventRow, line))
  assert.strictEqual(new Set(lines.map((line) => JSON.parse(line).type)).size, EventRow.members.length)
})

it("FI-12: the specification's meta.json is one", () => block("**FI-12**").forEach((line) => sameAs(Meta, line)))
