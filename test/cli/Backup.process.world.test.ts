/** `daybook backup` and `daybook restore`. */
import { assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { existsSync, readdirSync, statSync, writeFileSync, mkdirSync } from "node:fs"
import { dirname, join } from "node:path"
import { build } from "./support/Bundle.ts"
import { jsonLines, place } from "./support/Process.ts"

beforeAll(() => void build())

describe("copies", () => {
  it.scopedLive(
    "CL-190, CL-191: backup says what it copied, and restore puts the copy back and the database aside",
    () =>
      Effect.gen(function* () {
        const here = yield* place
        yield* here.run(["prompt", "--no-run", "--session", "one", "hello"])
        const copied = yield* here.run(["backup", "copy file", "--verify", "--json"])
        const file = join(here.cwd, "copy file")
        const [result] = jsonLines(copied.stdout)
        assert.deepInclude(result, { file, sessions: 1, verified: true, bytes: statSync(file).size })
        assert.deepStrictEqual([copied.code, statSync(file).mode & 0o777], [0, 0o600])
        const again = yield* here.run(["backup", "copy file"])
        assert.strictEqual(again.code, 4)
        assert.include(again.stderr, "--force")
        const forced = yield* here.run(["backup", "--force", "copy file"])
        assert.match(forced.stdout, /copy file: 1 session, [\d.]+ MB\n$/)
        yield* here.run(["prompt", "--no-run", "--session", "two", "hello"])
        const restored = yield* here.run(["restore", "copy file"])
        assert.match(restored.stdout, /daybook\.sqlite: 1 session; the replaced one is .*\.replaced-\d{8}T\d{6}Z\n$/)
        const titles = jsonLines((yield* here.run(["sessions", "--json"])).stdout).map(({ title }) => title)
        assert.deepStrictEqual(titles, ["one"])
        assert.isTrue(readdirSync(dirname(here.database)).some((name) => name.includes(".replaced-")))
      })
  )

  it.scopedLive("CL-462: a backup says where the snapshots are, which are not in it", () =>
    Effect.gen(function* () {
      const here = yield* place
      yield* here.run(["prompt", "--no-run", "--session", "one", "hello"])
      assert.strictEqual((yield* here.run(["backup", "first"])).stderr, "")
      const snapshots = join(dirname(here.database), "snapshots")
      mkdirSync(snapshots)
      assert.include((yield* here.run(["backup", "second"])).stderr, `not in it: copy ${snapshots} as well\n`)
    })
  )

  it.scopedLive("CL-192: a used database, a missing file and a file of another kind are refused", () =>
    Effect.gen(function* () {
      const here = yield* place
      yield* here.run(["prompt", "--no-run", "--session", "one", "hello"])
      yield* here.run(["backup", "copy"])
      writeFileSync(join(here.cwd, "text"), "no database ".repeat(100))
      const missing = yield* here.run(["restore", "missing"])
      const text = yield* here.run(["restore", "text"])
      assert.deepStrictEqual([missing.code, text.code], [3, 6])
      assert.include(text.stderr, "not a Daybook database")
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* here.lock
          const used = yield* here.run(["restore", "copy"])
          assert.strictEqual(used.code, 4)
          assert.include(used.stderr, "a process uses the database")
        })
      )
      assert.strictEqual((yield* here.run(["restore", "copy"])).code, 0)
    })
  )

  it.scopedLive("CL-193: Ctrl-C ends a backup and leaves no incomplete file", () =>
    Effect.gen(function* () {
      const here = yield* place
      yield* here.run(["prompt", "--no-run", "--session", "one", "hello"])
      // Some 600 MB take seconds at the bounded rate.
      yield* here.sql("CREATE TABLE ballast (data BLOB)")
      yield* here.sql(
        "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 600) " +
          "INSERT INTO ballast SELECT randomblob(1000000) FROM n"
      )
      const running = yield* here.start(["backup", "copy"], { terminal: { columns: 80, rows: 24 } })
      yield* running.until("stdout", (text) => text.includes("MB copied"))
      yield* running.type("\u0003")
      const { code } = yield* running.ended
      assert.strictEqual(code, 130)
      assert.deepStrictEqual(readdirSync(here.cwd), [])
      assert.isTrue(existsSync(here.database))
    })
  )
})
