/** `daybook search`. */
import { statSync } from "node:fs"
import { assert, beforeAll, it } from "@effect/vitest"
import { Effect } from "effect"
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
