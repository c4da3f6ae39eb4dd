/** Names of sessions, and prompts to imported sessions whose model is not available, as processes. */
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, beforeAll, it } from "@effect/vitest"
import { Effect } from "effect"
import { rollout } from "../formats/support/CodexLogs.ts"
import { build } from "./support/Bundle.ts"
import { held } from "./support/Held.ts"
import { jsonLines } from "./support/Process.ts"

beforeAll(() => void build())

it.scopedLive("CL-286: after the answer, the command waits until the session is named by its model", () =>
  Effect.gen(function* () {
    const { env, here, model } = yield* held
    const run = yield* here.start(["prompt", "Fix the login page"], { env: { ...env, DAYBOOK_NAMING: "model" } })
    const turn = yield* model.next
    yield* turn.text("I fixed it.")
    yield* turn.finish()
    const asked = yield* model.next
    // The answer is out, and the title is shown until the session has its name.
    yield* run.until("stdout", (text) => text === "I fixed it.\n")
    const before = jsonLines((yield* here.run(["sessions", "--json"])).stdout)[0]
    assert.deepInclude(before, { title: "Fix the login page", provisional: true })
    yield* asked.text("Login page fix")
    yield* asked.finish()
    const ended = yield* run.ended
    assert.deepStrictEqual([ended.code, ended.stdout], [0, "I fixed it.\n"])
    const named = jsonLines((yield* here.run(["sessions", "--json"])).stdout)[0]
    assert.strictEqual(named?.["title"], "Login page fix")
    const shown = yield* here.run(["show"])
    assert.match(shown.stdout, /title +Login page fix\n[^]*work +1 turn, 0 tool calls, \d+s at work/)
    const [measured] = jsonLines((yield* here.run(["stats", "Login page fix", "--json"])).stdout)
    assert.deepInclude(measured?.["metrics"], { turns: 1, toolCalls: 0 })
    const tree = yield* here.run(["tree"])
    assert.match(tree.stderr, /^ses_\S+ "Login page fix"\n/)
  })
)

it.scopedLive("NM-8: a wrong DAYBOOK_NAMING is a usage error, and nothing is created", () =>
  Effect.gen(function* () {
    const { env, here } = yield* held
    const { code, stderr } = yield* here.run(["prompt", "Hi"], { env: { ...env, DAYBOOK_NAMING: "always" } })
    assert.strictEqual(code, 2)
    assert.match(stderr, /DAYBOOK_NAMING: expected model, prompt or off, not always/)
    assert.strictEqual((yield* here.run(["sessions"])).stdout, "")
  })
)

it.scopedLive(
  "IM-1: if the model of an imported session is not available, a prompt says so and ends; --model continues it",
  () =>
    Effect.gen(function* () {
      const { env, here, model } = yield* held
      const folder = join(here.root, "logs")
      mkdirSync(folder)
      const lines = Array.from(rollout(1), (record, n) =>
        JSON.stringify(n === 0 ? JSON.parse(JSON.stringify(record).replaceAll("/work/shop", here.cwd)) : record)
      )
      writeFileSync(join(folder, "rollout.jsonl"), `${lines.join("\n")}\n`)
      const imported = yield* here.run(["import", folder])
      const id = /ses_[0-9a-f]+/.exec(imported.stdout)?.[0] ?? "none"
      const count = Effect.map(here.run(["events", id, "--json"]), ({ stdout }) => jsonLines(stdout).length)
      const before = yield* count
      const refused = yield* here.run(["prompt", "--session", id, "And now?"], { env })
      assert.strictEqual(refused.code, 5)
      assert.match(refused.stderr, /^daybook: provider "openai" is not available: .*OPENAI_API_KEY/)
      assert.strictEqual(yield* count, before)
      const run = yield* here.start(["prompt", "--session", id, "--model", "openai-compatible/held", "And now?"], {
        env
      })
      const turn = yield* model.next
      assert.include(JSON.stringify(turn.body), "Prompt 0")
      yield* turn.text("It goes on.")
      yield* turn.finish()
      const ended = yield* run.ended
      assert.deepStrictEqual([ended.code, ended.stdout], [0, "It goes on.\n"])
    })
)
