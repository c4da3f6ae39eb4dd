/** Which model answers. Method: one server on the loopback that takes every name; the requests have the name that was chosen. */
import { assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { build } from "./support/Bundle.ts"
import { held } from "./support/Held.ts"

beforeAll(() => void build())

const chosen = Effect.gen(function* () {
  const { here, model } = yield* held
  const env = { DAYBOOK_BASE_URL: model.url }
  const write = (path: string, text: string) =>
    Effect.sync(() => {
      mkdirSync(join(path, ".."), { recursive: true })
      writeFileSync(path, text)
    })
  /** The name of the model in the request of a prompt. */
  const asked = (words: ReadonlyArray<string>, more: Readonly<Record<string, string>> = {}) =>
    Effect.gen(function* () {
      const run = yield* here.start(["prompt", ...words, "Go"], { env: { ...env, ...more } })
      const turn = yield* model.next
      yield* turn.text("Done.")
      yield* turn.finish()
      yield* run.ended
      return "model" in turn.body ? turn.body.model : undefined
    })
  return {
    asked,
    env,
    here,
    user: (text: string) => write(join(here.root, ".config", "daybook", "config.yaml"), text),
    project: (text: string) => write(join(here.cwd, ".daybook", "config.yaml"), text)
  }
})

const named = (model: string) => `model: openai-compatible/${model}\n`

describe("the model of a session", () => {
  it.scopedLive(
    "CL-832: --model, DAYBOOK_MODEL, the project, the configuration and setup choose it, in this order",
    () =>
      Effect.gen(function* () {
        const { asked, env, here, project, user } = yield* chosen
        yield* here.run(["setup", "--model", "openai-compatible/kept"], { env })
        assert.strictEqual(yield* asked([]), "kept")
        yield* user(named("of-user"))
        assert.strictEqual(yield* asked([]), "of-user")
        yield* project(named("of-project"))
        yield* here.run(["trust", "grant"])
        assert.strictEqual(yield* asked([]), "of-project")
        const variable = { DAYBOOK_MODEL: "openai-compatible/of-variable" }
        assert.strictEqual(yield* asked([], variable), "of-variable")
        assert.strictEqual(yield* asked(["--model", "openai-compatible/named"], variable), "named")
      })
  )

  it.scopedLive("CL-833: a project's model counts only once the project is trusted", () =>
    Effect.gen(function* () {
      const { asked, project, user } = yield* chosen
      yield* user(named("of-user"))
      yield* project(named("of-project"))
      assert.strictEqual(yield* asked([]), "of-user")
      assert.strictEqual(yield* asked(["--trust"]), "of-project")
    })
  )

  it.scopedLive("CL-833: another key in a project's configuration is refused, with its place", () =>
    Effect.gen(function* () {
      const { env, here, project } = yield* chosen
      yield* project("modle: a/b\n")
      const { code, stderr } = yield* here.run(["prompt", "--trust", "Go"], { env })
      assert.strictEqual(code, 2)
      assert.match(stderr, /\.daybook\/config\.yaml cannot be used: .*line 1.*modle/)
    })
  )
})
