/** When a thread is compacted, and where. Spec: FM-108..FM-110 in specs/formats.md. */
import { assert, it } from "@effect/vitest"
import { Effect, Layer, Struct } from "effect"
import * as Identifiers from "../../../packages/log/src/domain/Identifiers.ts"
import * as MemorySessionStorage from "../../../packages/formats/src/storage/MemorySessionStorage.ts"
import {
  defaultSettings,
  filesOf,
  isDue,
  planOf,
  tokensOf,
  totalTokens
} from "../../../packages/formats/src/thread/ThreadCompaction.ts"
import type { ThreadMessage, ThreadRecord } from "../../../packages/formats/src/thread/ThreadRecord.ts"
import * as ThreadStore from "../../../packages/formats/src/thread/ThreadStore.ts"
import { recordsOf } from "../support/ThreadLogs.ts"

const text = (role: "user" | "assistant", text: string): ThreadMessage => ({ role, content: [{ type: "text", text }] })
const user = (words: string) => text("user", words)
const answer = (words: string) => text("assistant", words)
const settings = { enabled: true, reserveTokens: 0, keepRecentTokens: 10 }

/** The sequence number that a compaction keeps first. */
const kept = (records: ReadonlyArray<ThreadRecord>, keepRecentTokens: number) =>
  planOf(records, { ...settings, keepRecentTokens })?.firstKeptSeq

it("FM-108: a token is four characters, rounded up, with the names and arguments of calls", () => {
  assert.strictEqual(tokensOf(user("12345")), 2)
  assert.strictEqual(tokensOf(user("")), 0)
  const call = { type: "toolCall", id: "1", name: "bash", arguments: { a: 1 } } as const
  assert.strictEqual(tokensOf({ content: [{ type: "text", text: "12" }, call] }), Math.ceil((2 + 4 + 7) / 4))
})

it("FM-108: a context is due above the window less the reserve, not at it; disabled, it never is", () => {
  assert.deepStrictEqual(defaultSettings, { enabled: true, reserveTokens: 16384, keepRecentTokens: 20000 })
  assert.isFalse(isDue(200_000 - 16_384, 200_000, defaultSettings))
  assert.isTrue(isDue(200_000 - 16_383, 200_000, defaultSettings))
  assert.isFalse(isDue(300_000, 200_000, { ...defaultSettings, enabled: false }))
})

it("FM-109: the newest messages that reach the limit are kept, from the next boundary on", () => {
  const records = recordsOf([
    user("1".repeat(40)),
    answer("2".repeat(40)),
    user("3".repeat(40)),
    answer("4".repeat(20))
  ])
  assert.strictEqual(kept(records, 5), 4)
  assert.strictEqual(kept(records, 6), 3)
  assert.strictEqual(kept(records, 15), 3)
  assert.strictEqual(kept(records, 16), 2)
  assert.isUndefined(kept(records, 1000), "everything is recent")
  assert.isUndefined(kept(records, 35), "nothing is left to summarize")
})

it("FM-109: an answer whose calls have no result begins no kept part", () => {
  const call: ThreadMessage = {
    role: "assistant",
    content: [{ type: "toolCall", id: "1", name: "bash", arguments: {} }]
  }
  const records = recordsOf([user("1".repeat(40)), answer("2".repeat(40)), user("3"), call])
  assert.strictEqual(kept(records, 1), 3)
})

it("FM-110: a later compaction summarizes from the first message that the earlier one kept", () => {
  const first = recordsOf([user("1".repeat(40)), answer("2".repeat(40)), user("3".repeat(40))])
  const compaction: ThreadRecord = {
    recordType: "compaction",
    schemaVersion: 1,
    seq: 4,
    firstKeptSeq: 2,
    summary: "",
    tokensBefore: 10,
    readFiles: ["a"],
    modifiedFiles: [],
    timestamp: "2025-02-11T11:00:00Z"
  }
  const plan = planOf([...first, compaction, ...recordsOf([answer("5".repeat(40)), user("6".repeat(40))], 5)], settings)
  assert.deepStrictEqual(plan?.summarized.map(Struct.get("seq")), [2, 3, 5])
  assert.strictEqual(plan?.firstKeptSeq, 6)
  assert.strictEqual(plan?.tokensBefore, totalTokens(plan?.summarized ?? []))
  assert.deepStrictEqual(plan?.files.readFiles, ["a"])
})

it("FM-111: paths that cannot stand on a line between tags, and other tools, are not listed", () => {
  const calls = [
    ["read", "ok"],
    ["read", "two\nlines"],
    ["write", "<tag>"],
    ["bash", "x"],
    ["read", 7],
    ["edit", ""]
  ] as const
  const messages = recordsOf(
    calls.map(([name, path]): ThreadMessage => ({
      role: "assistant",
      content: [{ type: "toolCall", id: "1", name, arguments: { path } }]
    }))
  ).filter((record) => record.recordType === "message")
  assert.deepStrictEqual(filesOf(messages), { readFiles: ["ok"], modifiedFiles: [] })
})

const threads = ThreadStore.layer("/threads").pipe(
  Layer.provide(Layer.merge(MemorySessionStorage.layer, Identifiers.layer))
)
const summary = "## Goal\n## Progress\n## Key Decisions\n## Next Steps\n## Critical Context"

it.scoped("FM-108: a turn's context is compacted once if it exceeds the window, and as it is otherwise", () =>
  Effect.gen(function* () {
    const store = yield* ThreadStore.ThreadStore
    const thread = yield* store.open((yield* store.create({ model: "sonnet" })).id)
    yield* thread.append([user("1".repeat(400)), answer("2".repeat(400)), user("3".repeat(400))])
    let asked = 0
    const summarize = () => Effect.sync(() => (asked++, summary))
    const small = { settings: { ...settings, keepRecentTokens: 100 }, summarize }
    assert.strictEqual((yield* thread.prepare({ ...small, contextWindow: 300 })).length, 3)
    assert.strictEqual(asked, 0)
    const prepared = yield* thread.prepare({ ...small, contextWindow: 50 })
    assert.strictEqual(prepared.length, 2)
    assert.deepStrictEqual(prepared[1], user("3".repeat(400)))
    assert.strictEqual(asked, 1)
    assert.strictEqual((yield* thread.prepare({ ...small, contextWindow: 50 })).length, 2)
    assert.strictEqual(asked, 1)
  }).pipe(Effect.provide(threads))
)
