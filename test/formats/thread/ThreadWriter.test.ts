/** Writes conversations as threads. Spec: FM-122..FM-124 in specs/formats.md. */
import { assert, it } from "@effect/vitest"
import { Chunk, Effect, FastCheck as fc, Stream, Struct } from "effect"
import type { Head, Item } from "../../../packages/formats/src/conversation/Conversation.ts"
import * as ThreadReader from "../../../packages/formats/src/thread/ThreadReader.ts"
import * as ThreadWriter from "../../../packages/formats/src/thread/ThreadWriter.ts"
import { cases } from "../../support/Cases.ts"
import { conversation, linesOf, metadata, recordsOf, threadID } from "../support/ThreadLogs.ts"

const createdAt = Date.parse(metadata.createdAt)
const head: Head = { _tag: "Head", dialect: "pi", id: "source", title: "Pods", createdAt, record: {} }
const at = (key: string, parent: string | null) => ({
  key,
  parent,
  time: createdAt,
  place: { line: 1, offset: 0 },
  record: {}
})

const written = (items: ReadonlyArray<Item>) => {
  const writer = ThreadWriter.make(threadID, head)
  const lines = items.flatMap(writer.add)
  return { lines: lines.map((line) => JSON.parse(line) as Record<string, unknown>), ...writer.end() }
}

it("FM-122: texts, calls and results become records in order, with the times of their items", () => {
  const { lines, metadata } = written([
    { _tag: "User", ...at("a", null), content: [{ type: "text", text: "hello" }] },
    {
      _tag: "Answer",
      ...at("b", "a"),
      time: createdAt + 5,
      provider: "anthropic",
      model: "sonnet",
      parts: [{ type: "call", id: "1", name: "bash", input: { command: "ls" } }]
    },
    { _tag: "Result", ...at("c", "b"), callID: "1", tool: "bash", content: [{ type: "text", text: "a" }], failed: true }
  ])
  const base = { recordType: "message", schemaVersion: 1 }
  const timestamp = "2025-02-11T10:00:00.000Z"
  assert.deepStrictEqual(lines, [
    { ...base, seq: 1, role: "user", content: [{ type: "text", text: "hello" }], timestamp },
    {
      ...base,
      seq: 2,
      role: "assistant",
      content: [{ type: "toolCall", id: "1", name: "bash", arguments: { command: "ls" } }],
      timestamp: "2025-02-11T10:00:00.005Z"
    },
    {
      ...base,
      seq: 3,
      role: "toolResult",
      content: [{ type: "text", text: "a" }],
      toolCallId: "1",
      toolName: "bash",
      isError: true,
      timestamp
    }
  ])
  assert.deepStrictEqual(metadata, {
    id: threadID,
    name: "Pods",
    createdAt: timestamp,
    lastMessageAt: "2025-02-11T10:00:00.005Z",
    model: "anthropic/sonnet",
    messageCount: 3,
    source: "interactive",
    nextSeq: 4
  })
})

it("FM-123: what the format cannot hold is counted by kind", () => {
  const spent = { input: 1, output: 1, reasoning: 0, cacheRead: 0, cacheWrite: 0, cost: 1 }
  const model = { provider: "p", model: "m" }
  const picture = { type: "media", mime: "image/png", data: "AAAA" } as const
  const { dropped, lines } = written([
    { _tag: "User", ...at("a", null), content: [picture, { type: "text", text: "see" }] },
    { _tag: "Answer", ...at("b", "a"), ...model, parts: [{ type: "reasoning", text: "hm" }], spent, finish: "stop" },
    { _tag: "Answer", ...at("c", "b"), ...model, model: "other", parts: [], aborted: true },
    { _tag: "Label", ...at("d", "c"), target: "a", label: "start" },
    { _tag: "Command", ...at("e", "d"), command: "ls", output: "", cancelled: false, hidden: true },
    { _tag: "ModelChange", ...at("f", "e"), ...model },
    { _tag: "Opaque", ...at("g", "f") }
  ])
  assert.strictEqual(lines.length, 3)
  assert.deepStrictEqual(dropped, {
    "error of an answer": 1,
    "finish reason": 1,
    "hidden command": 1,
    label: 1,
    media: 1,
    "model change": 1,
    "model of an answer": 1,
    "other record": 1,
    reasoning: 1,
    usage: 1
  })
})

it("FM-122: commands, notes and summaries of branches become messages of the user; a title renames", () => {
  const { lines, metadata } = written([
    {
      _tag: "Command",
      ...at("a", null),
      command: "cat x",
      output: "a ``` b",
      exitCode: 2,
      cancelled: false,
      hidden: false
    },
    { _tag: "Note", ...at("b", "a"), content: [{ type: "text", text: "a note" }] },
    { _tag: "BranchSummary", ...at("c", "b"), summary: "left" },
    { _tag: "Title", ...at("d", "c"), title: "Another" }
  ])
  const texts = lines.map(({ content }) => (content as ReadonlyArray<{ readonly text: string }>)[0]?.text)
  assert.deepStrictEqual(texts, [
    "Ran `cat x`\n````\na ``` b\n````\nExit code 2",
    "a note",
    "A branch of this conversation was left. Its summary:\n<summary>\nleft\n</summary>"
  ])
  assert.deepStrictEqual(lines.map(Struct.get("role")), ["user", "user", "user"])
  assert.strictEqual(metadata.name, "Another")
})

it.effect("FM-124: reading a thread and writing it again gives the same records", () =>
  Effect.promise(() =>
    fc.assert(
      fc.asyncProperty(conversation, fc.option(fc.nat()), async (messages, kept) => {
        const records = recordsOf(messages).map((record) =>
          record.recordType === "message" && record.role === "toolResult" ? { ...record, toolName: "a tool" } : record
        )
        const compaction = {
          recordType: "compaction",
          schemaVersion: 1,
          seq: records.length + 1,
          firstKeptSeq: 1 + ((kept ?? 0) % (records.length + 1)),
          summary: "before",
          tokensBefore: 3,
          readFiles: ["a"],
          modifiedFiles: [],
          timestamp: "2025-02-11T11:00:00.000Z"
        }
        const all = [...records, ...(kept === null ? [] : [compaction])]
        const bytes = Stream.make(Buffer.from(linesOf(all)))
        const pieces = await Effect.runPromise(
          bytes.pipe(ThreadReader.itemsOf("sonnet", 0, "recover"), Stream.runCollect)
        )
        const items = Chunk.toReadonlyArray(pieces).filter((piece) => piece._tag !== "Head" && piece._tag !== "Problem")
        assert.deepStrictEqual(
          written(items).lines,
          all.map((record) => JSON.parse(JSON.stringify(record)) as unknown)
        )
      }),
      { numRuns: cases(24) }
    )
  )
)
