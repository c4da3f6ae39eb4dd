/** Finds entry logs by their first bytes. Spec: FM-90..FM-97 in specs/formats.md. */
import { mkdirSync, utimesSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Effect, FastCheck as fc, Option, Stream } from "effect"
import * as Breadcrumb from "../../../packages/formats/src/discovery/Breadcrumb.ts"
import * as Discovery from "../../../packages/formats/src/discovery/Discovery.ts"
import {
  foldersOf,
  idInName,
  logName,
  prefixBytes,
  seedFolder,
  shortName,
  summaryOf
} from "../../../packages/formats/src/discovery/Discovery.ts"
import * as FileSessionStorage from "../../../packages/formats/src/storage/FileSessionStorage.ts"
import { SessionStorage } from "../../../packages/formats/src/storage/SessionStorage.ts"
import { forAll } from "../../support/Cases.ts"
import { temporaryFolder } from "../../support/Database.ts"

const places = { home: "/home/me", temp: "/tmp" }

it("FM-90: the folder of a directory is written as the seed has it, and read in all forms", () => {
  assert.strictEqual(seedFolder("/work/pi"), "--work-pi--")
  assert.strictEqual(seedFolder("C:\\work\\pi"), "--C--work-pi--")
  assert.deepStrictEqual(foldersOf("/home/me/a/b", places), ["--home-me-a-b--", "-a-b"])
  assert.deepStrictEqual(foldersOf("/home/me", places), ["--home-me--", "-"])
  assert.deepStrictEqual(foldersOf("/tmp/x", places), ["--tmp-x--", "-tmp-x"])
  assert.deepStrictEqual(foldersOf("/home/mean", places), ["--home-mean--"])
})

it("FM-91: a log's name sorts by its time and holds its id", () => {
  const name = logName(Date.UTC(2026, 1, 16, 10, 20, 30, 5), "1f9d2a6b9c0d1234")
  assert.strictEqual(name, "2026-02-16T10-20-30-005Z_1f9d2a6b9c0d1234.jsonl")
  assert.strictEqual(idInName(name), "1f9d2a6b9c0d1234")
})

const header = (fields: object = {}) =>
  JSON.stringify({
    type: "session",
    version: 3,
    id: "abc123",
    timestamp: "2026-02-16T10:20:30.000Z",
    cwd: "/w",
    ...fields
  })
const prompt = (content: unknown, more = "") =>
  `{"type":"message","id":"1","parentId":null,"timestamp":"x","message":{"role":"user","content":${JSON.stringify(content)}${more}}}`

const summary = (text: string) => {
  const bytes = Buffer.from(text)
  const prefix = new TextDecoder().decode(bytes.subarray(0, prefixBytes), { stream: true })
  return summaryOf("/s/x_abc123.jsonl", { text: prefix, modifiedAt: 1, sizeBytes: bytes.length })
}

it("FM-92: a log is named by its title, else its first prompt, else its id, in one line of 40 characters", () => {
  const names = [
    [header({ title: "A\ttitle" }), prompt("question")],
    [header(), '{"type":"session_info","id":"2","name":"pi title"}', prompt("question")],
    [header(), '{"type":"model_change","id":"0"}', prompt("a\nquestion \u0007")],
    [
      header(),
      prompt([
        { type: "image", data: "" },
        { type: "text", text: "blocks" }
      ])
    ],
    [header(), prompt("x".repeat(50))],
    [header(), prompt(`${"y".repeat(38)}😀😀`)],
    [header(), prompt("z".repeat(prefixBytes))],
    [header()],
    ['{"type":"title","v":1,"title":"slot","pad":""}', header({ title: "old" })]
  ].map((lines) => summary(`${lines.join("\n")}\n`)?.name)
  assert.deepStrictEqual(names, [
    "A title",
    "pi title",
    "a question",
    "blocks",
    `${"x".repeat(39)}…`,
    `${"y".repeat(38)}😀😀`,
    `${"z".repeat(39)}…`,
    "abc123",
    "slot"
  ])
  assert.strictEqual([...shortName("😀".repeat(41))].length, 40)
})

it("FM-92: whatever bytes a file begins with, it is a log with a name or none", () => {
  const start = fc.constantFrom("", header(), `${header()}\n`, `${header()}\n${prompt('"\\u00e9"'.repeat(500))}`)
  forAll([start, fc.string({ unit: "binary" }), fc.nat(5000)], 80, (start, noise, cut) => {
    const found = summary((start + noise).slice(0, cut))
    if (found !== undefined) assert.isAtLeast(found.name.length, 1)
  })
})

/** Writes logs in folders of a root; returns it. */
const logsIn = (logs: ReadonlyArray<readonly [folder: string, name: string, text: string]>) =>
  Effect.map(temporaryFolder, (folder) => {
    const sessions = join(folder, "sessions")
    logs.forEach(([project, name, text], at) => {
      mkdirSync(join(sessions, project), { recursive: true })
      writeFileSync(join(sessions, project, name), text)
      utimesSync(join(sessions, project, name), 1000 + at, 1000 + at)
    })
    return { sessions, home: "/home/me", temp: "/tmp" }
  })

const names = (logs: ReadonlyArray<{ readonly path: string }>) => logs.map(({ path }) => path.split("/").at(-1))

it.scoped("FM-93: recent logs are the last changed, the newest first; other files are passed over", () =>
  Effect.gen(function* () {
    const root = yield* logsIn([
      ["p", "a_1.jsonl", header({ id: "1" })],
      ["p", "b_2.jsonl", header({ id: "2" })],
      ["p", "c_3.jsonl", "not a log"],
      ["p", "d.txt", header({ id: "4" })],
      ["p", "e_5.jsonl", ""]
    ])
    const folder = join(root.sessions, "p")
    assert.deepStrictEqual(names(yield* Discovery.recent(folder, 10)), ["b_2.jsonl", "a_1.jsonl"])
    assert.deepStrictEqual(names(yield* Discovery.recent(folder, 1)), ["b_2.jsonl"])
    assert.strictEqual(Option.getOrThrow(yield* Discovery.mostRecent(folder)).id, "2")
    assert.deepStrictEqual(yield* Discovery.recent(join(root.sessions, "missing"), 10), [])
  }).pipe(Effect.provide(FileSessionStorage.layer))
)

it.scoped("FM-94: the logs of a directory are those whose header names it, in any form of folder", () =>
  Effect.gen(function* () {
    const root = yield* logsIn([
      ["--home-me-a-b--", "1.jsonl", header({ id: "1", cwd: "/home/me/a-b" })],
      ["--home-me-a-b--", "2.jsonl", header({ id: "2", cwd: "/home/me/a/b" })],
      ["-a-b", "3.jsonl", header({ id: "3", cwd: "/home/me/a/b" })],
      ["--other--", "4.jsonl", header({ id: "4", cwd: "/other" })]
    ])
    assert.deepStrictEqual(names(yield* Discovery.list(root, "/home/me/a/b")), ["3.jsonl", "2.jsonl"])
    assert.deepStrictEqual(names(yield* Discovery.listAll(root)), ["4.jsonl", "3.jsonl", "2.jsonl", "1.jsonl"])
  }).pipe(Effect.provide(FileSessionStorage.layer))
)

it.scoped("FM-95: a prefix of an id or a name finds one log, those of the directory first; several are named", () =>
  Effect.gen(function* () {
    const root = yield* logsIn([
      ["--w--", "2026_aa11.jsonl", header({ id: "AA11" })],
      ["--w--", "2026_aa1.jsonl", header({ id: "aa1" })],
      ["--v--", "2025_aa22.jsonl", header({ id: "aa22", cwd: "/v" })],
      ["--v--", "2025_bb33.jsonl", header({ id: "bb33", cwd: "/v" })]
    ])
    const found = (prefix: string, cwd = "/w") => Effect.map(Discovery.resolve(root, cwd, prefix), ({ id }) => id)
    assert.strictEqual(yield* found("aa11"), "AA11")
    assert.strictEqual(yield* found("aa1"), "aa1")
    assert.strictEqual(yield* found("aa", "/v"), "aa22")
    assert.strictEqual(yield* found("2025_B"), "bb33")
    const error = yield* Effect.flip(found("aa"))
    assert.strictEqual(error._tag, "LogAmbiguous")
    assert.include(error.message, "2026_aa11.jsonl")
    assert.include(error.message, "2026_aa1.jsonl")
    for (const prefix of ["cc", ""]) assert.strictEqual((yield* Effect.flip(found(prefix)))._tag, "LogNotFound")
  }).pipe(Effect.provide(FileSessionStorage.layer))
)

it.scoped("FM-93: a list reads 4,096 bytes of each log, whatever its size", () =>
  Effect.gen(function* () {
    const root = yield* logsIn(
      Array.from(
        { length: 200 },
        (_, n) => ["p", `${n}.jsonl`, `${header({ id: `${n}` })}\n${"x".repeat(20_000)}`] as const
      )
    )
    const disk = FileSessionStorage.make()
    const reads: Array<number> = []
    const counting = SessionStorage.of({
      ...disk,
      readText: () => Effect.dieMessage("a whole log was read"),
      readBytes: () => Stream.dieMessage("a whole log was read"),
      readStarts: (paths, bytes) =>
        Effect.suspend(() => (reads.push(...paths.map(() => bytes)), disk.readStarts(paths, bytes)))
    })
    const logs = yield* Effect.provideService(Discovery.listAll(root), SessionStorage, counting)
    assert.strictEqual(logs.length, 200)
    assert.deepStrictEqual(new Set(reads), new Set([4096]))
    reads.length = 0
    yield* Effect.provideService(Discovery.recent(join(root.sessions, "p"), 5), SessionStorage, counting)
    assert.strictEqual(reads.length, 5)
  })
)

it("FM-96: a terminal is named by its device, else by its environment; the name is safe in a path", () => {
  assert.deepStrictEqual(Breadcrumb.terminalID("/dev/pts/3", { TMUX_PANE: "%1" }), Option.some("pts-3"))
  assert.deepStrictEqual(Breadcrumb.terminalID(undefined, { TMUX_PANE: "%1" }), Option.some("tmux-pane-1"))
  assert.deepStrictEqual(Breadcrumb.terminalID("", { TERM_SESSION_ID: "../../x" }), Option.some("term-session-id-x"))
  assert.deepStrictEqual(Breadcrumb.terminalID(undefined, {}), Option.none())
})

it.scoped("FM-97: a breadcrumb is two lines, and is followed if its directory is this one and its log exists", () =>
  Effect.gen(function* () {
    const folder = yield* temporaryFolder
    const terminal = { folder: join(folder, "terminals"), id: "pts-1" }
    const log = join(folder, "log.jsonl")
    assert.deepStrictEqual(yield* Breadcrumb.read(terminal, "/w"), Option.none())
    yield* Breadcrumb.write(terminal, "/w", log)
    const text = yield* (yield* SessionStorage).readText(join(folder, "terminals/pts-1"))
    assert.strictEqual(text, `/w\n${log}\n`)
    assert.deepStrictEqual(yield* Breadcrumb.read(terminal, "/w"), Option.none())
    writeFileSync(log, "")
    assert.deepStrictEqual(yield* Breadcrumb.read(terminal, "/w"), Option.some(log))
    assert.deepStrictEqual(yield* Breadcrumb.read(terminal, "/v"), Option.none())
  }).pipe(Effect.provide(FileSessionStorage.layer))
)
