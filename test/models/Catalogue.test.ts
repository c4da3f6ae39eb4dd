/** The generated catalogue, and the script that writes it. */
import { execFile } from "node:child_process"
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { Catalog, Servers } from "@daybook/models"
import { priceAt, toCost } from "../../packages/core/src/model/Usage.ts"
import * as CatalogData from "../../packages/models/src/CatalogData.ts"

const table = Schema.decodeUnknownSync(Schema.parseJson(Catalog.Table))(CatalogData.json)
const rows = Object.entries(table)

const file = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url))

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "daybook-catalogue-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)

const model = (id: string, more: object = {}) => ({
  id,
  name: `Model ${id}`,
  type: "chat",
  reasoning: false,
  input: ["text"],
  cost: { input: 1, output: 2, cacheRead: 0, cacheWrite: 0 },
  contextWindow: 100_000,
  maxTokens: 8_000,
  ...more
})

/** An unpacked package with these models by file. */
const packed = (root: string, files: Readonly<Record<string, ReadonlyArray<ReturnType<typeof model>>>>) => {
  const data = join(root, "dist", "providers", "data")
  mkdirSync(data, { recursive: true })
  writeFileSync(join(data, ".manifest.json"), JSON.stringify({ generatedAt: "2026-11-01T10:00:00.000Z" }))
  for (const [name, models] of Object.entries(files)) {
    const byName = Object.fromEntries(models.map((each) => [`chat:${each.id}`, each]))
    writeFileSync(join(data, `${name}.json`), JSON.stringify({ "some-api": byName }))
  }
}

const generate = (root: string, out: string) =>
  Effect.promise(async () => {
    await promisify(execFile)(process.execPath, [file("scripts/catalogue.mjs"), "--from", root, "--out", out])
    return readFileSync(out, "utf8")
  })

/** The rows of a provider that the script makes of some models. */
const rowsOf = Effect.fnUntraced(function* (provider: string, files: Parameters<typeof packed>[1]) {
  const root = yield* folder
  packed(root, files)
  const text = yield* generate(root, join(root, "out.ts"))
  const json = /json = `([^]*)`\n$/.exec(text)?.[1] ?? ""
  return Schema.decodeUnknownSync(Schema.parseJson(Catalog.Table))(json)[provider] ?? []
})

describe("the data", () => {
  it("MD-720: it has its source and date, is under a megabyte, and fits its schema", () => {
    assert.match(CatalogData.source, /^@earendil-works\/pi-ai@\d+\.\d+\.\d+$/)
    assert.match(CatalogData.date, /^20\d\d-\d\d-\d\d$/)
    assert.isBelow(statSync(file("packages/models/src/CatalogData.ts")).size, 1_000_000)
    assert.isAbove(rows.flatMap(([, models]) => models).length, 900)
  })

  it("MD-721: providers and ids are sorted, and each model is there once", () => {
    assert.deepStrictEqual(Object.keys(table), Object.keys(table).toSorted())
    for (const [provider, models] of rows) {
      const ids = models.map(([id]) => id)
      assert.deepStrictEqual(ids, [...new Set(ids)].toSorted(), provider)
      assert.isEmpty(
        ids.filter((id) => /[:-]batch$/.test(id)),
        provider
      )
    }
  })

  it.effect("MD-3: an entry leaves room for its answer", () =>
    Effect.forEach(Object.keys(table), (provider) =>
      Effect.map(Catalog.entriesOf(provider), (entries) => {
        for (const [id, { contextTokens, outputTokens }] of Object.entries(entries)) {
          assert.isAtMost(outputTokens, contextTokens / 2, id)
          assert.isAbove(outputTokens, 0, id)
        }
      })
    )
  )

  it.effect("MD-4: the default model of each server is in the catalogue", () =>
    Effect.forEach(Servers.servers, ({ api, model, provider }) =>
      Effect.map(Catalog.find(provider, api, model), (entry) => assert.isAbove(entry?.contextTokens ?? 0, 0, provider))
    )
  )

  it("MD-4: each provider of the catalogue has a key and a default, except for addresses that each user has of his own", () => {
    const known = new Set(Servers.servers.map(({ provider }) => provider))
    assert.deepStrictEqual(
      Object.keys(table).filter((provider) => !known.has(provider)),
      ["azure"]
    )
  })
})

describe("the script", () => {
  it.scopedLive("MD-721: the same package gives the same text, whatever the order of its models", () =>
    Effect.gen(function* () {
      const root = yield* folder
      const models = ["b", "a", "C", "é"].map((id) => model(id))
      packed(root, { anthropic: models, xai: [model("x`${1}\\")] })
      const once = yield* generate(root, join(root, "one.ts"))
      packed(root, { anthropic: models.toReversed() })
      assert.strictEqual(yield* generate(root, join(root, "two.ts")), once)
      const evaluated: unknown = yield* Effect.promise(() => import(join(root, "one.ts")))
      const { json } = evaluated as typeof CatalogData
      const decoded = Schema.decodeUnknownSync(Schema.parseJson(Catalog.Table))(json)
      assert.deepStrictEqual(
        decoded["anthropic"]?.map(([id]) => id),
        ["C", "a", "b", "é"]
      )
      assert.strictEqual(decoded["xai"]?.[0]?.[0], "x`${1}\\")
    })
  )

  it.scopedLive(
    "MD-721: no price is invented: 0 is unknown, or free by name, and a cache without a price costs as input",
    () =>
      Effect.gen(function* () {
        const zero = { cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 } }
        const [free, paid, plan, read] = yield* rowsOf("xai", {
          xai: [
            model("m:free", zero),
            model("n"),
            model("o", zero),
            model("p", { cost: { input: 4, output: 8, cacheRead: 1, cacheWrite: 5 } }),
            model("q:batch")
          ]
        })
        assert.deepStrictEqual(free?.[6], [0, 0, 0, 0])
        assert.deepStrictEqual(paid?.[6], [1, 2, 1, 1])
        assert.isUndefined(plan?.[6])
        assert.deepStrictEqual(read?.[6], [4, 8, 1, 5])
      })
  )

  it.scopedLive(
    "MD-3: media and levels of thinking are the source's, and PDFs go where pictures go at three makers",
    () =>
      Effect.gen(function* () {
        const sees = { input: ["text", "image"] }
        const levels = { off: "none", minimal: null, xhigh: "xhigh", high: "default" }
        const files = {
          groq: [
            model("a", sees),
            model("b", { reasoning: true }),
            model("c", { reasoning: true, thinkingLevelMap: levels }),
            model("d", { reasoning: true, thinkingLevelMap: levels, compat: { supportsReasoningEffort: false } })
          ]
        }
        const found = yield* rowsOf("groq", files)
        assert.deepStrictEqual(
          found.map(([, , , , media, thinking]) => [media, thinking]),
          [
            ["image", false],
            ["", true],
            ["", "none low medium xhigh"],
            ["", true]
          ]
        )
        const [claude] = yield* rowsOf("anthropic", { anthropic: [model("a", sees)] })
        assert.strictEqual(claude?.[4], "image pdf")
      })
  )

  it.scopedLive("MD-3: OpenAI's window is the whole one, not the part without a surcharge", () =>
    Effect.gen(function* () {
      const tiers = [{ inputTokensAbove: 100_000, input: 2, output: 3, cacheRead: 0.5, cacheWrite: 0 }]
      const cost = { input: 1, output: 2, cacheRead: 0.1, cacheWrite: 0, tiers }
      const [row] = yield* rowsOf("openai", {
        openai: [model("g", { cost })],
        openrouter: [model("openai/g", { contextWindow: 500_000 })]
      })
      assert.deepStrictEqual(row?.slice(2, 4), [500_000, 8_000])
      assert.deepStrictEqual(row?.slice(6), [
        [1, 2, 0.1, 1],
        [100_000, 2, 3, 0.5, 2]
      ])
    })
  )
})

describe("Catalog.find", () => {
  const found = (provider: string, api: string, id: string) => Catalog.find(provider, api, id)

  it.effect("MD-5: a dated snapshot has the facts of its model, a newer one those of its family, a stranger none", () =>
    Effect.gen(function* () {
      const haiku = yield* found("anthropic", "anthropic", "claude-haiku-5-5")
      assert.strictEqual(yield* found("anthropic", "anthropic", "claude-haiku-5-5-20261001"), haiku)
      const opus = yield* found("anthropic", "anthropic", "claude-opus-4-5-20251101")
      assert.deepInclude(opus, { variants: ["low", "medium", "high"], outputTokens: 32_000, name: "Claude Opus 4.5" })
      assert.deepInclude(yield* found("anthropic", "anthropic", "claude-next-9"), {
        name: "claude-next-9",
        contextTokens: 200_000
      })
      assert.isUndefined(yield* found("openai", "openai", "llama"))
    })
  )

  it.effect("MD-722: a provider of one's own has the models of its protocol, a known one only its own", () =>
    Effect.gen(function* () {
      const own = yield* found("work", "anthropic", "claude-sonnet-5-5")
      assert.strictEqual(own?.contextTokens, 1_000_000)
      assert.isDefined(yield* found("work", "openai", "gpt-99"))
      assert.isUndefined(yield* found("xai", "openai", "gpt-99"))
      assert.isUndefined(yield* found("work", "openai-compatible", "gpt-5.1"))
      assert.isDefined(yield* found("deepseek", "openai-compatible", "deepseek-v4-pro"))
      assert.isUndefined(yield* found("constructor", "openai-compatible", "toString"))
    })
  )

  it("MD-722: an address tells the server, unless the name does", () => {
    assert.strictEqual(Servers.catalogueName("openai-compatible", "https://api.deepseek.com/v1"), "deepseek")
    assert.strictEqual(Servers.catalogueName("mine", "https://openrouter.ai/api/v1/"), "openrouter")
    assert.strictEqual(Servers.catalogueName("mistral", "https://api.deepseek.com"), "mistral")
    assert.strictEqual(Servers.catalogueName("mine", "http://localhost:8000/v1"), "mine")
  })
})

describe("tiers", () => {
  const price = {
    input: 1,
    output: 10,
    cacheRead: 0.1,
    cacheWrite: 2,
    tiers: [
      { above: 1_000, input: 2, output: 20, cacheRead: 0.2, cacheWrite: 4 },
      { above: 5_000, input: 3, output: 30, cacheRead: 0.3, cacheWrite: 6 }
    ]
  }
  const tokens = (input: number) => ({ input, output: 100, reasoning: 0, cache: { read: 500, write: 100 } })

  it.each([
    [1_000, 400, 1],
    [1_001, 401, 2],
    [5_001, 4_401, 3]
  ])("MD-723: a request of %i tokens, cache included, costs one tier's price as a whole", (input, fresh, factor) => {
    const [unitInput, unitOutput] = [factor, factor * 10]
    const expected = (fresh * unitInput + 100 * unitOutput + 500 * (factor / 10) + 100 * factor * 2) / 1_000_000
    assert.approximately(toCost(tokens(input), price), expected, 1e-12)
  })

  it("MD-723: the price of a step is one price, without tiers", () => {
    assert.deepStrictEqual(priceAt(price, 2_000), { input: 2, output: 20, cacheRead: 0.2, cacheWrite: 4 })
    assert.deepStrictEqual(priceAt(price, 0), { input: 1, output: 10, cacheRead: 0.1, cacheWrite: 2 })
  })
})
