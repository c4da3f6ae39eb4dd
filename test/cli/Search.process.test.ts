/** `daybook search`. */
import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { assert, beforeAll, it } from "@effect/vitest"
import Sqlite from "better-sqlite3"
import { Effect, Struct } from "effect"
import { build } from "./support/Bundle.ts"
import { jsonLines, place } from "./support/Process.ts"

beforeAll(() => void build())

it.scopedLive(
  "CL-250, CL-251: search prints sessions with their matching texts, as text and JSON; the index is private",
  () =>
    Effect.gen(function* () {
      const here = yield* place
      yield* here.run(["prompt", "--no-run", "--session", "one", "Why does the login page flicker?"])
      yield* here.run(["prompt", "--no-run", "--session", "two", "Write a login test."])
      const text = yield* here.run(["search", "login", "page"])
      assert.strictEqual(text.code, 0)
      assert.match(text.stdout, /^ses_\S+ "one" {2}\/.+\n +\d+ {2}user .* {2}Why does the login page flicker\?\n$/)
      const found = jsonLines((yield* here.run(["search", "--json", "login", "role:user"])).stdout)
      assert.deepStrictEqual(found.map((each) => each["title"]).toSorted(), ["one", "two"])
      assert.strictEqual(statSync(`${here.database}.search`).mode & 0o777, 0o600)
      const first = yield* here.run(["search", "--limit", "1", "--json", "login"])
      const cursor = /--cursor (\S+)/.exec(first.stderr)?.[1] ?? ""
      const second = yield* here.run(["search", "--limit", "1", "--json", "--cursor", cursor, "login"])
      const titles = [...jsonLines(first.stdout), ...jsonLines(second.stdout)].map((each) => each["title"])
      assert.deepStrictEqual(titles.toSorted(), ["one", "two"])
    })
)

it.scopedLive("SE-11: the command finds an answer by its model", () =>
  Effect.gen(function* () {
    const here = yield* place
    yield* here.run(["prompt", "--session", "one", "hello"])
    const [found] = jsonLines((yield* here.run(["search", "--json", "model:offline role:assistant"])).stdout)
    assert.deepInclude(found, { title: "one", matches: 1 })
    assert.strictEqual((yield* here.run(["search", "model:claude"])).stderr, "nothing found\n")
  })
)

it.scopedLive("CL-252, CL-253: a faulty query exits with 2 and says what is expected; nothing found exits with 0", () =>
  Effect.gen(function* () {
    const here = yield* place
    assert.strictEqual((yield* here.run(["search", "word"])).code, 3)
    yield* here.run(["prompt", "--no-run", "--session", "one", "Why does the login page flicker?"])
    const faulty = yield* here.run(["search", "role:nobody"])
    assert.strictEqual(faulty.code, 2)
    assert.include(faulty.stderr, "role: is user, assistant, reasoning, tool")
    const none = yield* here.run(["search", "zebra"])
    assert.deepStrictEqual([none.code, none.stdout, none.stderr], [0, "", "nothing found\n"])
    assert.strictEqual((yield* here.run(["search"])).code, 2)
    const rebuilt = yield* here.run(["search", "--rebuild"])
    assert.deepStrictEqual([rebuilt.code, rebuilt.stdout], [0, ""])
    assert.match(rebuilt.stderr, /built again/)
  })
)

it.scopedLive("CL-254: doctor warns of faults of the index, and names the command that mends them", () =>
  Effect.gen(function* () {
    const here = yield* place
    yield* here.run(["prompt", "--no-run", "--session", "one", "Why does the login page flicker?"])
    yield* here.run(["search", "login"])
    const index = new Sqlite(`${here.database}.search`)
    index.exec("DELETE FROM document")
    index.close()
    const lines = (yield* here.run(["doctor"])).stdout.split("\n")
    const found = lines.find((line) => /^warning\s+search/.test(line)) ?? lines.join("\n")
    assert.include(found, "misses 1 text")
    assert.include(lines.join("\n"), "daybook search --rebuild")
    const damaged = readFileSync(`${here.database}.search`)
    writeFileSync(`${here.database}.search`, damaged.fill(0xa5, 4096 * 2))
    assert.match(
      (yield* here.run(["doctor"])).stdout,
      /^warning +search +the search index is damaged: .*; daybook search --rebuild builds the index again from the log$/m
    )
    assert.match((yield* here.run(["search", "--rebuild", "login"])).stdout, /login page flicker/)
    rmSync(`${here.database}.search`)
    mkdirSync(`${here.database}.search`)
    const unusable = yield* here.run(["doctor"])
    assert.match(unusable.stdout, /^ok +database/m)
    assert.match(
      unusable.stdout,
      /^warning +search +\S+: the search index cannot be used: .*next search builds the index/m
    )
  })
)

it.scopedLive(
  "CL-263: history prints the prompts with time and session, the newest first; words and --cwd select",
  () =>
    Effect.gen(function* () {
      const here = yield* place
      yield* here.run(["prompt", "--no-run", "--session", "one", "Fix the\nlogin page"])
      yield* here.run(["prompt", "--no-run", "--session", "two", "Write a test"])
      const text = yield* here.run(["history"])
      assert.match(text.stdout, /^\S+.* ses_\S+ .*Write a test\n.*ses_\S+ .*Fix the login page\n$/)
      const found = jsonLines((yield* here.run(["history", "--json", "log"])).stdout)
      assert.deepStrictEqual(found.map(Struct.get("text")), ["Fix the\nlogin page"])
      assert.strictEqual((yield* here.run(["history", "--cwd", "/tmp/elsewhere"])).stdout, "")
    })
)
