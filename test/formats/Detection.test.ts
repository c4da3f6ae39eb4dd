/** Tests the detection of dialects. Spec: FM-166, FM-167 in specs/formats.md. */
import * as NodeContext from "@effect/platform-node/NodeContext"
import { FileSystem } from "@effect/platform/FileSystem"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Either, FastCheck as fc } from "effect"
import type { Dialect } from "../../packages/formats/src/conversation/Conversation.ts"
import * as LogSource from "../../packages/formats/src/import/LogSource.ts"
import { cases } from "../support/Cases.ts"
import { bytes, type Json, session, user, uuid } from "./support/ClaudeLogs.ts"
import { bareRollout, document, rollout } from "./support/CodexLogs.ts"

const entry = { type: "message", id: "a1b2c3d4", parentId: null, timestamp: "2026-01-01T00:00:00Z", message: {} }
const logs: ReadonlyArray<readonly [Dialect, ReadonlyArray<Json>]> = [
  ["claude-code", [...session(1)]],
  ["claude-code", [{ type: "summary", summary: "Elsewhere", leafUuid: uuid(9) }]],
  ["claude-code", [{ type: "queue-operation", operation: "enqueue", sessionId: uuid(1) }, user(1, null, "go")]],
  ["codex", [...rollout(1)]],
  ["codex", [...rollout(1)].slice(3)],
  ["codex", bareRollout],
  ["pi", [{ type: "session", version: 3, id: uuid(1), timestamp: "2026-01-01T00:00:00Z", cwd: "/work" }, entry]],
  ["xcsh", [{ type: "session", version: 3, id: "1f9d2a6b9c0d1234", title: "T" }, entry]],
  [
    "omp",
    [
      { type: "title", v: 1, title: "T", pad: "" },
      { type: "session", version: 3, id: "1f9d2a6b9c0d1234" }
    ]
  ],
  ["thread", [{ recordType: "message", schemaVersion: 1, seq: 1, role: "user", content: [] }]]
]

describe("Detection", () => {
  it("FM-166: the first records of a log name its dialect", () => {
    for (const [dialect, records] of logs) {
      assert.deepStrictEqual(LogSource.detect(records), Either.right(dialect), JSON.stringify(records[0]))
    }
  })

  it("FM-166: records of any shape are detected or refused without an exception", () => {
    fc.assert(
      fc.property(
        fc.array(fc.dictionary(fc.constantFrom("type", "id", "uuid", "payload", "seq", "v"), fc.jsonValue())),
        (records) => Either.isEither(LogSource.detect(records))
      ),
      { numRuns: cases(40) }
    )
  })

  it("FM-167: a log of none of them is refused with the types of its records", () => {
    for (const [records, found] of [
      [[], "it has no records"],
      [[{ type: "thread" }, { type: "turn" }], "thread, turn"],
      [[{ name: "package", version: "1.0.0" }], "none"]
    ] as const) {
      const refused = Either.getOrThrow(Either.flip(LogSource.detect(records)))
      assert.include(refused.message, found)
    }
  })

  it("FM-444: the event stream of a tool is named, with the log that the tool keeps", () => {
    const header = { type: "session", version: 3, id: "0198c0de", timestamp: "2026-01-01T00:00:00Z", cwd: "/work" }
    const start = { type: "message_start", message: { role: "user", content: "go", timestamp: 1 } }
    for (const [records, log] of [
      [[header, { type: "agent_start" }, start], "~/.pi/agent/sessions/*/*_0198c0de.jsonl"],
      [[{ type: "agent_start" }, start], "~/.pi/agent/sessions/*/*_*.jsonl"],
      [[{ type: "system", subtype: "init", session_id: uuid(1) }], `~/.claude/projects/*/${uuid(1)}.jsonl`],
      [
        [{ type: "assistant", message: {}, session_id: uuid(2), uuid: uuid(3) }],
        `~/.claude/projects/*/${uuid(2)}.jsonl`
      ],
      [[{ type: "thread.started", thread_id: "t1" }, { type: "turn.started" }], "/rollout-*-t1.jsonl"]
    ] as const) {
      const refused = Either.getOrThrow(Either.flip(LogSource.detect(records)))
      assert.strictEqual(refused._tag, "EventStream")
      assert.include(refused.message, log)
    }
  })

  it("FM-444: a log is a log, also with an event in it", () => {
    const header = { type: "session", version: 3, id: uuid(1), timestamp: "2026-01-01T00:00:00Z", cwd: "/work" }
    assert.deepStrictEqual(LogSource.detect([header, { type: "agent_start" }, entry]), Either.right("pi"))
    assert.deepStrictEqual(LogSource.detect([header]), Either.right("pi"))
  })

  it.scoped("FM-167: a file is read for its dialect, a folder with session.jsonl is a thread, others are refused", () =>
    Effect.gen(function* () {
      const files = yield* FileSystem
      const folder = yield* files.makeTempDirectoryScoped()
      yield* files.writeFile(`${folder}/x.txt`, Buffer.concat([Buffer.from("{ damaged\n"), bytes(session(1))]))
      assert.strictEqual(yield* LogSource.dialectOf(`${folder}/x.txt`), "claude-code")
      const refused = yield* Effect.flip(LogSource.dialectOf(folder))
      assert.strictEqual(refused._tag, "UnknownDialect")
      yield* files.writeFileString(`${folder}/session.jsonl`, "")
      assert.strictEqual(yield* LogSource.dialectOf(folder), "thread")
      for (const layout of [undefined, 2]) {
        yield* files.writeFileString(`${folder}/rollout.json`, JSON.stringify(document, undefined, layout))
        assert.strictEqual(yield* LogSource.dialectOf(`${folder}/rollout.json`), "codex")
      }
      const missing = yield* Effect.flip(LogSource.dialectOf(`${folder}/absent`))
      assert.strictEqual(missing._tag, "LogUnreadable")
    }).pipe(Effect.provide(NodeContext.layer))
  )
})
