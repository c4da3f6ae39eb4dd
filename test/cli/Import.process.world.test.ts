/** `daybook import` and `daybook export`, with small entry logs. */
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, beforeAll, it } from "@effect/vitest"
import { Effect } from "effect"
import { compressed, text } from "../formats/support/CompressedLogs.ts"
import { build } from "./support/Bundle.ts"
import { jsonLines, place, type Place } from "./support/Process.ts"

beforeAll(() => void build())

const at = (second: number) => new Date(1_770_000_000_000 + second * 1000).toISOString()
const token = "ghp_0123456789abcdefghijABCDEFGHIJ012345"

/** The records of a pi log in which a question has two answers, each on a branch of its own. */
const records = (cwd: string): ReadonlyArray<Readonly<Record<string, unknown>>> => {
  const answer = (id: string, text: string, second: number) => ({
    type: "message",
    id,
    parentId: "aaaa0001",
    timestamp: at(second),
    message: {
      role: "assistant",
      content: [{ type: "text", text }],
      provider: "anthropic",
      model: "claude-sonnet-4-5",
      usage: { input: 10, output: 5, cacheRead: 0, cacheWrite: 0, cost: { total: 0.25, input: 0.125, output: 0.125 } },
      stopReason: "stop",
      timestamp: 1_770_000_000_000 + second * 1000
    }
  })
  return [
    { type: "session", version: 3, id: "0b6f6c1e-0000-4000-8000-000000000001", timestamp: at(0), cwd },
    {
      type: "message",
      id: "aaaa0001",
      parentId: null,
      timestamp: at(1),
      message: { role: "user", content: [{ type: "text", text: `Use ${token}` }], timestamp: 1_770_000_001_000 }
    },
    answer("aaaa0002", "The first answer.", 2),
    answer("aaaa0003", "The second answer.", 3),
    { type: "unknown_extension", id: "aaaa0004", parentId: "aaaa0003", timestamp: at(4), data: { z: [1], a: null } }
  ]
}

/** Writes the log into a folder of the place, and returns its path and text. */
const written = (here: Place, tail = "") => {
  const [folder, path] = [join(here.root, "logs"), join(here.root, "logs", "one.jsonl")]
  const lines = records(here.cwd)
    .map((record) => `${JSON.stringify(record)}\n`)
    .join("")
  mkdirSync(folder, { recursive: true })
  writeFileSync(path, lines + tail)
  return { folder, path, lines }
}

const idOf = (stdout: string): string => /ses_[0-9a-f]+/.exec(stdout)?.[0] ?? "none"

it.scopedLive("CL-220: import prints the session, its records by kind, usage, and each problem with its place", () =>
  Effect.gen(function* () {
    const here = yield* place
    const { folder, lines, path } = written(here, '{"type":"mess')
    const before = readFileSync(path)
    const { code, stdout } = yield* here.run(["import", folder])
    assert.strictEqual(code, 0)
    assert.match(
      stdout,
      /imported ses_[0-9a-f]+ "Use ghp_\S+" from pi: 4 records \(1 prompt, 2 answers, .*20 tokens in, 10 out, \$0\.50/
    )
    assert.include(stdout, `line 6, byte ${lines.length}`)
    assert.isTrue(before.equals(readFileSync(path)))
    const listed = jsonLines((yield* here.run(["sessions", "--json"])).stdout)
    assert.deepInclude(listed[0], { id: idOf(stdout), cost: 0.5 })
  })
)

it.scopedLive("CL-220: a log that cannot be imported does not stop the others, and the exit code is 1", () =>
  Effect.gen(function* () {
    const here = yield* place
    const { folder } = written(here)
    writeFileSync(join(folder, "another.jsonl"), '{"not":"a session"}\n')
    const { code, stdout } = yield* here.run(["import", folder, "--json"])
    assert.strictEqual(code, 1)
    assert.strictEqual(jsonLines((yield* here.run(["sessions", "--json"])).stdout).length, 1)
    assert.include(stdout, "another.jsonl")
  })
)

it.scopedLive(
  "CL-220: a log that changed since its import is refused, and the error names the option to import it anew",
  () =>
    Effect.gen(function* () {
      const here = yield* place
      const { lines, path } = written(here)
      yield* here.run(["import", path])
      writeFileSync(path, lines.replace("The first answer.", "Another answer."))
      const refused = yield* here.run(["import", path])
      assert.strictEqual(refused.code, 1)
      assert.match(refused.stdout, /not imported: .*; import it as a new session, or .* \(daybook import --as-new\)\n/)
      assert.strictEqual((yield* here.run(["import", "--as-new", path])).code, 0)
    })
)

it.scopedLive(
  "CL-220, FM-444: an event stream is not imported, whatever the dialect, and the error names the log",
  () =>
    Effect.gen(function* () {
      const here = yield* place
      const { lines, path } = written(here)
      const events = [{ type: "agent_start" }, { type: "message_end", message: { role: "user", content: "go" } }]
      writeFileSync(path, lines.split("\n", 1)[0] + events.map((event) => `\n${JSON.stringify(event)}`).join(""))
      for (const dialect of ["auto", "pi"]) {
        const refused = yield* here.run(["import", "--dialect", dialect, path])
        assert.strictEqual(refused.code, 1)
        assert.match(refused.stdout, /not imported: this is the event stream of pi --mode json, .*_0b6f6c1e-.*\.jsonl/)
      }
      assert.strictEqual((yield* here.run(["sessions"])).stdout, "")
    })
)

it.scopedLive("CL-221: a path that names nothing is exit code 3, before anything is imported", () =>
  Effect.gen(function* () {
    const here = yield* place
    const { path } = written(here)
    const { code, stderr } = yield* here.run(["import", path, join(here.root, "missing.jsonl")])
    assert.strictEqual(code, 3)
    assert.include(stderr, "missing.jsonl")
    assert.deepStrictEqual(jsonLines((yield* here.run(["sessions", "--json"])).stdout), [])
  })
)

it.scopedLive("CL-222: import without a path lists the logs where the tools keep them, and imports nothing", () =>
  Effect.gen(function* () {
    const here = yield* place
    const sessions = join(here.root, ".codex", "sessions")
    mkdirSync(join(sessions, "2026", "02"), { recursive: true })
    writeFileSync(join(sessions, "rollout-2025-04-20-a.json"), "{}")
    writeFileSync(join(sessions, "2026", "02", "rollout-b.jsonl"), "1234")
    writeFileSync(join(sessions, "notes.json"), "{}")
    const { code, stdout } = yield* here.run(["import", "--json"], { env: { HOME: here.root } })
    assert.strictEqual(code, 0)
    const found = jsonLines(stdout).filter(({ logs }) => logs !== 0)
    assert.deepStrictEqual(found, [{ tool: "Codex", folder: sessions, logs: 2, bytes: 6 }])
    assert.isFalse(existsSync(here.database))
  })
)

it.scopedLive("CL-293: a compressed rollout is a log, unless the same rollout stands uncompressed beside it", () =>
  Effect.gen(function* () {
    const here = yield* place
    const archive = join(here.root, ".codex", "archived_sessions")
    mkdirSync(archive, { recursive: true })
    const name = join(archive, "rollout-2026-02-01T10-00-00-a.jsonl")
    writeFileSync(`${name}.zst`, compressed)
    writeFileSync(join(archive, "other.jsonl.zst"), compressed)
    const env = { HOME: here.root }
    const alone = yield* here.run(["import", archive, "--json"], { env })
    assert.strictEqual(alone.code, 0)
    assert.strictEqual(jsonLines(alone.stdout).length, 1)
    assert.deepInclude(jsonLines(alone.stdout)[0], { path: `${name}.zst`, dialect: "codex" })
    writeFileSync(name, text)
    const listed = jsonLines((yield* here.run(["import", "--json"], { env })).stdout).filter(({ logs }) => logs !== 0)
    assert.deepStrictEqual(listed, [{ tool: "Codex archive", folder: archive, logs: 1, bytes: text.length }])
  })
)

it.scopedLive("CL-225: if the folder of a log is gone, the session is imported all the same, and stderr says so", () =>
  Effect.gen(function* () {
    const here = yield* place
    const path = join(here.root, "gone.jsonl")
    writeFileSync(
      path,
      `${records("/gone/folder")
        .map((record) => JSON.stringify(record))
        .join("\n")}\n`
    )
    const { code, stderr, stdout } = yield* here.run(["import", path])
    assert.strictEqual(code, 0)
    assert.include(stderr, "/gone/folder does not exist")
    const shown = yield* here.run(["show", idOf(stdout)])
    assert.strictEqual(shown.code, 0)
    assert.include(shown.stdout, "/gone/folder")
    const prompted = yield* here.run(["prompt", "--session", idOf(stdout), "And now?"])
    assert.strictEqual(prompted.code, 2)
    assert.match(
      prompted.stderr,
      /: \/gone\/folder cannot be entered \(ENOENT\); create it to go on with the session\n$/
    )
  })
)

it.scopedLive("CL-232: what the format cannot hold is counted on stderr, with --json as one line", () =>
  Effect.gen(function* () {
    const here = yield* place
    const session = idOf((yield* here.run(["import", written(here).path])).stdout)
    yield* here.run(["budget", session, "--tokens", "1000"])
    const text = yield* here.run(["export", session, "--format", "pi"])
    assert.match(text.stderr, /budget/)
    const json = yield* here.run(["export", session, "--format", "pi", "--json"])
    assert.strictEqual(json.stdout, text.stdout)
    assert.deepInclude(jsonLines(json.stderr)[0], { sessionID: session, dropped: { "session.next.budget.set": 1 } })
    assert.strictEqual(json.stderr.trimEnd().split("\n").length, 1)
  })
)

it.scopedLive("CL-223: a dry run reports the same and creates no database", () =>
  Effect.gen(function* () {
    const here = yield* place
    const { path } = written(here)
    const dry = yield* here.run(["import", "--dry-run", path])
    assert.strictEqual(dry.code, 0)
    assert.isFalse(existsSync(here.database))
    const real = yield* here.run(["import", path])
    assert.strictEqual(idOf(dry.stdout), idOf(real.stdout))
    assert.strictEqual(/\(.*\).*/.exec(dry.stdout)?.[0], /\(.*\).*/.exec(real.stdout)?.[0])
  })
)

it.scopedLive(
  "CL-231, IM-30: the log of an imported session is written as it was, with fields that Daybook does not know",
  () =>
    Effect.gen(function* () {
      const here = yield* place
      const { lines, path } = written(here)
      const session = idOf((yield* here.run(["import", path])).stdout)
      assert.strictEqual((yield* here.run(["export", session, "--format", "pi"])).stdout, lines)
      assert.include((yield* here.run(["import", path])).stdout, `unchanged ${session}`)
      assert.strictEqual((yield* here.run(["export", session, "--format", "entries"])).stdout, lines)
    })
)

it.scopedLive("CL-233: an export appears whole and private, and replaces a file only with --force", () =>
  Effect.gen(function* () {
    const here = yield* place
    const session = idOf((yield* here.run(["import", written(here).path])).stdout)
    const file = join(here.root, "out.md")
    const words = ["export", session, "--format", "markdown", "--out", file]
    assert.strictEqual((yield* here.run(words)).code, 0)
    assert.strictEqual(statSync(file).mode & 0o777, 0o600)
    const first = readFileSync(file, "utf8")
    assert.include(first, "The second answer.")
    writeFileSync(file, "mine")
    assert.strictEqual((yield* here.run(words)).code, 1)
    assert.strictEqual(readFileSync(file, "utf8"), "mine")
    assert.strictEqual((yield* here.run([...words, "--force"])).code, 0)
    assert.strictEqual(readFileSync(file, "utf8"), first)
  })
)

for (const format of ["entries", "pi", "thread", "jsonl", "markdown", "html"] as const) {
  it.scopedLive(`CL-234: --redact leaves no secret in ${format}, and counts what it replaced`, () =>
    Effect.gen(function* () {
      const here = yield* place
      const session = idOf((yield* here.run(["import", written(here).path])).stdout)
      const plain = yield* here.run(["export", session, "--format", format])
      assert.include(plain.stdout, token)
      const { code, stderr, stdout } = yield* here.run(["export", session, "--format", format, "--redact"])
      assert.strictEqual(code, 0)
      assert.notInclude(stdout, token)
      assert.match(stderr, /\b[1-9]\d* /)
    })
  )
}

it.scopedLive(
  "IM-36: after a prune, an export as a log is refused and writes nothing; documents have all messages",
  () =>
    Effect.gen(function* () {
      const here = yield* place
      const { folder } = written(here)
      const id = idOf((yield* here.run(["import", folder])).stdout)
      const pruned = yield* here.run(["prune", "--to", "100000", "--yes", "--json"])
      assert.strictEqual(pruned.code, 0, pruned.stderr)
      for (const format of ["entries", "pi", "thread"]) {
        const out = join(here.root, `out-${format}`)
        const { code, stderr, stdout } = yield* here.run(["export", id, "--format", format, "--out", out])
        assert.deepStrictEqual([code, stdout, existsSync(out)], [3, "", false])
        assert.match(stderr, /the events of ses_\S+ up to \d+ were pruned.*jsonl, markdown and html/)
      }
      const document = yield* here.run(["export", id, "--format", "markdown"])
      assert.strictEqual(document.code, 0)
      assert.include(document.stdout, "The second answer.")
    })
)

it.scopedLive("CL-226: Ctrl-C stops an import with exit code 130, and the same command continues it", () =>
  Effect.gen(function* () {
    const [stopped, whole] = [yield* place, yield* place]
    const [header, prompt = {}] = records("/tmp")
    const entries = Array.from({ length: 4_000 }, (_, index) => ({
      ...prompt,
      id: `b${String(index).padStart(7, "0")}`,
      parentId: index === 0 ? null : `b${String(index - 1).padStart(7, "0")}`
    }))
    const path = join(stopped.root, "long.jsonl")
    writeFileSync(path, [header, ...entries].map((entry) => `${JSON.stringify(entry)}\n`).join(""))
    const running = yield* stopped.start(["import", path], { terminal: { columns: 80, rows: 24 } })
    yield* running.until("stdout", (text) => text.includes("long.jsonl") && text.includes("%"))
    // The import cannot end before the key arrives.
    const release = yield* stopped.lock
    yield* running.type("\u0003")
    yield* running.until("stdout", (text) => text.includes("^C"))
    yield* release
    const { code, stdout } = yield* running.ended
    assert.strictEqual(code, 130)
    assert.include(stdout, "import the same logs again to continue")
    const [begun] = jsonLines((yield* stopped.run(["sessions", "--json"])).stdout)
    assert.isDefined(begun)
    const exported = Effect.fnUntraced(function* (here: Place) {
      const imported = yield* here.run(["import", path])
      assert.strictEqual(imported.code, 0)
      return (yield* here.run(["export", idOf(imported.stdout), "--format", "pi"])).stdout
    })
    assert.strictEqual(yield* exported(stopped), yield* exported(whole))
  })
)
