/** What the command does when an activity used all its turns. Method: a model on the loopback that wants to go on. */
import { assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { build } from "./support/Bundle.ts"
import { held } from "./support/Held.ts"

beforeAll(() => void build())

/** One turn an activity. */
const setup = Effect.gen(function* () {
  const { env, here, model } = yield* held
  const folder = join(here.root, ".config", "daybook")
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, "config.yaml"), "agents: { build: { turn_limit: 1 } }")
  const calls = Effect.gen(function* () {
    const turn = yield* model.next
    yield* turn.toolCall("call_1", "glob", { pattern: "*" })
    yield* turn.finish("tool_calls")
  })
  const says = Effect.fnUntraced(function* (text: string) {
    const turn = yield* model.next
    yield* turn.text(text)
    yield* turn.finish()
  })
  return { env, here, calls, says }
})

describe("an activity that used all its turns", () => {
  it.scopedLive(
    "CL-133: elsewhere than at a terminal the error names the command that goes on, for prompt and resume",
    () =>
      Effect.gen(function* () {
        const { calls, env, here, says } = yield* setup
        for (const verb of [
          ["prompt", "--session", "fix", "Go"],
          ["resume", "fix"]
        ]) {
          const run = yield* here.start(verb, { env })
          yield* calls
          const { code, stderr } = yield* run.ended
          assert.strictEqual(code, 1)
          const [, id] =
            /daybook: (ses_\S+) used its 1 turns and is not done; daybook resume (\S+) continues/.exec(stderr) ?? []
          assert.isDefined(id)
        }
        const last = yield* here.start(["resume", "fix"], { env })
        yield* says("Done.")
        assert.strictEqual((yield* last.ended).code, 0)
      })
  )

  const terminal = { columns: 100, rows: 24 }
  const asked = (text: string) => text.includes("Continue for as many again? [y/N]")

  it.scopedLive("CL-133: at a terminal it asks, and yes goes on", () =>
    Effect.gen(function* () {
      const { calls, env, here, says } = yield* setup
      const run = yield* here.start(["prompt", "--session", "fix", "Go"], { env, terminal })
      yield* calls
      yield* run.until("stdout", asked)
      yield* run.type("y\n")
      yield* says("All done.")
      const { code, stdout } = yield* run.ended
      assert.strictEqual(code, 0)
      assert.include(stdout, "All done.")
    })
  )

  it.scopedLive("CL-133: at a terminal any other answer ends as elsewhere", () =>
    Effect.gen(function* () {
      const { calls, env, here } = yield* setup
      const run = yield* here.start(["prompt", "--session", "fix", "Go"], { env, terminal })
      yield* calls
      yield* run.until("stdout", asked)
      yield* run.type("\n")
      const { code, stdout } = yield* run.ended
      assert.strictEqual(code, 1)
      assert.match(stdout.replaceAll(/\s+/g, " "), /daybook resume ses_\S+ continues/)
    })
  )
})
