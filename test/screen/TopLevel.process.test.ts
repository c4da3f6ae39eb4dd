import { assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect, Struct } from "effect"
import { build } from "../cli/support/Bundle.ts"
import { jsonLines, place } from "../cli/support/Process.ts"

beforeAll(() => void build())

describe("the command without a verb", () => {
  it.scopedLive("SC-501: without a terminal it prints help, and opens nothing", () =>
    Effect.gen(function* () {
      const here = yield* place
      const { code, stdout } = yield* here.run([])
      assert.strictEqual(code, 0)
      assert.include(stdout, "Usage: daybook")
      const refused = yield* here.run(["-c"])
      assert.strictEqual(refused.code, 2)
      assert.include(refused.stderr, "the screen needs a terminal")
    })
  )

  it.scopedLive("SC-537: -p prompts once, with what is piped in below the words", () =>
    Effect.gen(function* () {
      const here = yield* place
      const { code, stdout } = yield* here.runAlone(["-p", "Review this"], { input: "a\nb\n" })
      assert.strictEqual(code, 0)
      assert.include(stdout, "Review this")
      const { stdout: events } = yield* here.run(["events", "--json"])
      const admitted = jsonLines(events).find(({ type }) => type === "session.next.prompt.admitted")
      assert.include(JSON.stringify(admitted), JSON.stringify("Review this\n\na\nb").slice(1, -1))
    })
  )

  it.scopedLive("SC-538: the beginning of an id names a session, and several are listed", () =>
    Effect.gen(function* () {
      const here = yield* place
      yield* here.run(["-p", "One"])
      yield* here.run(["-p", "Two"])
      const { stdout } = yield* here.run(["sessions", "--json"])
      const ids = jsonLines(stdout).map(({ id }) => String(id))
      assert.strictEqual(ids.length, 2)
      const [id = ""] = ids
      const one = yield* here.run(["messages", id.slice(0, -1), "--json"])
      assert.strictEqual(one.code, 0)
      assert.strictEqual(one.stdout, (yield* here.run(["messages", id, "--json"])).stdout)
      const both = yield* here.run(["messages", "ses_0"])
      assert.strictEqual(both.code, 2)
      for (const each of ids) assert.include(both.stderr, each)
    })
  )

  it.scopedLive("SC-539: --plain answers line by line in one session", () =>
    Effect.gen(function* () {
      const here = yield* place
      const { code, stderr, stdout } = yield* here.runAlone(["--plain"], {
        input: "First\n/rename Both\n/clear\nSecond\n"
      })
      assert.strictEqual(code, 0)
      assert.include(stdout, 'It was asked: "First"')
      assert.include(stdout, 'It was asked: "Second"')
      assert.include(stderr, "here, /clear is /new")
      assert.notInclude(stdout + stderr, "\u001b")
      const sessions = jsonLines((yield* here.run(["sessions", "--json"])).stdout)
      assert.deepStrictEqual(sessions.map(Struct.get("title")), ["Both"])
    })
  )
})
