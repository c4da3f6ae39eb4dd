/** Tests the reading of entry logs. Spec: FM-10..FM-19 in specs/formats.md. */
import { assert, describe, it } from "@effect/vitest"
import { Chunk, Effect, Predicate, Stream, Struct } from "effect"
import type * as Conversation from "../../../packages/formats/src/conversation/Conversation.ts"
import * as EntryReader from "../../../packages/formats/src/entry/EntryReader.ts"
import { forAll } from "../../support/Cases.ts"
import { answer, chain, compaction, fileOf, header, type Json, message, startedAt, user } from "../support/Entries.ts"
import * as EntryLogs from "../support/EntryLogs.ts"

const readBytes = (bytes: Uint8Array, options?: EntryReader.Options) =>
  Stream.make(bytes).pipe(EntryReader.fromBytes(options), Stream.runCollect, Effect.map(Chunk.toReadonlyArray))
const read = (...records: ReadonlyArray<Json | string>) => readBytes(Buffer.from(fileOf(...records)))

const headOf = (pieces: ReadonlyArray<Conversation.Piece>) => pieces.find((piece) => piece._tag === "Head")
const items = (pieces: ReadonlyArray<Conversation.Piece>) =>
  pieces.flatMap((piece) => (piece._tag === "Problem" || piece._tag === "Head" ? [] : [piece]))
const problems = (pieces: ReadonlyArray<Conversation.Piece>) =>
  pieces.flatMap((piece) => (piece._tag === "Problem" ? [piece] : []))
const kinds = (pieces: ReadonlyArray<Conversation.Piece>) =>
  problems(pieces).map(({ kind, place }) => `${kind} ${place.line}`)
const links = (pieces: ReadonlyArray<Conversation.Piece>) => items(pieces).map(({ key, parent }) => [key, parent])
const tags = (pieces: ReadonlyArray<Conversation.Piece>) => items(pieces).map(({ _tag }) => _tag)

const called: Json = message({
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
})

describe("EntryReader", () => {
  it.effect("FM-12: a healthy log becomes a head and one item for each entry", () =>
    Effect.gen(function* () {
      const entries = chain(
        user("hello"),
        called,
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
        createdAt: Date.parse(startedAt),
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
      assert.deepStrictEqual(all.map(Struct.get("record")), entries)
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
      const none = yield* Effect.flip(read(...chain(user("x"))))
      assert.strictEqual(none.message, "this file is not an entry log: line 1 is not a session header")
      const empty = yield* Effect.flip(read("", "oops"))
      assert.strictEqual(empty._tag, "NotASession")
      const newer = yield* Effect.flip(read({ ...header, version: 4 }, ...chain(user("x"))))
      assert.deepInclude(newer, { _tag: "SessionVersionTooNew", found: 4, supported: 3 })
    })
  )

  it.effect("FM-10: damaged lines and omp's title slot may precede the header; a missing version is 1", () =>
    Effect.gen(function* () {
      const slot = { type: "title", v: 1, title: "Slot", source: "user", pad: "   " }
      const pieces = yield* read("garbage", slot, { type: "session", id: "s", timestamp: startedAt, title: "Old" })
      assert.deepStrictEqual(pieces.map(Struct.get("_tag")), ["Problem", "Head"])
      assert.deepInclude(headOf(pieces), {
        version: 1,
        dialect: "omp",
        title: "Slot",
        titledByUser: true,
        before: [slot],
        record: { type: "session", id: "s", timestamp: startedAt, title: "Old", version: 3 }
      })
    })
  )

  it.effect("FM-11: wrong fields of the header are not used and stay in the record", () =>
    Effect.gen(function* () {
      const wrong = { ...header, version: "three", timestamp: 5, cwd: 7, title: ["x"], parentSession: {} }
      const pieces = yield* read(wrong, ...chain(user("a")))
      assert.deepStrictEqual(kinds(pieces), ["wrong-field 1"])
      const head = headOf(pieces)
      assert.deepStrictEqual(head, {
        _tag: "Head",
        dialect: "xcsh",
        id: header["id"],
        version: 3,
        createdAt: 5,
        record: wrong
      })
    })
  )

  it.effect(
    "FM-13: an entry of a known type with a wrong field stays as an opaque item, and no value is repeated",
    () =>
      Effect.gen(function* () {
        const wrong = chain(
          user(123_456),
          { type: "compaction", summary: null },
          message({ role: "nobody-knows", secret: "s3cret" }),
          { type: "label", targetId: 7 },
          message({ role: "assistant", content: [{ type: "toolCall", id: "", name: "x", arguments: "s3cret" }] })
        )
        const pieces = yield* read(header, ...wrong)
        assert.deepStrictEqual(
          tags(pieces),
          wrong.map(() => "Opaque")
        )
        assert.deepStrictEqual(items(pieces).map(Struct.get("record")), wrong)
        assert.deepStrictEqual(
          kinds(pieces),
          [2, 3, 4, 5, 6].map((line) => `wrong-field ${line}`)
        )
        assert.include(problems(pieces)[1]?.details, "summary")
        for (const { details } of problems(pieces)) assert.notMatch(details, /123456|s3cret/)
      })
  )

  it.effect("FM-14: records without the form of an entry and a second header are reported and skipped", () =>
    Effect.gen(function* () {
      const pieces = yield* read(
        header,
        { type: "agent_start" },
        { id: "a", parentId: null },
        { type: "x", id: 5 },
        { type: "x", id: "a", parentId: 5 },
        header,
        ...chain(user("a"))
      )
      const found = [...[2, 3, 4, 5].map((line) => `not-an-entry ${line}`), "second-header 6"]
      assert.deepStrictEqual(kinds(pieces), found)
      assert.deepStrictEqual(links(pieces), [["e1", null]])
    })
  )

  const uuid = "019c0000-0000-7000-8000-000000000001"
  const dialects: ReadonlyArray<[string, Json, Json]> = [
    ["pi", {}, { type: "model_change", provider: "a", modelId: "b" }],
    ["xcsh", {}, { type: "model_change", model: "a/b" }],
    ["pi", {}, compaction("s", undefined, { fromHook: true })],
    ["xcsh", {}, compaction("s", undefined, { fromExtension: false })],
    ["pi", {}, { type: "session_info", name: "n" }],
    ["xcsh", { id: uuid }, { type: "mode_change", mode: "plan" }],
    ["omp", { id: uuid }, { type: "credential_pin" }],
    ["omp", { additionalDirectories: [] }, { type: "model_change", model: "a/b" }],
    ["pi", { id: uuid }, user("a")],
    ["xcsh", {}, user("a")],
    ["xcsh", { id: uuid, title: "t" }, user("a")],
    ["pi", { modelId: "m" }, user("a")]
  ]
  it.effect("FM-15: the shapes of the first records say which tool wrote the log", () =>
    Effect.forEach(dialects, ([dialect, fields, body]) =>
      Effect.map(read({ ...header, ...fields }, ...chain(body)), (pieces) =>
        assert.strictEqual(headOf(pieces)?.dialect, dialect, JSON.stringify([fields, body]))
      )
    )
  )

  it.effect("FM-16: each role and type becomes its item", () =>
    Effect.gen(function* () {
      const bash = { role: "bashExecution", command: "ls", output: "a", exitCode: 2, excludeFromContext: true }
      const pieces = yield* read(
        header,
        ...chain(
          user([
            { type: "text", text: "a" },
            { type: "image", data: "aGk=", mimeType: "image/png" }
          ]),
          message({ role: "developer", content: "d" }),
          message({ role: "hookMessage", content: "h" }),
          message({ role: "user", content: "x", attribution: "agent" }),
          message(bash),
          message({ role: "pythonExecution", code: "1", cancelled: true }),
          message({ role: "fileMention", files: [{ path: "a.ts", content: "c" }] }),
          message({ role: "branchSummary", summary: "b", fromId: "root" }),
          message({ role: "compactionSummary", summary: "c" }),
          { type: "custom_message", customType: "x", content: "n", display: false },
          { type: "branch_summary", summary: "left", fromId: "e1" },
          { type: "branch_summary", summary: "", fromId: "e1" },
          { type: "model_change", model: "gpt", role: "default" },
          { type: "session_info", name: "  Name " },
          { type: "session_info", name: " " },
          { type: "title_change", title: "Title", source: "user" },
          { type: "label", targetId: "e1", label: "" },
          { type: "thinking_level_change", thinkingLevel: null },
          { type: "custom", customType: "x" }
        )
      )
      assert.deepStrictEqual(kinds(pieces), [])
      const all = items(pieces)
      const expected =
        "User Note Note Note Command Command Note BranchSummary Note Note BranchSummary Opaque ModelChange Title Opaque " +
        "Title Label Opaque Opaque"
      assert.strictEqual(tags(pieces).join(" "), expected)
      assert.deepInclude(all[0], {
        content: [
          { type: "text", text: "a" },
          { type: "media", mime: "image/png", data: "aGk=" }
        ]
      })
      assert.deepInclude(all[4], { command: "ls", output: "a", exitCode: 2, cancelled: false, hidden: true })
      assert.deepInclude(all[5], { command: "1", output: "", cancelled: true, hidden: false })
      assert.deepInclude(all[12], { provider: "unknown", model: "gpt" })
      assert.notProperty(all[12], "role")
      assert.deepInclude(all[13], { title: "Name" })
      assert.deepInclude(all[16], { target: "e1", label: null })
    })
  )

  it.effect("FM-16: what subagents of a task spent counts, and missing usage is not an error", () =>
    Effect.gen(function* () {
      const result = (toolName: string, details: unknown) =>
        message({ role: "toolResult", toolCallId: "c", toolName, content: "x", details })
      const pieces = yield* read(
        header,
        ...chain(
          result("task", { usage: { input: 5, cost: { total: 1 } } }),
          result("read", { usage: { input: 5 } }),
          result("task", "nothing"),
          answer("a"),
          message({ role: "assistant", content: [], stopReason: "aborted", usage: { input: null } })
        )
      )
      const spent = items(pieces).map((item) => ("spent" in item ? [item.spent?.input, item.spent?.cost] : undefined))
      assert.deepStrictEqual(spent, [[5, 1], undefined, undefined, undefined, [0, 0]])
      assert.deepInclude(items(pieces)[4], { provider: "unknown", model: "unknown", aborted: true, finish: "aborted" })
    })
  )

  it.effect("FM-17: a parent that is missing, later or the record itself begins a tree", () =>
    Effect.gen(function* () {
      const pieces = yield* read(
        header,
        ...chain(
          user("a", { parentId: "e2" }),
          user("b", { parentId: "e1" }),
          user("c", { parentId: "e3" }),
          user("d", { parentId: "gone" }),
          user("e", { parentId: "e2" })
        )
      )
      assert.deepStrictEqual(kinds(pieces), ["missing-parent 2", "self-parent 4", "missing-parent 5"])
      assert.deepStrictEqual(links(pieces), [
        ["e1", null],
        ["e2", "e1"],
        ["e3", null],
        ["e4", null],
        ["e5", "e2"]
      ])
    })
  )

  it.effect("FM-18: an id that occurs again means the latest record before it", () =>
    Effect.gen(function* () {
      const same = { id: "x" }
      const pieces = yield* read(
        header,
        ...chain(
          user("a", same),
          user("b", { parentId: "x" }),
          user("c", { ...same, parentId: "e2" }),
          user("d"),
          user("e", same)
        )
      )
      assert.deepStrictEqual(kinds(pieces), ["duplicate-id 4", "duplicate-id 6"])
      assert.deepStrictEqual(links(pieces), [
        ["x", null],
        ["e2", "x"],
        ["x~2", "e2"],
        ["e4", "x~2"],
        ["x~3", "e4"]
      ])
    })
  )

  it.effect("FM-19: a compaction keeps from its first kept record, if that is on its branch", () =>
    Effect.gen(function* () {
      const remote = { preserveData: { openaiRemoteCompaction: { provider: "openai", replacementHistory: [] } } }
      const pieces = yield* read(
        header,
        ...chain(
          user("a"),
          user("b"),
          compaction("s", "e1", { details: { readFiles: ["r"], modifiedFiles: ["m"] } }),
          user("c", { parentId: "e1" }),
          compaction("t", "e2"),
          compaction("u", "gone"),
          compaction("v"),
          compaction("w", "e1", remote),
          { type: "label", targetId: "gone", label: "x" }
        )
      )
      const kept = items(pieces).flatMap((item) => (item._tag === "Compaction" ? [item.firstKept] : []))
      assert.deepStrictEqual(kept, ["e1", null, null, null, null])
      assert.deepStrictEqual(kinds(pieces), ["nothing-kept 6", "nothing-kept 7", "missing-target 10"])
      assert.deepInclude(items(pieces)[2], { readFiles: ["r"], modifiedFiles: ["m"], tokensBefore: 42 })
    })
  )

  it.effect("FM-18: many records with one id take time in proportion to their number", () =>
    Effect.gen(function* () {
      const pieces = yield* read(header, ...chain(...Array.from({ length: 30_000 }, () => ({ type: "x", id: "same" }))))
      assert.strictEqual(new Set(links(pieces).map(([key]) => key)).size, 30_000)
      assert.strictEqual(links(pieces).at(-1)?.join(" "), "same~30000 same~29999")
    })
  )

  it.effect("FM-29: a record without a valid time has that of the record before it and is reported", () =>
    Effect.gen(function* () {
      const wrong = { ...user("b"), timestamp: "yesterday" }
      const pieces = yield* read(header, ...chain(user("a"), wrong, { ...user("c"), timestamp: 7 }))
      const times = items(pieces).map(({ time }) => time - Date.parse(startedAt))
      assert.deepStrictEqual(times, [0, 0, 7 - Date.parse(startedAt)])
      assert.deepStrictEqual(kinds(pieces), ["missing-time 3"])
    })
  )

  it.effect("FM-28: a compaction that holds its kept messages is reported and keeps from its first kept record", () =>
    Effect.gen(function* () {
      const tail = { retainedTail: [{ role: "user", content: "tail" }] }
      const pieces = yield* read(header, ...chain(user("a"), compaction("s", "e1", tail)))
      assert.deepStrictEqual(kinds(pieces), ["retained-tail 3"])
      assert.deepInclude(items(pieces)[1], { firstKept: "e1" })
    })
  )

  const run = (bytes: Uint8Array) => Effect.runSync(Effect.either(readBytes(bytes)))
  const lineOf = (record: Json) => JSON.stringify(record)

  it("FM-12: a healthy log of any version and dialect has no problems, its own dialect, and an item for each entry", () => {
    forAll([EntryLogs.logs], 24, (options) => {
      const pieces = run(Buffer.from(EntryLogs.file(options)))
      if (pieces._tag === "Left") return assert.fail(pieces.left.message)
      assert.deepStrictEqual(kinds(pieces.right), [])
      assert.strictEqual(items(pieces.right).length, options.entries)
      assert.strictEqual(headOf(pieces.right)?.version, options.version)
      if (options.dialect !== "pi") assert.strictEqual(headOf(pieces.right)?.dialect, options.dialect)
      if (options.version < 3) return
      const source = [...EntryLogs.records(options)].filter(({ type }) => type !== "title")
      const records = [headOf(pieces.right), ...items(pieces.right)].map((piece) => lineOf(piece?.record ?? {}))
      assert.deepStrictEqual(records, source.map(lineOf))
    })
  })

  it("FM-9: after any damage reading ends with a typed error or keeps each undamaged entry, in a tree", () => {
    forAll([EntryLogs.logs, EntryLogs.damages], 60, (options, damages) => {
      const content = EntryLogs.damaged(Buffer.from(EntryLogs.file(options)), damages)
      const read = run(content)
      if (read._tag === "Left") return assert.isTrue(Predicate.isTagged(read.left, "NotASession"))
      const seen = new Set<string>()
      for (const { key, parent } of items(read.right)) {
        assert.isTrue(parent === null || seen.has(parent), "its parent is before it")
        assert.isFalse(seen.has(key), "its key is new")
        seen.add(key)
      }
      if (options.version < 3) return
      const originals = new Set([...EntryLogs.records(options)].slice(1).map(lineOf))
      const kept = new Set(items(read.right).map(({ record }) => lineOf(record)))
      for (const line of content.toString().split("\n")) {
        if (originals.has(line) && !line.startsWith('{"type":"session"')) assert.isTrue(kept.has(line), line)
      }
    })
  })
})
