/** Tests the reading of entry logs. Spec: FM-10..FM-19 in specs/formats.md. */
import { assert, describe, it } from "@effect/vitest"
import { Chunk, Effect, Stream } from "effect"
import type * as Conversation from "../../../packages/formats/src/conversation/Conversation.ts"
import * as EntryReader from "../../../packages/formats/src/entry/EntryReader.ts"

type Json = Readonly<Record<string, unknown>>

const at = "2026-02-16T10:20:30.000Z"
const header = { type: "session", version: 3, id: "1f9d2a6b9c0d1234", timestamp: at, cwd: "/work/pi" }

/** A chain of entries: each follows the one before it, unless it names a parent. */
const chained = (...bodies: ReadonlyArray<Json>): ReadonlyArray<Json> =>
  bodies.map((body, n) => ({
    id: `e${n + 1}`,
    parentId: n === 0 ? null : `e${n}`,
    timestamp: at,
    ...body
  }))

const read = (...records: ReadonlyArray<Json | string>) =>
  Stream.make(
    Buffer.from(records.map((one) => `${typeof one === "string" ? one : JSON.stringify(one)}\n`).join(""))
  ).pipe(EntryReader.fromBytes(), Stream.runCollect, Effect.map(Chunk.toReadonlyArray))

const items = (pieces: ReadonlyArray<Conversation.Piece>) =>
  pieces.flatMap((piece) => (piece._tag === "Problem" || piece._tag === "Head" ? [] : [piece]))
const kinds = (pieces: ReadonlyArray<Conversation.Piece>) =>
  pieces.flatMap((piece) => (piece._tag === "Problem" ? [`${piece.kind} ${piece.place.line}`] : []))

const user = (text: string) => ({ type: "message", message: { role: "user", content: text } })
const answer = {
  type: "message",
  message: {
    role: "assistant",
    provider: "anthropic",
    model: "claude",
    content: [
      { type: "thinking", thinking: "hm" },
      { type: "text", text: "Done." },
      { type: "toolCall", id: "c1", name: "bash", arguments: { command: "ls" } },
      { type: "new", x: 1 }
    ],
    usage: { input: 1, output: 2, cacheRead: 3, cacheWrite: 4, cost: { total: 0.5 } },
    stopReason: "toolUse",
    timestamp: 1_760_000_000_000
  }
}

describe("EntryReader", () => {
  it.effect("FM-12: a healthy log becomes a head and one item for each entry", () =>
    Effect.gen(function* () {
      const entries = chained(
        user("hello"),
        answer,
        {
          type: "message",
          message: { role: "toolResult", toolCallId: "c1", toolName: "bash", content: [], isError: true }
        },
        { type: "model_change", model: "openai/gpt-4o/x", role: "smol" },
        { type: "label", targetId: "e1", label: "start" },
        { type: "shiny", glow: true }
      )
      const pieces = yield* read(header, ...entries)
      assert.deepStrictEqual(pieces[0], {
        _tag: "Head",
        dialect: "xcsh",
        id: header.id,
        cwd: "/work/pi",
        version: 3,
        createdAt: Date.parse(at),
        record: header
      })
      const all = items(pieces)
      assert.deepStrictEqual(kinds(pieces), [])
      assert.deepStrictEqual(
        all.map(({ _tag, key, parent }) => [_tag, key, parent]),
        [
          ["User", "e1", null],
          ["Answer", "e2", "e1"],
          ["Result", "e3", "e2"],
          ["ModelChange", "e4", "e3"],
          ["Label", "e5", "e4"],
          ["Opaque", "e6", "e5"]
        ]
      )
      assert.deepStrictEqual(
        all.map(({ record }) => record),
        entries
      )
      assert.deepInclude(all[1], {
        parts: [
          { type: "reasoning", text: "hm" },
          { type: "text", text: "Done." },
          { type: "call", id: "c1", name: "bash", input: { command: "ls" } }
        ],
        spent: { input: 1, output: 2, reasoning: 0, cacheRead: 3, cacheWrite: 4, cost: 0.5 },
        finish: "toolUse",
        time: 1_760_000_000_000
      })
      assert.deepInclude(all[3], { provider: "openai", model: "gpt-4o/x", role: "smol" })
    })
  )

  it.effect("FM-10: a log without a header and a log of a later version are refused", () =>
    Effect.gen(function* () {
      const none = yield* Effect.flip(read(...chained(user("x"))))
      assert.strictEqual(none.message, "this file is not an entry log: line 1 is not a session header")
      const empty = yield* Effect.flip(read("", "oops"))
      assert.strictEqual(empty._tag, "NotASession")
      const newer = yield* Effect.flip(read({ ...header, version: 4 }, ...chained(user("x"))))
      assert.deepInclude(newer, { _tag: "SessionVersionTooNew", found: 4, supported: 3 })
    })
  )
})
