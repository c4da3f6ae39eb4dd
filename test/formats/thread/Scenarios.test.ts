/** The test scenarios of seed 003, 7.7, by their names. Real files. Spec: FM-100..FM-115 in specs/formats.md. */
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Chunk, Deferred, Effect, FastCheck as fc, Fiber, Layer, Option, Stream, Struct, TestClock } from "effect"
import * as Identifiers from "../../../packages/log/src/domain/Identifiers.ts"
import * as FileSessionStorage from "../../../packages/formats/src/storage/FileSessionStorage.ts"
import {
  contextOf,
  missingSections,
  planOf,
  requestOf,
  serialize,
  type SummaryRequest
} from "../../../packages/formats/src/thread/ThreadCompaction.ts"
import {
  callsOf,
  decodeRecord,
  type ThreadMessage,
  type ThreadRecord
} from "../../../packages/formats/src/thread/ThreadRecord.ts"
import * as ThreadStore from "../../../packages/formats/src/thread/ThreadStore.ts"
import { cases, forAll } from "../../support/Cases.ts"
import { temporaryFolder } from "../../support/Database.ts"
import { conversation, linesOf, podLines, recordsOf, threadID, writeThread } from "../support/ThreadLogs.ts"

const threadsAt = (root: string) =>
  ThreadStore.layer(root).pipe(Layer.provide(Layer.merge(FileSessionStorage.layer, Identifiers.layer)))

/** Runs on a new folder of threads. */
const onDisk = <A, E, R>(use: (root: string) => Effect.Effect<A, E, R>) =>
  Effect.flatMap(temporaryFolder, (root) => Effect.provide(use(root), threadsAt(root)))

const store = ThreadStore.ThreadStore
const textOf = (root: string, id: string) => readFileSync(join(root, id, "session.jsonl"), "utf8")
const metadataOf = (root: string, id: string) =>
  JSON.parse(readFileSync(join(root, id, "metadata.json"), "utf8")) as unknown

const user = (text: string): ThreadMessage => ({ role: "user", content: [{ type: "text", text }] })
const answer = (text: string): ThreadMessage => ({ role: "assistant", content: [{ type: "text", text }] })
const call = (id: string, name: string, path: string): ThreadMessage => ({
  role: "assistant",
  content: [{ type: "toolCall", id, name, arguments: { path } }]
})
const result = (id: string): ThreadMessage => ({
  role: "toolResult",
  content: [{ type: "text", text: "done" }],
  toolCallId: id,
  isError: false
})

/** A summary in the format. */
const summary = (goal: string) =>
  ["## Goal", goal, "## Progress", "### Done", "## Key Decisions", "## Next Steps", "## Critical Context"].join("\n")

const keepLittle = { enabled: true, reserveTokens: 10, keepRecentTokens: 3 }

it.scoped("S7.1: a new session creates a folder with an empty session.jsonl and metadata.json", () =>
  onDisk((root) =>
    Effect.gen(function* () {
      const { id } = yield* (yield* store).create({ model: "sonnet" })
      assert.match(id, /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/)
      assert.deepStrictEqual(readdirSync(join(root, id)).toSorted(), ["metadata.json", "session.jsonl"])
      assert.strictEqual(textOf(root, id), "")
      assert.deepInclude(metadataOf(root, id), { id, model: "sonnet", messageCount: 0, source: "interactive" })
    })
  )
)

it.scoped("S7.2: messages are appended to session.jsonl; the file is never rewritten", () =>
  onDisk((root) =>
    Effect.gen(function* () {
      const threads = yield* store
      const { id } = yield* threads.create({ model: "sonnet" })
      const file = join(root, id, "session.jsonl")
      const { ino } = statSync(file)
      let before = ""
      for (let open = 0; open < 3; open++) {
        const thread = yield* threads.open(id)
        for (const message of [user("one"), answer("two")]) {
          yield* thread.append([message])
          assert.isTrue(textOf(root, id).startsWith(before))
          before = textOf(root, id)
        }
      }
      assert.strictEqual(statSync(file).ino, ino)
      const seqs = before
        .trimEnd()
        .split("\n")
        .map((line) => (JSON.parse(line) as { seq: number }).seq)
      assert.deepStrictEqual(seqs, [1, 2, 3, 4, 5, 6])
    })
  )
)

it.scoped("S7.3: loading a session gives its whole history and its context under the latest compaction", () =>
  onDisk((root) =>
    Effect.gen(function* () {
      const threads = yield* store
      const { id } = yield* threads.create({ model: "sonnet" })
      const written = yield* Effect.scoped(
        Effect.gen(function* () {
          const thread = yield* threads.open(id)
          yield* thread.append([user("first question"), answer("first answer"), user("second question")])
          yield* thread.compact(() => Effect.succeed(summary("first")), keepLittle)
          yield* thread.append([answer("second answer")])
          return yield* thread.context
        })
      )
      const thread = yield* threads.open(id)
      const history = Chunk.toReadonlyArray(yield* Stream.runCollect(thread.history))
      assert.deepStrictEqual(
        history.map(({ recordType, seq }) => [recordType, seq]),
        [
          ["message", 1],
          ["message", 2],
          ["message", 3],
          ["compaction", 4],
          ["message", 5]
        ]
      )
      assert.deepStrictEqual(yield* thread.context, written)
      assert.deepStrictEqual(contextOf(history), written)
      assert.deepStrictEqual(written.slice(1), [user("second question"), answer("second answer")])
      assert.strictEqual(textOf(root, id).split("\n").length, 6)
    })
  )
)

it.scoped("S7.4: each interaction updates lastMessageAt and messageCount, also after a crash between both files", () =>
  onDisk((root) =>
    Effect.gen(function* () {
      const threads = yield* store
      const { id } = yield* threads.create({ model: "sonnet" })
      yield* Effect.scoped(
        Effect.gen(function* () {
          const thread = yield* threads.open(id)
          yield* TestClock.adjust("1 minute")
          yield* thread.append([user("hello"), call("c", "bash", "x")], { totalTokens: 12, totalTurns: 1 })
        })
      )
      assert.deepInclude(metadataOf(root, id), {
        lastMessageAt: "1970-01-01T00:01:00.000Z",
        messageCount: 2,
        metrics: { totalTurns: 1, totalTokens: 12, totalToolCalls: 1, totalDurationMs: 0 }
      })
      const file = join(root, id, "session.jsonl")
      const line = JSON.stringify({ ...recordsOf([result("c")], 3)[0] })
      writeFileSync(file, `${line}\n`, { flag: "a" })
      const thread = yield* threads.open(id)
      assert.deepInclude(metadataOf(root, id), { messageCount: 3, nextSeq: 4 })
      const [record] = yield* thread.append([answer("done")])
      assert.strictEqual(record?.seq, 4)
    })
  )
)

it.scoped("S7.5: sessions are listed by lastMessageAt, the latest first; unreadable ones are reported", () =>
  onDisk((root) =>
    Effect.gen(function* () {
      const threads = yield* store
      const ids: Array<string> = []
      for (let n = 0; n < 3; n++) {
        yield* TestClock.adjust("1 minute")
        ids.push((yield* threads.create({ model: "sonnet" })).id)
      }
      const [first, second, third] = ids
      yield* TestClock.adjust("1 minute")
      yield* Effect.scoped(Effect.flatMap(threads.open(first ?? ""), (thread) => thread.append([user("again")])))
      const damaged = join(root, second ?? "", "metadata.json")
      writeFileSync(damaged, "{")
      const { threads: listed, unreadable } = yield* threads.list
      assert.deepStrictEqual(
        listed.map(({ id }) => id as string),
        [first, third]
      )
      assert.deepStrictEqual(
        unreadable.map(({ id }) => id as string),
        [second]
      )
      assert.strictEqual((yield* Effect.flip(threads.get(second ?? "")))._tag, "ThreadUnreadable")
      assert.strictEqual(readFileSync(damaged, "utf8"), "{")
    })
  )
)

it.scoped("S7.6: a compaction appends a record and does not rewrite the file", () =>
  onDisk((root) =>
    Effect.gen(function* () {
      const threads = yield* store
      const { id } = yield* threads.create({ model: "sonnet" })
      const thread = yield* threads.open(id)
      yield* thread.append([user("first question"), answer("first answer"), user("second question")])
      const [before, { ino }] = [textOf(root, id), statSync(join(root, id, "session.jsonl"))]
      const record = yield* thread.compact(() => Effect.succeed(summary("goal")), keepLittle)
      const after = textOf(root, id)
      assert.isTrue(after.startsWith(before))
      assert.deepStrictEqual(JSON.parse(after.slice(before.length)), Option.getOrThrow(record))
      assert.strictEqual(statSync(join(root, id, "session.jsonl")).ino, ino)
    })
  )
)

it.scoped("S7.7: a session of a cron job has source cron and its cronJobId", () =>
  onDisk((root) =>
    Effect.gen(function* () {
      const { id } = yield* (yield* store).create({ model: "sonnet", cronJobId: "nightly" })
      assert.deepInclude(metadataOf(root, id), { source: "cron", cronJobId: "nightly" })
    })
  )
)

it.scoped("S7.8: an id that is not a ULID is refused before any path is built", () =>
  onDisk((root) =>
    Effect.gen(function* () {
      const threads = yield* store
      writeFileSync(join(root, "metadata.json"), "{}")
      for (const id of [
        "",
        "..",
        ".",
        "../../etc",
        "01JKT7728000000000000000IL",
        `${"0".repeat(26)}\n`,
        "0".repeat(27)
      ]) {
        for (const use of [Effect.asVoid(threads.get(id)), Effect.asVoid(Effect.scoped(threads.open(id)))]) {
          assert.deepInclude({ ...(yield* Effect.flip(use)) }, { _tag: "InvalidThreadID", id })
        }
      }
      assert.strictEqual((yield* Effect.flip(threads.get("0".repeat(26))))._tag, "ThreadNotFound")
      assert.isFalse(existsSync(join(root, "0".repeat(26))))
    })
  )
)

it.scoped("S7.9: a line that a crash left in part is ignored, and the next record gets a line of its own", () =>
  onDisk((root) =>
    Effect.gen(function* () {
      const threads = yield* store
      const { id } = yield* threads.create({ model: "sonnet" })
      yield* Effect.scoped(Effect.flatMap(threads.open(id), (thread) => thread.append([user("whole")])))
      const file = join(root, id, "session.jsonl")
      writeFileSync(file, '{"recordType":"message","schemaVersion":1,"seq":2,"ro', { flag: "a" })
      yield* Effect.scoped(
        Effect.gen(function* () {
          const thread = yield* threads.open(id)
          assert.deepStrictEqual(thread.problems.map(Struct.get("kind")), ["torn-line"])
          assert.deepStrictEqual(yield* thread.context, [user("whole")])
          yield* thread.append([answer("next")])
        })
      )
      const again = yield* threads.open(id)
      assert.deepStrictEqual(yield* again.context, [user("whole"), answer("next")])
    })
  )
)

it.scoped("S7.10: a second message to the same session waits for the first; more than sixteen are refused", () =>
  onDisk((root) =>
    Effect.gen(function* () {
      const threads = yield* store
      const { id } = yield* threads.create({ model: "sonnet" })
      const [thread, other] = [yield* threads.open(id), yield* threads.open(id)]
      const [started, gate] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const turn = Effect.fnUntraced(function* (text: string, during: Effect.Effect<unknown>) {
        yield* thread.append([user(text)])
        yield* during
        yield* thread.append([answer(`${text} answered`)])
      })
      const first = yield* Effect.fork(
        thread.run(turn("first", Effect.zipRight(Deferred.succeed(started, undefined), Deferred.await(gate))))
      )
      yield* Deferred.await(started)
      const second = yield* Effect.fork(other.run(turn("second", Effect.void)))
      const withdrawn = yield* Effect.fork(other.run(turn("withdrawn", Effect.void)))
      const more = yield* Effect.forEach(Array.from({ length: 14 }), () => Effect.fork(other.run(Effect.void)))
      yield* Effect.yieldNow()
      assert.deepInclude({ ...(yield* Effect.flip(other.run(Effect.void))) }, { _tag: "ThreadBusy", waiting: 16 })
      yield* Fiber.interrupt(withdrawn)
      yield* Deferred.succeed(gate, undefined)
      yield* Fiber.joinAll([first, second, ...more])
      const texts = (yield* thread.context).map(({ content }) => content[0]?.type === "text" && content[0].text)
      assert.deepStrictEqual(texts, ["first", "first answered", "second", "second answered"])
      assert.strictEqual(textOf(root, id).trimEnd().split("\n").length, 4)
    })
  )
)

it("S7.11: after a compaction the context is its summary and each message from firstKeptSeq on, once", () => {
  forAll([conversation, conversation, fc.nat()], 40, (before, after, kept) => {
    const old = recordsOf(before)
    const firstKeptSeq = 1 + (kept % (old.length + 1))
    const compaction = {
      recordType: "compaction",
      schemaVersion: 1,
      seq: old.length + 1,
      firstKeptSeq,
      summary: "the summary",
      tokensBefore: 0,
      readFiles: [],
      modifiedFiles: [],
      timestamp: "2025-02-11T11:00:00Z"
    } as const
    const context = contextOf([...old, compaction, ...recordsOf(after, old.length + 2)])
    assert.deepStrictEqual(
      context[0],
      user(
        "The conversation history before this point was compacted into the following summary:\n<summary>\nthe summary\n</summary>"
      )
    )
    assert.deepStrictEqual(context.slice(1), [...before.slice(firstKeptSeq - 1), ...after])
    const later = { ...compaction, seq: 10_000, firstKeptSeq: 10_001, summary: "later" }
    assert.strictEqual(contextOf([...old, compaction, ...recordsOf(after, old.length + 2), later]).length, 1)
  })
})

it.effect("FM-425: whatever messages later compactions keep, an opened thread shows what its records show", () =>
  Effect.promise(() =>
    fc.assert(
      fc.asyncProperty(
        fc.array(fc.option(fc.nat({ max: 14 }), { freq: 3 }), { maxLength: 14 }),
        (steps: ReadonlyArray<number | null>) => {
          const records = steps.map((firstKeptSeq, at): ThreadRecord => {
            const base = { schemaVersion: 1 as const, seq: at + 1, timestamp: "2025-02-11T10:00:00Z" }
            return firstKeptSeq === null
              ? { recordType: "message", ...base, ...user(`${at + 1}`) }
              : {
                  recordType: "compaction",
                  ...base,
                  firstKeptSeq,
                  summary: `${at + 1}`,
                  tokensBefore: 1,
                  readFiles: [],
                  modifiedFiles: []
                }
          })
          const opened = onDisk((root) =>
            Effect.gen(function* () {
              writeThread(root, linesOf(records))
              const thread = yield* (yield* store).open(threadID)
              assert.deepStrictEqual(yield* thread.context, contextOf(records))
              const { messageCount, nextSeq } = yield* thread.metadata
              assert.deepStrictEqual(
                [messageCount, nextSeq],
                [steps.filter((step) => step === null).length, steps.length + 1]
              )
            })
          )
          return Effect.runPromise(Effect.scoped(opened))
        }
      ),
      { numRuns: cases(40) }
    )
  )
)

it.scoped("FM-423: a message that could not be read back is refused, with the others of its interaction", () =>
  onDisk((root) =>
    Effect.gen(function* () {
      const threads = yield* store
      const { id } = yield* threads.create({ model: "sonnet" })
      const thread = yield* threads.open(id)
      const deep = Array.from({ length: 600 }).reduce<Record<string, unknown>>((inner) => ({ inner }), {})
      const calls: ThreadMessage = {
        role: "assistant",
        content: [{ type: "toolCall", id: "c", name: "bash", arguments: deep }]
      }
      assert.strictEqual((yield* Effect.flip(thread.append([user("go"), calls])))._tag, "RecordRefused")
      assert.strictEqual(textOf(root, id), "")
      const [written] = yield* thread.append([user("again")])
      assert.strictEqual(written?.seq, 1)
    })
  )
)

it.scoped("S7.12: the content of each record is an array of blocks, never a text", () =>
  onDisk((root) =>
    Effect.gen(function* () {
      const threads = yield* store
      const { id } = yield* threads.create({ model: "sonnet" })
      const thread = yield* threads.open(id)
      yield* thread.append([user("text"), call("a", "read", "x"), result("a"), answer("")])
      for (const line of textOf(root, id).trimEnd().split("\n")) {
        const record = JSON.parse(line) as Record<string, unknown>
        assert.isArray(record["content"])
        assert.strictEqual(decodeRecord(record)._tag, "Right")
        assert.strictEqual(decodeRecord({ ...record, content: "bare" })._tag, "Left")
      }
    })
  )
)

it("S7.13: a cut never separates a call from its result, with parallel, late and missing results", () => {
  const disturbed = fc
    .tuple(conversation, fc.array(fc.tuple(fc.nat(), fc.nat()), { maxLength: 3 }), fc.array(fc.nat(), { maxLength: 2 }))
    .map(([messages, moves, losses]) => {
      const list = [...messages]
      // A result may arrive later than the next message, or never.
      for (const [from, by] of moves) {
        const at = from % list.length
        const [moved] = list[at]?.role === "toolResult" ? list.splice(at, 1) : []
        if (moved !== undefined) list.splice(Math.min(list.length, at + (by % 4)), 0, moved)
      }
      for (const loss of losses) if (list[loss % list.length]?.role === "toolResult") list.splice(loss % list.length, 1)
      return list
    })
  forAll([disturbed, fc.nat(300)], 120, (messages, keepRecentTokens) => {
    const records = recordsOf(messages)
    const plan = planOf(records, { enabled: true, reserveTokens: 0, keepRecentTokens })
    if (plan === undefined) return
    const kept = records.slice(plan.summarized.length)
    assert.deepStrictEqual([...plan.summarized, ...kept], records)
    const results = new Set(
      kept.flatMap((record) => (record.recordType === "message" ? (record.toolCallId ?? []) : []))
    )
    for (const { id } of plan.summarized.flatMap(({ content }) => callsOf(content))) assert.isFalse(results.has(id))
    const first = kept[0]
    assert.isTrue(first?.recordType === "message" && first.role !== "toolResult")
  })
})

/** Compacts a thread that a model summarizes with these answers; returns what the model was asked. */
const compacting = (messages: ReadonlyArray<ReadonlyArray<ThreadMessage>>, answers: ReadonlyArray<string>) =>
  onDisk((root) =>
    Effect.gen(function* () {
      const threads = yield* store
      const { id } = yield* threads.create({ model: "sonnet" })
      const thread = yield* threads.open(id)
      const asked: Array<SummaryRequest> = []
      const records = []
      for (const part of messages) {
        const [first, ...rest] = part
        if (first !== undefined) yield* thread.append([first, ...rest])
        const compacted = thread.compact(
          (request) => Effect.sync(() => answers[asked.push(request) - 1] ?? ""),
          keepLittle
        )
        records.push(yield* Effect.either(compacted))
      }
      return {
        asked,
        records: records.map((record) => (record._tag === "Right" ? Option.getOrUndefined(record.right) : record.left)),
        lines: textOf(root, id)
      }
    })
  )

const firstPart = [call("1", "read", "a.ts"), result("1"), call("2", "edit", "b.ts"), result("2"), user("and now?")]
const secondPart = [
  call("3", "read_file", "b.ts"),
  result("3"),
  call("4", "write_file", "a.ts"),
  result("4"),
  call("5", "list_directory", "src"),
  result("5"),
  call("6", "read", "c.ts"),
  result("6"),
  user("and then?")
]

it.scoped("S7.14: a summary has the sections of the format; an answer without them is no compaction", () =>
  Effect.gen(function* () {
    assert.deepStrictEqual(missingSections(summary("x")), [])
    const asked = yield* compacting([firstPart], ["no sections", summary("mended")])
    assert.strictEqual(asked.asked.length, 2)
    assert.include(asked.asked[1]?.prompt, "Goal, Progress, Key Decisions, Next Steps, Critical Context")
    const failed = yield* compacting([firstPart], ["", "still no sections"])
    assert.deepInclude(
      { ...failed.records[0] },
      {
        _tag: "SummaryUnusable",
        missing: ["Goal", "Progress", "Key Decisions", "Next Steps", "Critical Context"]
      }
    )
    assert.notInclude(failed.lines, "compaction")
    for (const heading of ["Goal", "Progress", "Key Decisions", "Next Steps", "Critical Context"]) {
      assert.include(asked.asked[0]?.prompt, `## ${heading}\n`)
    }
  })
)

it.scoped("S7.15: a second compaction also lists the files of the first", () =>
  Effect.gen(function* () {
    const { records } = yield* compacting([firstPart, secondPart], [summary("one"), summary("two")])
    assert.deepInclude({ ...records[0] }, { readFiles: ["a.ts"], modifiedFiles: ["b.ts"] })
    assert.deepInclude({ ...records[1] }, { readFiles: ["c.ts"], modifiedFiles: ["a.ts", "b.ts"] })
    assert.include(
      JSON.stringify(records[1]),
      "<read-files>\\nc.ts\\n</read-files>\\n\\n<modified-files>\\na.ts\\nb.ts\\n</modified-files>"
    )
  })
)

it.scoped("S7.16: a file that was read and modified is listed as modified only", () =>
  Effect.gen(function* () {
    const part = [call("1", "read", "a.ts"), result("1"), call("2", "edit", "a.ts"), result("2"), user("and now?")]
    const { records } = yield* compacting([part], [summary("one")])
    assert.deepInclude({ ...records[0] }, { readFiles: [], modifiedFiles: ["a.ts"] })
  })
)

it.scoped(
  "S7.17: a later compaction asks with the update prompt, the earlier summary and only what came after it",
  () =>
    Effect.gen(function* () {
      const { asked } = yield* compacting([firstPart, secondPart], [summary("one"), summary("two")])
      assert.include(asked[0]?.prompt, "Create a structured context\ncheckpoint summary")
      assert.include(asked[1]?.prompt, "NEW conversation messages")
      assert.include(asked[1]?.prompt, `<previous-summary>\n${summary("one")}\n</previous-summary>`)
      assert.include(asked[1]?.prompt, "PRESERVE all existing information from the previous summary")
      assert.notInclude(asked[1]?.prompt, 'edit(path="b.ts")')
      assert.include(asked[1]?.prompt, "[User]: and now?")
    })
)

it("S7.18: messages for a summary are flat, labelled text, not JSON", () => {
  const records = podLines
    .map((line) => JSON.parse(line) as unknown)
    .map((value) => {
      const record = decodeRecord(value)
      if (record._tag === "Left" || record.right.recordType !== "message") throw new Error("not a message")
      return record.right
    })
  const text = `[User]: What pods are running?
[Assistant]: Let me check.
[Assistant tool calls]: bash(command="kubectl get pods")
[Tool result]: NAME   READY   STATUS
nginx  1/1     Running
[Assistant]: There is one pod running: nginx, with status Running.`
  assert.strictEqual(serialize(records), text)
  const request = requestOf({
    summarized: records,
    previous: undefined,
    firstKeptSeq: 5,
    tokensBefore: 0,
    files: { readFiles: [], modifiedFiles: [] }
  })
  assert.isTrue(request.prompt.startsWith(`<conversation>\n${text}\n</conversation>\n\n`))
  assert.notInclude(request.prompt, '"role"')
})
