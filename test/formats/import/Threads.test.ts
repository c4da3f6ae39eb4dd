/** Threads as sessions and back; sessions of Daybook as threads. */
import { assert, it } from "@effect/vitest"
import { Effect, Layer, Schema, Stream } from "effect"
import { layerStore } from "../../../packages/log/src/Store.ts"
import { importLog } from "../../../packages/formats/src/import/Import.ts"
import type { Head, Piece } from "../../../packages/formats/src/conversation/Conversation.ts"
import { itemsOf } from "../../../packages/formats/src/thread/ThreadReader.ts"
import { memoryLog } from "../../support/Database.ts"
import { linesOf, piRecords } from "../support/EntryTexts.ts"
import { exportedThread, importText } from "../support/RoundTrips.ts"

const store = Effect.provide(Layer.provideMerge(layerStore, memoryLog))

const id = "01JKV7S3Q0ABCDEFGHJKMNPQRS"
const metadata = {
  id,
  name: "Pods",
  createdAt: "2025-02-11T10:00:00Z",
  lastMessageAt: "2025-02-11T10:00:03Z",
  model: "claude-4",
  messageCount: 4,
  source: "interactive",
  extra: { kept: true }
}
const message = (seq: number, fields: object) => ({
  recordType: "message",
  schemaVersion: 1,
  seq,
  ...fields,
  timestamp: `2025-02-11T10:00:0${seq}Z`
})
const records = [
  message(1, { role: "user", content: [{ type: "text", text: "What pods are running?" }] }),
  message(2, {
    role: "assistant",
    content: [
      { type: "text", text: "Let me check." },
      { type: "toolCall", id: "tc_1", name: "bash", arguments: { command: "kubectl get pods" } }
    ]
  }),
  message(4, { role: "toolResult", content: [{ type: "text", text: "nginx" }], toolCallId: "tc_1", isError: false }),
  message(5, { role: "assistant", content: [{ type: "text", text: "One pod." }], note: 7 }),
  {
    recordType: "compaction",
    schemaVersion: 1,
    seq: 6,
    firstKeptSeq: 4,
    summary: "Pods were listed.",
    tokensBefore: 900,
    readFiles: [],
    modifiedFiles: ["a.ts"],
    timestamp: "2025-02-11T10:00:06Z"
  },
  message(7, { role: "user", content: [{ type: "text", text: "Thanks." }] })
]

const head: Head = {
  _tag: "Head",
  dialect: "thread",
  id,
  version: 1,
  title: "Pods",
  createdAt: Date.parse(metadata.createdAt),
  record: metadata
}

const pieces = (text: string): Stream.Stream<Piece> =>
  Stream.concat(
    Stream.make<[Piece]>(head),
    itemsOf(metadata.model, head.createdAt, "recover")(Stream.make(Buffer.from(text)))
  )

it.effect("IM-34: a thread, imported and exported as a thread, has the same lines and metadata", () =>
  Effect.gen(function* () {
    const source = linesOf(records)
    const { sessionID } = yield* importLog(() => pieces(source), { directory: "/tmp" })
    const { files, text } = yield* exportedThread(sessionID)
    assert.deepStrictEqual(text.split("\n"), source.split("\n"))
    assert.deepStrictEqual<unknown>(files?.metadata, metadata)
  }).pipe(store)
)

it.effect("IM-35: another session is written as a thread of its history path, and says what was left out", () =>
  Effect.gen(function* () {
    const { sessionID } = yield* importText(linesOf(piRecords("/tmp")))
    const { files, text } = yield* exportedThread(sessionID)
    const decode = Schema.decodeUnknownSync(Schema.parseJson(Schema.Struct({ seq: Schema.Int })))
    const lines = text
      .trimEnd()
      .split("\n")
      .map((line) => decode(line))
    assert.deepStrictEqual(
      lines.map(({ seq }) => seq),
      lines.map((_, n) => n + 1)
    )
    assert.include(text, "It says hello.")
    // The branch that was left.
    assert.notInclude(text, "What is this?")
    assert.isAbove(files?.report.dropped["usage"] ?? 0, 0)
    assert.strictEqual(files?.report.notes.length, 1)
  }).pipe(store)
)
