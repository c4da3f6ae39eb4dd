/** `daybook models`, and models of the person's own providers, as people use them. */
import { assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { chmodSync, mkdirSync, writeFileSync } from "node:fs"
import type { ServerResponse } from "node:http"
import { dirname, join } from "node:path"
import { origin } from "../http/support/Origins.ts"
import { build } from "./support/Bundle.ts"
import { jsonLines, place, type Place } from "./support/Process.ts"

beforeAll(() => void build())

const key = "x".repeat(20)

const configured = ({ root }: Place, text: string, mode = 0o600) => {
  const file = join(root, ".config", "daybook", "config.yaml")
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, text)
  chmodSync(file, mode)
  return file
}

const answer = (response: ServerResponse) => {
  const chunk = (delta: object, finish: string | null = null) =>
    `data: ${JSON.stringify({ id: "c", created: 1, model: "m", choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`
  response.writeHead(200, { "content-type": "text/event-stream" })
  response.end(`${chunk({ role: "assistant", content: "Hello." })}${chunk({}, "stop")}data: [DONE]\n\n`)
}

/** A server of chat completions with these entries in its list. */
const serving = (...entries: ReadonlyArray<object>) =>
  origin(({ method, path }, response) => {
    if (method === "POST") return answer(response)
    if (path === "/v1/models") return void response.end(JSON.stringify({ data: entries }))
    response.writeHead(404).end()
  })

describe("models", () => {
  it.scopedLive(
    "CL-130: models lists the configured providers', the server's with its window, and the offline one",
    () =>
      Effect.gen(function* () {
        const here = yield* place
        const server = yield* serving({ id: "one", max_model_len: 32_768 }, { id: "two" })
        const env = { DAYBOOK_BASE_URL: `${server.url}/v1`, ANTHROPIC_API_KEY: key }
        const listed = yield* here.run(["models", "--json"], { env })
        assert.deepStrictEqual([listed.code, listed.stderr], [0, ""])
        const models = jsonLines(listed.stdout)
        assert.deepStrictEqual(models.slice(0, 2), [
          {
            model: "openai-compatible/one",
            name: "one",
            contextTokens: 32_768,
            source: "server",
            default: false
          },
          { model: "openai-compatible/two", name: "two", source: "server", default: false }
        ])
        const of = (model: string) => models.find((each) => each["model"] === model)
        assert.isUndefined(of("openai/gpt-5.1"))
        assert.deepInclude(of("anthropic/claude-sonnet-5-5"), { default: true, source: "catalogue", thinks: true })
        assert.deepInclude(of("anthropic/claude-haiku-5-5")?.["price"], { input: 0.1 })
        const table = yield* here.run(["models"], { env })
        assert.match(table.stdout, /^openai-compatible\/one +33k +- +- +- +- +ready$/m)
        assert.match(
          table.stdout,
          /^anthropic\/claude-sonnet-5-5 +1M +64k +\$2\/\$10 +text,image,pdf +low,.*max +default$/m
        )
        assert.match(table.stdout, /^offline\/scribe +- +- +- +- +- +ready$/m)
      })
  )

  it.scopedLive("CL-130: a server that the catalogue knows is not asked, another is, with its key", () =>
    Effect.gen(function* () {
      const here = yield* place
      const server = yield* serving({ id: "local", context_length: 9_000 })
      configured(
        here,
        [
          "providers:",
          `  deepseek: { baseURL: "${server.url}/v1" }`,
          `  lab: { api: openai-compatible, baseURL: "${server.url}/v1", key: $LAB_KEY, models: { mine: { context: 5000 } } }`
        ].join("\n")
      )
      const { stderr, stdout } = yield* here.run(["models", "--json"], { env: { LAB_KEY: key } })
      assert.strictEqual(stderr, "")
      const names = jsonLines(stdout).map(({ contextTokens, model }) => [model, contextTokens])
      assert.deepInclude(names, ["lab/local", 9_000])
      assert.deepInclude(names, ["lab/mine", 5_000])
      assert.deepInclude(names, ["deepseek/deepseek-v4-pro", 1_000_000])
      assert.lengthOf(
        server.asked.filter(({ path }) => path === "/v1/models"),
        1
      )
      assert.strictEqual(server.asked[0]?.headers.authorization, `Bearer ${key}`)
    })
  )

  it.scopedLive("CL-720, CL-722: words filter by provider, id and name; --all adds what has no key", () =>
    Effect.gen(function* () {
      const here = yield* place
      const env = { DEEPSEEK_API_KEY: key }
      const names = (stdout: string) => jsonLines(stdout).map(({ model }) => String(model))
      const own = yield* here.run(["models", "--json", "DEEPSEEK", "pro"], { env })
      assert.deepStrictEqual(names(own.stdout), ["deepseek/deepseek-v4-pro"])
      const all = yield* here.run(["models", "--json", "--all", "Claude sonnet 5.5"], { env })
      assert.includeMembers(names(all.stdout), [
        "anthropic/claude-sonnet-5-5",
        "openrouter/anthropic/claude-sonnet-5.5"
      ])
      assert.deepInclude(jsonLines(all.stdout)[0], { needs: "ANTHROPIC_API_KEY" })
      const none = yield* here.run(["models", "claude", "sonnet"], { env })
      assert.deepStrictEqual([none.code, none.stdout], [0, ""])
      assert.match(
        none.stderr,
        /^no model matches claude sonnet; \d+ models without a key: daybook models --all claude sonnet\n$/
      )
      assert.strictEqual((yield* here.run(["models", "--all", "nosuch"])).stderr, "no model matches nosuch\n")
    })
  )

  it.scopedLive(
    "CL-723: without any key, models lists the providers with their variables, and the note of the offline model says so",
    () =>
      Effect.gen(function* () {
        const here = yield* place
        const { stdout } = yield* here.run(["models"])
        assert.match(stdout, /^offline\/scribe +- .*default\n\n/)
        assert.match(stdout, /^deepseek +DeepSeek +set DEEPSEEK_API_KEY$/m)
        assert.match(stdout, /^google +Google Gemini +set GEMINI_API_KEY or GOOGLE_API_KEY$/m)
        const { stderr } = yield* here.run(["prompt", "Hi"])
        for (const variable of [
          "daybook setup",
          "ANTHROPIC_API_KEY",
          "OPENAI_API_KEY",
          "daybook models lists the variables"
        ]) {
          assert.include(stderr.split("\n")[0], variable)
        }
      })
  )

  it.scopedLive("CL-721: a narrow terminal gets fewer columns, and no line that does not fit", () =>
    Effect.gen(function* () {
      const here = yield* place
      const env = { ANTHROPIC_API_KEY: key }
      for (const [columns, keeps] of [
        [200, "low,medium"],
        [60, "$2/$10"],
        [30, "default"]
      ] as const) {
        const { stdout } = yield* here.run(["models", "sonnet"], { env, terminal: { columns, rows: 24 } })
        const lines = stdout.split(/\r?\n/).filter((line) => line.includes("claude"))
        assert.isAbove(lines.length, 2)
        assert.isTrue(
          lines.every((line) => line.length <= columns),
          stdout
        )
        assert.include(stdout, keeps)
      }
    })
  )

  it.scopedLive("CL-130: a server that lists nothing usable is told, the rest is listed, and nothing grows", () =>
    Effect.gen(function* () {
      const here = yield* place
      const answers: ReadonlyArray<readonly [(response: ServerResponse) => void, RegExp]> = [
        [(response) => void response.end("nonsense"), /does not list its models as chat completions servers do/],
        [(response) => void response.end("x".repeat(5_000_000)), /model list of \S+ exceeds 4 MiB/],
        [(response) => void response.writeHead(401).end(), /answered HTTP 401; set DAYBOOK_API_KEY/],
        [(response) => void response.writeHead(302, { location: "/elsewhere" }).end(), /cannot be reached/]
      ]
      for (const [reply, why] of answers) {
        const server = yield* origin((_, response) => reply(response))
        const { code, stderr, stdout } = yield* here.run(["models"], {
          env: { DAYBOOK_BASE_URL: `${server.url}/v1` }
        })
        assert.strictEqual(code, 5)
        assert.match(stderr, /^daybook: openai-compatible: [^\n]+\n$/)
        assert.match(stderr, why)
        assert.include(stdout, "offline/scribe")
      }
    })
  )
})

describe("providers of the configuration", () => {
  it.scopedLive("MD-725: a model of one's own provider answers, with its key and headers", () =>
    Effect.gen(function* () {
      const here = yield* place
      const server = yield* serving({ id: "m", max_model_len: 32_768 })
      configured(
        here,
        [
          "providers:",
          "  lab:",
          "    api: openai-compatible",
          `    baseURL: ${server.url}/v1`,
          "    key: ${LAB_KEY}",
          "    headers:",
          "      x-team: red",
          "    models:",
          "      m: {}"
        ].join("\n")
      )
      const { code, stderr, stdout } = yield* here.run(["prompt", "Hi"], { env: { LAB_KEY: key } })
      assert.strictEqual(code, 0, stderr)
      assert.include(stdout, "Hello.")
      const asked = server.asked.find(({ method }) => method === "POST")
      assert.strictEqual(asked?.headers.authorization, `Bearer ${key}`)
      assert.strictEqual(asked?.headers["x-team"], "red")
      const without = yield* here.run(["prompt", "--model", "lab/m", "Hi"])
      assert.strictEqual(without.code, 5)
      assert.match(without.stderr, /set LAB_KEY, which the configuration names/)
    })
  )

  it.scopedLive("CL-724: a new session says which model is its default, unless the person chose one", () =>
    Effect.gen(function* () {
      const here = yield* place
      const server = yield* serving({ id: "m" })
      configured(here, `providers: { lab: { api: openai-compatible, baseURL: "${server.url}/v1", models: { m: {} } } }`)
      const note = "the model is lab/m; --model or DAYBOOK_MODEL chooses another\n"
      assert.include((yield* here.run(["prompt", "--session", "a", "Hi"])).stderr, note)
      assert.notInclude((yield* here.run(["prompt", "--session", "a", "Hi"])).stderr, note)
      assert.notInclude((yield* here.run(["prompt", "--model", "lab/m", "Hi"])).stderr, note)
      assert.notInclude((yield* here.run(["prompt", "Hi"], { env: { DAYBOOK_MODEL: "lab/m" } })).stderr, note)
    })
  )

  it.scopedLive("CL-132: a key that a known provider refuses is told with its variable", () =>
    Effect.gen(function* () {
      const here = yield* place
      const server = yield* origin((_, response) => void response.writeHead(401).end("{}"))
      configured(here, `providers: { deepseek: { baseURL: "${server.url}/v1" } }`)
      const { code, stderr } = yield* here.run(["prompt", "Hi"], { env: { DEEPSEEK_API_KEY: key } })
      assert.strictEqual(code, 5)
      assert.match(stderr, /HTTP 401.*; set DEEPSEEK_API_KEY to a key that it accepts\n$/)
    })
  )

  it.scopedLive("CF-722: models and doctor tell of a key that other users may read, without it", () =>
    Effect.gen(function* () {
      const here = yield* place
      const text = `providers: { deepseek: { key: ${key} } }`
      const file = configured(here, text, 0o644)
      for (const words of [["models"], ["doctor"]]) {
        const { stderr, stdout } = yield* here.run(words)
        assert.match(`${stdout}${stderr}`, /other users may read providers\.deepseek\.key in \S+config\.yaml/, words[0])
        assert.notInclude(`${stdout}${stderr}`, key)
      }
      chmodSync(file, 0o600)
      assert.strictEqual((yield* here.run(["models"])).stderr, "")
    })
  )

  it.scopedLive("CF-720, CL-72: a fault of the section is told with its place before anything is made", () =>
    Effect.gen(function* () {
      const here = yield* place
      configured(here, "providers:\n  lab: { api: openai-compatible }\n")
      const { code, stderr } = yield* here.run(["prompt", "Hi"])
      assert.strictEqual(code, 2)
      assert.match(stderr, /line 2, column \d+: providers\.lab: expected baseURL/)
    })
  )
})
