/** Reads thread folders in the terms of all dialects. Spec: FM-118..FM-121 in specs/formats.md. */
import { readFileSync, renameSync, rmSync, statSync } from "node:fs"
import { join } from "node:path"
import * as NodeContext from "@effect/platform-node/NodeContext"
import { assert, it } from "@effect/vitest"
import { Chunk, Effect, FastCheck as fc, Schema, Stream } from "effect"
import { Piece } from "../../../packages/formats/src/conversation/Conversation.ts"
import * as ThreadReader from "../../../packages/formats/src/thread/ThreadReader.ts"
import { cases } from "../../support/Cases.ts"
import { temporaryFolder } from "../../support/Database.ts"
import { conversation, linesOf, metadata, podLines, recordsOf, threadID, writeThread } from "../support/ThreadLogs.ts"

const read = (folder: string) =>
  ThreadReader.read(folder).pipe(
    Stream.runCollect,
    Effect.map(Chunk.toReadonlyArray),
    Effect.provide(NodeContext.layer)
  )

const pods = `${podLines.join("\n")}\n`

/** What the reader found, without places and records. */
const brief = (pieces: ReadonlyArray<Piece>) =>
  pieces.map((piece) => {
    switch (piece._tag) {
      case "Head":
        return `Head ${piece.id}`
      case "Problem":
        return `${piece.kind} ${piece.place.line}`
      default:
        return `${piece._tag} ${piece.key}<${String(piece.parent)}`
    }
  })

it.scoped("FM-120: a file of records under a name of its own is a thread of that name, without metadata", () =>
  Effect.gen(function* () {
    const folder = writeThread(yield* temporaryFolder, pods)
    const alone = join(folder, "mine.jsonl")
    renameSync(join(folder, "session.jsonl"), alone)
    const [metadata, , head, ...items] = brief(yield* read(alone))
    assert.deepStrictEqual([metadata, head], ["bad-metadata 1", "Head mine"])
    assert.strictEqual(items.length, podLines.length)
  })
)

it.scoped("FM-118: each record is an item that names its predecessor, with its text, calls, result and time", () =>
  Effect.gen(function* () {
    const folder = writeThread(yield* temporaryFolder, pods)
    const [, head, user, answer, result, last] = yield* read(folder)
    const createdAt = Date.parse(metadata.createdAt)
    assert.deepStrictEqual(head, {
      _tag: "Head",
      dialect: "thread",
      id: threadID,
      version: 1,
      createdAt,
      title: "Pods",
      record: { ...metadata }
    })
    const recordAt = (at: number) => JSON.parse(podLines[at] ?? "") as Record<string, unknown>
    const place = { line: 1, offset: 0 }
    const text = "What pods are running?"
    assert.deepStrictEqual(user, {
      _tag: "User",
      key: "1",
      parent: null,
      time: createdAt,
      place,
      record: recordAt(0),
      content: [{ type: "text", text }]
    })
    assert.deepInclude(answer, {
      key: "2",
      parent: "1",
      provider: "anthropic",
      model: "claude-sonnet-4-5",
      parts: [
        { type: "text", text: "Let me check." },
        { type: "call", id: "tc_1", name: "bash", input: { command: "kubectl get pods" } }
      ]
    })
    assert.deepInclude(result, { _tag: "Result", parent: "2", callID: "tc_1", tool: "bash", failed: false })
    assert.deepInclude(last, { _tag: "Answer", time: createdAt + 3000, record: recordAt(3) })
  })
)

it.scoped("FM-119: the values that the format does not store are filled in and reported once", () =>
  Effect.gen(function* () {
    const root = yield* temporaryFolder
    const { model: _, ...rest } = metadata
    for (const [model, expected] of [
      ["sonnet", { provider: "unknown", model: "sonnet" }],
      ["", { provider: "unknown", model: "unknown" }],
      ["a/b/c", { provider: "a", model: "b/c" }]
    ] as const) {
      const pieces = yield* read(writeThread(root, pods, { ...rest, model }))
      const answers = pieces.filter((piece) => piece._tag === "Answer")
      for (const answer of answers) assert.deepInclude(answer, expected)
      assert.isUndefined(answers[0]?.spent)
      assert.strictEqual(brief(pieces).filter((line) => line === "synthetic-values 1").length, 1)
    }
  })
)

it.scoped("FM-120: a thread without readable metadata is read; its id is the folder's, its time that of the ULID", () =>
  Effect.gen(function* () {
    const root = yield* temporaryFolder
    for (const about of [null, "not an object", { ...metadata, source: "elsewhere" }]) {
      const folder = writeThread(root, pods, about)
      const pieces = yield* read(folder)
      assert.deepStrictEqual(brief(pieces).slice(0, 3), ["bad-metadata 1", "synthetic-values 1", `Head ${threadID}`])
      assert.deepInclude(pieces[2], { createdAt: Date.parse("2025-02-11T10:00:00Z") })
      rmSync(folder, { recursive: true })
    }
    assert.strictEqual((yield* Effect.flip(read(join(root, "missing"))))._tag, "LogUnreadable")
  })
)

it.scoped("FM-121: a damaged, unknown or repeated record is reported and kept; a torn last line is skipped", () =>
  Effect.gen(function* () {
    const lines = [
      podLines[0],
      '{"recordType":"message","schemaVersion":1,"seq":2,"role":"user","content":"bare","timestamp":"2025-02-11T10:00:01Z"}',
      '{"recordType":"message","schemaVersion":1,"seq":2,"role":"user","content":[],"timestamp":"2025-02-11T10:00:01Z"}',
      '{"recordType":"bookmark","schemaVersion":1,"seq":4}',
      '{"recordType":"message","schemaVersion":2,"seq":5,"role":"user","content":[]}',
      "damaged",
      '{"recordType":"message","schema'
    ]
    const pieces = yield* read(writeThread(yield* temporaryFolder, lines.join("\n")))
    const offset = Buffer.byteLength(`${lines[0]}\n${lines[1]}\n`)
    assert.deepStrictEqual(brief(pieces).slice(2), [
      "User 1<null",
      "bare-content 2",
      "User 2<1",
      "duplicate-id 3",
      `User byte-${offset}<2`,
      "unknown-record 4",
      `Opaque 4<byte-${offset}`,
      "unknown-record 5",
      "Opaque 5<4",
      "bad-line 6",
      "torn-line 7"
    ])
    const bare = pieces.find((piece) => piece._tag === "User" && piece.key === "2")
    assert.deepInclude(bare, { content: [{ type: "text", text: "bare" }] })
  })
)

const compaction = (seq: number, firstKeptSeq: number) => ({
  recordType: "compaction",
  schemaVersion: 1,
  seq,
  firstKeptSeq,
  summary: "before",
  tokensBefore: 12,
  readFiles: ["a"],
  modifiedFiles: ["b"],
  timestamp: "2025-02-11T11:00:00Z"
})

it.scoped("FM-118: a compaction names the first message that it keeps", () =>
  Effect.gen(function* () {
    const lines = linesOf([...podLines.map((line) => JSON.parse(line) as unknown), compaction(5, 3), compaction(6, 9)])
    const pieces = yield* read(writeThread(yield* temporaryFolder, lines))
    const found = pieces.filter((piece) => piece._tag === "Compaction")
    assert.deepInclude(found[0], { firstKept: "3", summary: "before", readFiles: ["a"], modifiedFiles: ["b"] })
    assert.deepInclude(found[1], { firstKept: null, parent: "5" })
  })
)

it.scoped(
  "FM-118: pieces of any thread are valid, their keys unique, their parents known, and the folder unchanged",
  () =>
    Effect.gen(function* () {
      const root = yield* temporaryFolder
      const isPiece = Schema.is(Piece)
      yield* Effect.promise(() =>
        fc.assert(
          fc.asyncProperty(conversation, fc.nat(), async (messages, damage) => {
            const lines = linesOf(recordsOf(messages))
            const at = damage % lines.length
            const damaged = lines.slice(0, at) + lines.slice(at + 1 + (damage % 3))
            const file = join(writeThread(root, damaged), "session.jsonl")
            const before = statSync(file).mtimeMs
            const pieces = await Effect.runPromise(read(join(root, threadID)))
            const keys = new Set<string | null>([null])
            for (const piece of pieces) {
              assert.isTrue(isPiece(piece))
              if (piece._tag === "Head" || piece._tag === "Problem") continue
              assert.isTrue(keys.has(piece.parent))
              assert.isFalse(keys.has(piece.key))
              keys.add(piece.key)
            }
            assert.strictEqual(readFileSync(file, "utf8"), damaged)
            assert.strictEqual(statSync(file).mtimeMs, before)
          }),
          { numRuns: cases(12) }
        )
      )
    })
)
