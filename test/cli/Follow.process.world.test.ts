/**
 * Two and more processes on one database: one prompts, others read.
 * Method: the model is held, so that what was read before and after a kill is known; the killed reader goes on at its
 * own cursor, and both outputs together must be the log, byte for byte.
 */
import { assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { build } from "./support/Bundle.ts"
import { held } from "./support/Held.ts"
import { jsonLines, place } from "./support/Process.ts"

beforeAll(() => void build())

/** Whole lines only: a killed process may leave half of one. */
const wholeLines = (text: string) => text.slice(0, text.lastIndexOf("\n") + 1)

describe("daybook events", () => {
  it.scopedLive("CL-50: a follower that is killed and goes on at its cursor has read the log, byte for byte", () =>
    Effect.gen(function* () {
      const { env, here, model } = yield* held
      yield* here.run(["prompt", "--session", "fix", "--no-run", "One"], { env })
      const follow = ["events", "fix", "--json", "--follow"]
      const first = yield* here.start(follow)
      yield* first.until("stdout", (text) => text.includes("prompt.admitted"))
      const run = yield* here.start(["prompt", "--session", "fix", "Two"], { env })
      const turn = yield* model.next
      yield* first.until("stdout", (text) => text.includes("step.started"))
      yield* first.signal("SIGKILL")
      const before = wholeLines((yield* first.ended).stdout)
      const cursor = Number(jsonLines(before).at(-1)?.["seq"])
      yield* turn.text("Hello")
      yield* turn.finish()
      assert.strictEqual((yield* run.ended).code, 0)
      const second = yield* here.start([...follow, "--after", String(cursor)])
      const after = yield* second.until("stdout", (text) => text.includes("activity.settled"))
      const log = yield* here.run(["events", "fix", "--json"])
      assert.strictEqual(before + wholeLines(after), log.stdout)
      const seqs = jsonLines(log.stdout).map((event) => event["seq"])
      assert.deepStrictEqual(
        seqs,
        seqs.map((_, index) => index)
      )
    })
  )

  it.scopedLive("CL-51: a follower sees what another process appends after the replay", () =>
    Effect.gen(function* () {
      const here = yield* place
      yield* here.run(["prompt", "--session", "fix", "--no-run", "One"])
      const follower = yield* here.start(["events", "fix", "--follow"])
      yield* follower.until("stdout", (text) => text.includes("One"))
      yield* here.run(["rename", "fix", "better name"])
      yield* follower.until("stdout", (text) => text.includes("renamed"))
    })
  )

  it.scopedLive("CL-52: without --follow the replay ends where the log ends", () =>
    Effect.gen(function* () {
      const here = yield* place
      yield* here.run(["prompt", "--session", "fix", "--no-run", "One"])
      const all = yield* here.run(["events", "--json"])
      assert.strictEqual(all.code, 0)
      assert.strictEqual(jsonLines(all.stdout).length, 2)
      const rest = yield* here.run(["events", "--json", "--after", "0"])
      assert.strictEqual(all.stdout.split("\n").slice(1).join("\n"), rest.stdout)
      const none = yield* here.run(["events", "--json", "--after", "1"])
      assert.deepStrictEqual([none.code, none.stdout], [0, ""])
    })
  )

  it.scopedLive("CL-34: a reader whose output is closed ends quietly", () =>
    Effect.gen(function* () {
      const here = yield* place
      yield* here.run(["prompt", "--session", "fix", "--no-run", "One"])
      const follower = yield* here.startAlone(["events", "fix", "--follow"])
      yield* follower.until("stdout", (text) => text.includes("One"))
      yield* follower.closeStdout
      yield* here.run(["rename", "fix", "better name"])
      const ended = yield* follower.ended
      assert.deepStrictEqual([ended.code, ended.stderr], [0, ""])
    })
  )

  it.scopedLive("CL-17: interrupt from another process stops the turn, which says so and exits 130", () =>
    Effect.gen(function* () {
      const { env, here, model } = yield* held
      const run = yield* here.start(["prompt", "--session", "fix", "One"], { env })
      const turn = yield* model.next
      yield* turn.text("Half")
      yield* run.until("stdout", (text) => text === "Half")
      const stop = yield* here.run(["interrupt", "fix"])
      assert.strictEqual(stop.code, 0, stop.stderr)
      const ended = yield* run.ended
      assert.deepStrictEqual([ended.code, ended.stdout], [130, "Half\n"])
    })
  )

  it.scopedLive("CL-6: a steer from another process joins the turn under way, and both see their answer", () =>
    Effect.gen(function* () {
      const { env, here, model } = yield* held
      const one = yield* here.start(["prompt", "--session", "fix", "One"], { env })
      const first = yield* model.next
      const two = yield* here.start(["prompt", "--session", "fix", "Two"], { env })
      yield* two.until("stderr", (text) => text.includes("session ses_"))
      const follower = yield* here.start(["events", "fix", "--follow"])
      yield* follower.until("stdout", (text) => / prompt\.admitted .*Two/.test(text))
      yield* first.text("First.")
      yield* first.finish()
      const second = yield* model.next
      assert.include(JSON.stringify(second.body.messages), "Two")
      yield* second.text("Second.")
      yield* second.finish()
      assert.strictEqual((yield* one.ended).stdout, "First.\n\nSecond.\n")
      const other = yield* two.ended
      assert.deepStrictEqual([other.code, other.stdout], [0, "Second.\n"])
    })
  )
})
