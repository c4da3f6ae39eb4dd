/** Sessions of entry logs, open for writing. Spec: FM-75, FM-87..FM-89, FM-98, FM-99, FM-125..FM-129. */
import { assert, it } from "@effect/vitest"
import { Effect, Layer, Logger, Option, type Scope, Struct, TestClock } from "effect"
import { type BlobStore, layerMemory } from "../../../packages/formats/src/blob/BlobStore.ts"
import * as Breadcrumb from "../../../packages/formats/src/discovery/Breadcrumb.ts"
import type { Body } from "../../../packages/formats/src/entry/Entry.ts"
import * as SessionLogs from "../../../packages/formats/src/manager/SessionLogs.ts"
import type { SessionManager } from "../../../packages/formats/src/manager/SessionManager.ts"
import * as MemorySessionStorage from "../../../packages/formats/src/storage/MemorySessionStorage.ts"
import { SessionStorage, StorageFailed } from "../../../packages/formats/src/storage/SessionStorage.ts"

const root = { sessions: "/agent/sessions", home: "/home/me", temp: "/tmp" }
const cwd = "/work/a"

const user = (text: string): Body => ({ type: "message", message: { role: "user", content: text, timestamp: 1 } })
const answer = (text: string): Body => ({
  type: "message",
  message: { role: "assistant", content: [{ type: "text", text }], provider: "p", model: "m", timestamp: 2 }
})

/** The operations that fail, by name; a test changes it. */
const failing = new Set<string>()
const full = (path: string) =>
  new StorageFailed({ operation: "write", path, code: "ENOSPC", details: "the disk is full" })

/** A storage in memory whose writes fail on request. */
const storage = Layer.sync(SessionStorage, () => {
  const memory = MemorySessionStorage.make()
  const unless = <A, E, R>(name: string, path: string, use: Effect.Effect<A, E, R>) =>
    Effect.suspend((): Effect.Effect<A, E | StorageFailed, R> => (failing.has(name) ? Effect.fail(full(path)) : use))
  return SessionStorage.of({
    ...memory,
    writeLines: (path, lines, tail) => unless("writeLines", path, memory.writeLines(path, lines, tail)),
    rename: (from, to) => unless(from.endsWith(".jsonl") ? "rename" : "rename folder", from, memory.rename(from, to)),
    openWriter: (path) =>
      Effect.map(memory.openWriter(path), (writer) => ({
        ...writer,
        writeLine: (line) => unless("writeLine", path, writer.writeLine(line))
      }))
  })
})

const it_ = <E>(title: string, test: Effect.Effect<unknown, E, SessionStorage | BlobStore | Scope.Scope>) =>
  it.scoped(title, () =>
    test.pipe(Effect.ensuring(Effect.sync(() => failing.clear())), Effect.provide(Layer.merge(storage, layerMemory)))
  )

const linesAt = Effect.fnUntraced(function* (path: string | undefined) {
  const text = yield* (yield* SessionStorage).readText(path ?? "")
  assert.isTrue(text.endsWith("\n"))
  return text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>)
})

const exists = (path: string | undefined) => Effect.flatMap(SessionStorage, (files) => files.exists(path ?? ""))

/** A session with a question and an answer. */
const answered = Effect.gen(function* () {
  const session = yield* SessionLogs.create(root, cwd)
  const question = yield* session.append(user("question"))
  const reply = yield* session.append(answer("reply"))
  return { session, question, reply }
})

it_(
  "FM-87: nothing is written before the first answer, then one header and all entries, then a line per entry",
  Effect.gen(function* () {
    yield* TestClock.setTime(Date.UTC(2026, 1, 16, 10, 20, 30))
    const session = yield* SessionLogs.create(root, cwd)
    assert.match(session.path() ?? "", /^\/agent\/sessions\/--work-a--\/2026-02-16T10-20-30-000Z_[0-9a-f]{16}\.jsonl$/)
    yield* session.append(user("question"))
    yield* session.setTitle("A title")
    yield* session.flush
    assert.isFalse(yield* exists("/agent/sessions"))
    yield* session.append(answer("reply"))
    const first = yield* linesAt(session.path())
    assert.deepStrictEqual(first.map(Struct.get("type")), ["session", "message", "message"])
    assert.deepInclude(first[0], { version: 3, cwd, title: "A title", titleSource: "user" })
    yield* session.append({ type: "custom", customType: "x", data: { a: 1 } })
    const second = yield* linesAt(session.path())
    assert.deepStrictEqual(second.slice(0, 3), first)
    assert.deepStrictEqual(
      second.slice(1).map(({ id, parentId }) => [id, parentId]),
      session.entries().map(({ id }, at, all) => [id, all[at - 1]?.id ?? null])
    )
  })
)

it_(
  "FM-88: an append that fails changes neither memory nor file, is logged once and fails all later ones",
  Effect.gen(function* () {
    const logged: Array<unknown> = []
    const logger = Logger.make(({ message }) => void logged.push(message))
    yield* Effect.gen(function* () {
      const { reply, session } = yield* answered
      const [before, entries] = [yield* linesAt(session.path()), session.entries().length]
      failing.add("writeLine")
      const error = yield* Effect.flip(session.append(user("lost")))
      assert.deepInclude({ ...error }, { _tag: "StorageFailed", code: "ENOSPC" })
      assert.strictEqual(session.leaf(), reply.id)
      assert.strictEqual(session.entries().length, entries)
      failing.clear()
      assert.deepStrictEqual(yield* Effect.flip(session.append(user("later"))), error)
      assert.deepStrictEqual(yield* Effect.flip(session.flush), error)
      assert.deepStrictEqual(yield* Effect.flip(session.setTitle("new")), error)
      assert.isUndefined(session.header()["title"])
      assert.deepStrictEqual(yield* linesAt(session.path()), before)
    }).pipe(Effect.provide(Logger.replace(Logger.defaultLogger, logger)))
    assert.strictEqual(logged.length, 1)
    assert.include(String(logged[0]), ".jsonl is not written any more: cannot write")
  })
)

it_(
  "FM-88: a first answer that cannot be written leaves the session unwritten",
  Effect.gen(function* () {
    const session = yield* SessionLogs.create(root, cwd)
    yield* session.append(user("question"))
    failing.add("writeLines")
    yield* Effect.flip(session.append(answer("reply")))
    assert.strictEqual(session.entries().length, 1)
    assert.isFalse(session.isWritten())
    assert.isFalse(yield* exists(session.path()))
  })
)

it_(
  "FM-88: concurrent appends form one chain, in memory and in the file",
  Effect.gen(function* () {
    const { session } = yield* answered
    yield* Effect.forEach(Array.from({ length: 20 }), (_, n) => session.append(user(`${n}`)), {
      concurrency: "unbounded"
    })
    const lines = (yield* linesAt(session.path())).slice(1)
    lines.reduce((parent: unknown, { id, parentId }) => (assert.strictEqual(parentId, parent), id), null)
    assert.strictEqual(lines.length, 22)
  })
)

it_(
  "FM-89: a branch moves the leaf only; the next entry is a sibling; an unknown entry is named",
  Effect.gen(function* () {
    const { question, reply, session } = yield* answered
    const before = yield* linesAt(session.path())
    yield* session.branch(question.id)
    assert.deepStrictEqual(yield* linesAt(session.path()), before)
    const other = yield* session.append(answer("another reply"))
    assert.strictEqual(other.parentId, question.id)
    assert.deepStrictEqual(
      session.tree()[0]?.children.map(({ entry }) => entry.id),
      [reply.id, other.id]
    )
    assert.deepInclude({ ...(yield* Effect.flip(session.branch("nothing"))) }, { _tag: "EntryNotFound", id: "nothing" })
    assert.strictEqual(session.leaf(), other.id)
    yield* session.resetLeaf
    assert.strictEqual((yield* session.append(user("new root"))).parentId, null)
  })
)

it_(
  "FM-89: a branch with a summary appends it below the target, or as a root",
  Effect.gen(function* () {
    const { question, session } = yield* answered
    const summary = yield* session.branchWithSummary(question.id, "left", { note: 1 })
    assert.deepInclude(summary.record, {
      parentId: question.id,
      fromId: question.id,
      summary: "left",
      details: { note: 1 }
    })
    const atRoot = yield* session.branchWithSummary(null, "all left")
    assert.deepInclude(atRoot.record, { parentId: null, fromId: "root" })
    assert.deepStrictEqual((yield* session.context()).messages.map(Struct.get("role")), ["branchSummary"])
    const before = session.entries().length
    yield* Effect.flip(session.branchWithSummary("nothing", "x"))
    assert.strictEqual(session.entries().length, before)
    assert.strictEqual(session.leaf(), atRoot.id)
  })
)

it_(
  "FM-98: a label names an entry until it is cleared; an unknown target is refused",
  Effect.gen(function* () {
    const { question, session } = yield* answered
    yield* session.setLabel(question.id, " check\npoint ")
    assert.strictEqual(session.label(question.id), "check point")
    yield* session.setLabel(question.id)
    assert.isUndefined(session.label(question.id))
    assert.strictEqual((yield* Effect.flip(session.setLabel("nothing", "x")))._tag, "EntryNotFound")
  })
)

it_(
  "FM-98: a title is one line; a person's title stands against automatic ones, also after reopening",
  Effect.gen(function* () {
    const { session } = yield* answered
    assert.isTrue(yield* session.setTitle("automatic", "auto"))
    assert.isTrue(yield* session.setTitle(" my\u0007 own\n title "))
    assert.isFalse(yield* session.setTitle("automatic again", "auto"))
    assert.deepInclude((yield* linesAt(session.path()))[0], { title: "my own title", titleSource: "user" })
    assert.strictEqual((yield* Effect.flip(session.setTitle(" \n ")))._tag, "TitleEmpty")
    yield* session.append(user("after the rewrite"))
    assert.strictEqual((yield* linesAt(session.path())).length, 4)
  })
)

/** Runs on the log of a session that was closed. */
const reopened = <A, E, R>(
  write: Effect.Effect<SessionManager, E, R | Scope.Scope>,
  use: (session: SessionManager) => Effect.Effect<A, E, R>
) =>
  Effect.gen(function* () {
    const path = yield* Effect.scoped(Effect.map(write, (session) => session.path() ?? ""))
    return yield* Effect.flatMap(SessionLogs.open(path, "/elsewhere"), use)
  })

it_(
  "FM-99: a reopened session has the same entries; its leaf is the last of the file",
  Effect.gen(function* () {
    const written = yield* Effect.scoped(
      Effect.map(answered, ({ session }) => ({
        path: session.path() ?? "",
        entries: session.entries(),
        header: session.header()
      }))
    )
    const session = yield* SessionLogs.open(written.path, "/elsewhere")
    assert.deepStrictEqual(session.entries(), written.entries)
    assert.deepStrictEqual(session.header(), written.header)
    assert.strictEqual(session.leaf(), written.entries.at(-1)?.id)
    assert.strictEqual((yield* Effect.flip(SessionLogs.open(written.path, cwd)))._tag, "SessionLocked")
  })
)

it_(
  "FM-99: a missing or empty file becomes a new session; a file that is not a session stays as it is",
  Effect.gen(function* () {
    const files = yield* SessionStorage
    yield* files.ensureDir("/x")
    yield* files.writeText("/x/empty.jsonl", "")
    for (const path of ["/x/empty.jsonl", "/x/missing.jsonl"]) {
      const session = yield* SessionLogs.open(path, cwd)
      yield* session.append(answer("reply"))
      assert.deepInclude((yield* linesAt(path))[0], { type: "session", cwd })
    }
    yield* files.writeText("/x/other.jsonl", '{"type":"event"}\n')
    assert.strictEqual((yield* Effect.flip(SessionLogs.open("/x/other.jsonl", cwd)))._tag, "NotASession")
    yield* files.writeText("/x/newer.jsonl", '{"type":"session","id":"a","version":4}\n')
    assert.strictEqual((yield* Effect.flip(SessionLogs.open("/x/newer.jsonl", cwd)))._tag, "SessionVersionTooNew")
    assert.strictEqual(yield* files.readText("/x/other.jsonl"), '{"type":"event"}\n')
  })
)

it_(
  "FM-99: a log of version 1 is migrated at once, and kept as it was beside it",
  Effect.gen(function* () {
    const files = yield* SessionStorage
    const old = [
      '{"type":"session","id":"old","timestamp":"2025-01-01T00:00:00Z","cwd":"/work/a","branchedFrom":"x"}',
      '{"type":"message","timestamp":"2025-01-01T00:00:01Z","message":{"role":"hookMessage","content":"a"}}',
      "damaged",
      '{"type":"later","extra":1}'
    ].join("\n")
    yield* files.ensureDir("/x")
    yield* files.writeText("/x/old.jsonl", old)
    const session = yield* SessionLogs.open("/x/old.jsonl", cwd)
    const lines = yield* linesAt("/x/old.jsonl")
    assert.deepInclude(lines[0], { version: 3, branchedFrom: "x" })
    assert.deepStrictEqual(lines.slice(1).map(Struct.get("parentId")), [null, lines[1]?.["id"]])
    assert.deepInclude(lines[2], { type: "later", extra: 1 })
    assert.strictEqual(yield* files.readText("/x/old.jsonl.v1.bak"), old)
    assert.deepStrictEqual((yield* session.context()).messages.map(Struct.get("role")), ["custom"])
  })
)

it_(
  "FM-99: a rewrite of a log with damaged lines keeps the file as it was",
  Effect.gen(function* () {
    const files = yield* SessionStorage
    const text = '{"type":"session","version":3,"id":"a","cwd":"/x"}\ndamaged\n{"type":"unknown","kept":1}\n'
    yield* files.ensureDir("/x")
    yield* files.writeText("/x/a.jsonl", text)
    const session = yield* SessionLogs.open("/x/a.jsonl", cwd)
    assert.isFalse(yield* exists("/x/a.jsonl.damaged.bak"))
    yield* session.setTitle("title")
    assert.strictEqual(yield* files.readText("/x/a.jsonl.damaged.bak"), text)
    assert.deepStrictEqual((yield* linesAt("/x/a.jsonl")).map(Struct.get("type")), ["session", "unknown"])
  })
)

it_(
  "FM-421: a rewrite keeps each damaged state of a log in a file of its own",
  Effect.gen(function* () {
    const files = yield* SessionStorage
    const path = "/x/a.jsonl"
    const text = '{"type":"session","version":3,"id":"a","cwd":"/x"}\ndamaged\n'
    yield* files.ensureDir("/x")
    const states = [text, `${text}again\n`]
    for (const state of states) {
      yield* files.writeText(path, state)
      yield* Effect.scoped(Effect.flatMap(SessionLogs.open(path, cwd), (session) => session.setTitle("title")))
    }
    const kept = yield* Effect.forEach(["damaged.bak", "damaged.2.bak"], (name) => files.readText(`${path}.${name}`))
    assert.deepStrictEqual(kept, states)
  })
)

it_(
  "FM-422: a title keeps the lines that another tool appended meanwhile, also one that is not complete yet",
  Effect.gen(function* () {
    const files = yield* SessionStorage
    const { reply, session } = yield* answered
    const path = session.path() ?? ""
    const other = { type: "message", id: "other", parentId: reply.id, message: { role: "user", content: "other" } }
    yield* Effect.scoped(
      Effect.flatMap(files.openWriter(path), (writer) => writer.writeLine(JSON.stringify({ ...other, timestamp: "" })))
    )
    yield* session.setTitle("title")
    assert.strictEqual(session.entry("other")?.parentId, reply.id)
    assert.strictEqual(session.leaf(), reply.id)
    const text = yield* files.readText(path)
    yield* files.writeText(path, `${text}{"type":"mess`)
    yield* session.setTitle("another title")
    const again = yield* files.readText(path)
    assert.isTrue(again.endsWith('"timestamp":""}\n{"type":"mess'))
    assert.include(again.split("\n")[0] ?? "", '"another title"')
    yield* session.append(user("more"))
    assert.isTrue((yield* files.readText(path)).startsWith(`${again}\n{`))
  })
)

/** A value that is nested so deeply. */
const nested = (levels: number): unknown => Array.from({ length: levels }).reduce((inner) => [inner], 1)

it_(
  "FM-423: every entry that is acknowledged can be read back; others are refused and change nothing",
  Effect.gen(function* () {
    const files = yield* SessionStorage
    const endless: Array<unknown> = []
    endless.push(endless)
    const lines = Array.from({ length: 140 }, () => "x".repeat(490_000))
    const values = [...Array.from({ length: 12 }, (_, n) => nested(492 + n)), nested(20_000), endless, 1n, lines]
    const { path, entries } = yield* Effect.scoped(
      Effect.gen(function* () {
        const unwritten = yield* SessionLogs.create(root, cwd)
        const { session } = yield* answered
        for (const data of values) {
          const body: Body = { type: "custom", customType: "state", data }
          const before = [session.entries().length, yield* files.stat(session.path() ?? "")]
          const tried = yield* Effect.either(session.append(body))
          const early = yield* Effect.either(unwritten.append(body))
          assert.strictEqual(tried._tag, early._tag)
          if (tried._tag === "Right") continue
          assert.strictEqual(tried.left._tag, "RecordRefused")
          assert.deepStrictEqual([session.entries().length, yield* files.stat(session.path() ?? "")], before)
        }
        yield* session.append(user("after"))
        assert.strictEqual((yield* Effect.flip(session.setTitle("x".repeat(70_000_000))))._tag, "RecordRefused")
        yield* unwritten.append(answer("reply"))
        assert.strictEqual(unwritten.entries().length, session.entries().length - 2)
        return { path: session.path() ?? "", entries: session.entries() }
      })
    )
    assert.isAbove(entries.length, 5)
    assert.deepStrictEqual((yield* SessionLogs.open(path, cwd)).entries(), entries)
  })
)

it_(
  "FM-83: pictures and long texts of a session are in the file as they are after reopening",
  Effect.gen(function* () {
    const data = Buffer.alloc(3000, 9).toString("base64")
    const content = [
      { type: "image", data, mimeType: "image/png" },
      { type: "text", text: "x".repeat(600_000) }
    ] as const
    const message: Body = { type: "message", message: { role: "user", content: [...content], timestamp: 1 } }
    yield* reopened(
      Effect.gen(function* () {
        const { session } = yield* answered
        yield* session.append(message)
        assert.strictEqual(session.cuts().length, 1)
        const line = (yield* linesAt(session.path())).at(-1)
        assert.include(JSON.stringify(line), "blob:sha256:")
        assert.include(JSON.stringify(line), "[Session persistence truncated large content]")
        assert.include(JSON.stringify((yield* session.context()).messages.at(-1)), data)
        return session
      }),
      (session) =>
        Effect.gen(function* () {
          assert.notInclude(JSON.stringify(session.entries()), data)
          assert.include(JSON.stringify((yield* session.context()).messages.at(-1)), data)
        })
    )
  })
)

it_(
  "FM-125: a fork has all entries, the title and an id of its own, and names its parent, which stays as it is",
  Effect.gen(function* () {
    const { session } = yield* answered
    yield* session.setTitle("title")
    const before = yield* linesAt(session.path())
    const fork = yield* SessionLogs.fork(root, session)
    assert.deepInclude(fork.header(), { title: "title", parentSession: session.header().id })
    assert.notStrictEqual(fork.header().id, session.header().id)
    assert.deepStrictEqual((yield* linesAt(fork.path())).slice(1), before.slice(1))
    yield* fork.append(user("only in the fork"))
    assert.deepStrictEqual(yield* linesAt(session.path()), before)
    const elsewhere = yield* SessionLogs.forkFrom(root, session.path() ?? "", "/work/b")
    assert.include(elsewhere.path(), "/--work-b--/")
    assert.deepInclude(elsewhere.header(), { cwd: "/work/b", parentSession: session.header().id })
    const files = yield* SessionStorage
    yield* files.writeText("/agent/empty.jsonl", "")
    assert.strictEqual((yield* Effect.flip(SessionLogs.forkFrom(root, "/agent/empty.jsonl", cwd)))._tag, "NotASession")
    failing.add("writeLines")
    const names = yield* files.listFiles("/agent/sessions/--work-a--")
    yield* Effect.flip(SessionLogs.fork(root, session))
    assert.deepStrictEqual(yield* files.listFiles("/agent/sessions/--work-a--"), names)
  })
)

it_(
  "FM-126: a branched session is the path without labels, then labels of its entries",
  Effect.gen(function* () {
    const { question, reply, session } = yield* answered
    yield* session.setLabel(question.id, "start")
    const next = yield* session.append(user("next"))
    yield* session.branch(reply.id)
    const off = yield* session.append(user("off the path"))
    yield* session.setLabel(off.id, "off")
    const branch = yield* SessionLogs.branched(root, session, next.id)
    const lines = (yield* linesAt(branch.path())).slice(1)
    assert.deepStrictEqual(
      lines.map(({ id, parentId, targetId, type }) => (type === "label" ? [type, parentId, targetId] : [id, parentId])),
      [
        [question.id, null],
        [reply.id, question.id],
        [next.id, reply.id],
        ["label", next.id, question.id]
      ]
    )
    assert.strictEqual(branch.header()["parentSession"], session.path())
    assert.strictEqual((yield* Effect.flip(SessionLogs.branched(root, session, "nothing")))._tag, "EntryNotFound")
  })
)

it_(
  "FM-127: a move takes file, artifacts and header along; appends go on there; an unwritten session stays unwritten",
  Effect.gen(function* () {
    const files = yield* SessionStorage
    const { session } = yield* answered
    const from = session.path() ?? ""
    yield* files.ensureDir(SessionLogs.artifactsOf(from))
    yield* files.writeText(`${SessionLogs.artifactsOf(from)}/output`, "text")
    yield* SessionLogs.move(root, session, "/work/b")
    const to = session.path() ?? ""
    assert.include(to, "/--work-b--/")
    assert.isFalse(yield* files.exists(from))
    assert.strictEqual(yield* files.readText(`${SessionLogs.artifactsOf(to)}/output`), "text")
    yield* session.append(user("after"))
    const lines = yield* linesAt(to)
    assert.deepInclude(lines[0], { cwd: "/work/b" })
    assert.strictEqual(lines.length, 4)
    const lazy = yield* SessionLogs.create(root, cwd)
    yield* SessionLogs.move(root, lazy, "/work/c")
    assert.isFalse(yield* files.exists(lazy.path() ?? ""))
    yield* lazy.append(answer("reply"))
    assert.include(lazy.path(), "/--work-c--/")
    assert.deepInclude((yield* linesAt(lazy.path()))[0], { cwd: "/work/c" })
  })
)

it_(
  "FM-127: a move that fails at its second step is undone",
  Effect.gen(function* () {
    const files = yield* SessionStorage
    const { session } = yield* answered
    const from = session.path() ?? ""
    const before = yield* linesAt(from)
    yield* files.ensureDir(SessionLogs.artifactsOf(from))
    failing.add("rename folder")
    yield* Effect.flip(SessionLogs.move(root, session, "/work/b"))
    assert.strictEqual(session.path(), from)
    assert.deepStrictEqual(yield* linesAt(from), before)
    assert.deepStrictEqual(yield* files.listFiles("/agent/sessions/--work-b--"), [])
  })
)

it_(
  "FM-128: the terminal's session is continued, else the newest of the directory, else a new one",
  Effect.gen(function* () {
    const terminal = { folder: "/agent/terminal-sessions", id: "pts-1" }
    const log = Effect.map(answered, ({ session }) => session.path() ?? "")
    const first = yield* Effect.scoped(log)
    yield* TestClock.adjust("1 minute")
    const second = yield* Effect.scoped(log)
    const continued = (directory: string, at?: Breadcrumb.Terminal) =>
      Effect.scoped(Effect.map(SessionLogs.continueRecent(root, directory, at), (session) => session.path()))
    assert.strictEqual(yield* continued(cwd), second)
    yield* Breadcrumb.write(terminal, cwd, first)
    assert.strictEqual(yield* continued(cwd, terminal), first)
    assert.strictEqual(yield* continued(cwd, { ...terminal, id: "pts-2" }), second)
    yield* (yield* SessionStorage).unlink(first)
    assert.strictEqual(yield* continued(cwd, terminal), second)
    assert.notInclude([first, second], yield* continued("/work/b", terminal))
  })
)

it_(
  "FM-129: a session in memory has all operations and writes nothing",
  Effect.gen(function* () {
    const session = yield* SessionLogs.inMemory(cwd)
    const question = yield* session.append(user("question"))
    yield* session.append(answer("reply"))
    yield* session.branch(question.id)
    yield* session.setTitle("title")
    yield* SessionLogs.move(root, session, "/work/b")
    yield* session.flush
    assert.deepInclude(session.header(), { title: "title", cwd: "/work/b" })
    assert.isUndefined(session.path())
    assert.isFalse(yield* exists("/agent"))
    assert.isTrue(Option.isSome(Option.fromNullable(session.entry(question.id))))
  })
)
