/** What rerun prints, and how it ends. Method: a model on the loopback. */
import { assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { build } from "./support/Bundle.ts"
import { held } from "./support/Held.ts"
import { jsonLines } from "./support/Process.ts"

beforeAll(() => void build())

const answered = Effect.gen(function* () {
  const { env, here, model } = yield* held
  const run = yield* here.start(["prompt", "--session", "fix", "Go"], { env })
  const turn = yield* model.next
  yield* turn.text("The recorded one.")
  yield* turn.finish()
  yield* run.ended
  return { env, here, model }
})

describe("rerun", () => {
  it.scopedLive("CL-790: it prints the record and each run with its figures and its text", () =>
    Effect.gen(function* () {
      const { env, here, model } = yield* answered
      const run = yield* here.start(["rerun", "fix", "--times", "2"], { env })
      for (const text of ["The first.", "The second."]) {
        const turn = yield* model.next
        assert.include(JSON.stringify(turn.body.messages.at(-1)), "Go")
        yield* turn.text(text)
        yield* turn.finish()
      }
      const { code, stdout } = yield* run.ended
      assert.match(
        stdout,
        /^recorded +openai-compatible\/held .* 3 in, 2 out +\$0\.0000 +1 turn, 0 calls +The recorded one\./m
      )
      assert.match(stdout, /^run 2 .* The second\.$/m)
      assert.match(stdout, /== run 1 {2}openai-compatible\/held\nThe first\.\n/)
      assert.strictEqual(code, 0)
    })
  )

  it.scopedLive("CL-790, CL-791: with --json each answer is a line, and a run that no model answers exits with 5", () =>
    Effect.gen(function* () {
      const { env, here, model } = yield* answered
      const run = yield* here.start(["rerun", "fix", "--json"], { env })
      yield* (yield* model.next).refuse(400, "not today")
      const { code, stdout } = yield* run.ended
      const [record, other] = jsonLines(stdout)
      assert.strictEqual(record?.["text"], "The recorded one.")
      assert.match(String(other?.["error"]), /not today/)
      assert.strictEqual(code, 5)
    })
  )
})
