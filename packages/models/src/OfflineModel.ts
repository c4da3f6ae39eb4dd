/**
 * The offline model: a fixed program in place of a language model, so that a first run, a demonstration and a test need
 * no key and no network. It reads the files that a prompt names and reports their content. The same prompt always gets
 * the same answer. Spec: MD-40..MD-46.
 */
import type * as LanguageModel from "@effect/ai/LanguageModel"
import type * as Prompt from "@effect/ai/Prompt"
import type * as Response from "@effect/ai/Response"
import { Effect, Hash, Predicate, Stream } from "effect"
import * as ProviderModel from "@daybook/core/model/ProviderModel"
import type { ResolvedModel } from "@daybook/core/model/ModelResolver"
import { howToConfigure } from "./Servers.ts"
import { parse } from "./wire/Json.ts"

/** The reference of the offline model. */
export const ref = { providerID: "offline", id: "scribe" } as const

/** One line for people: why the offline model answers, and how to change that. */
export const notice =
  "no model is configured: the offline model answers, which is a fixed program and not a language model " +
  `(${howToConfigure}, or name a model with DAYBOOK_MODEL)`

export const isOffline = (model: { readonly providerID: string }): boolean => model.providerID === ref.providerID

const introduction = "This is Daybook's offline model, a fixed program and not a language model."

const introduced = (...paragraphs: ReadonlyArray<string>) => ({ text: [introduction, ...paragraphs].join("\n\n") })

const maxFiles = 8
const maxEcho = 200
const maxExcerptLines = 3
const maxExcerptChars = 120
const maxListed = 50

type Part = Response.StreamPartEncoded

interface Call {
  readonly id: string
  readonly path: string
}

/** The program's reaction to a prompt: calls of the `read` tool, or a text. */
export type Reaction = { readonly calls: ReadonlyArray<Call> } | { readonly text: string }

/** User messages that the runtime writes (returned files, context updates) do not count. */
const isAsked = (message: Prompt.Message): boolean =>
  message.role === "user" && !/^(?:Returned by \S+:|<system-update>)/.test(textOf(message))

/** Decides from the last user message and the tool results after it (MD-41..MD-45). Pure. */
export const react = (prompt: Prompt.Prompt, tools: ReadonlyArray<string>): Reaction => {
  const start = prompt.content.findLastIndex(isAsked)
  const asked = textOf(prompt.content[start])
  const since = prompt.content.slice(start + 1)
  const results = since.flatMap((message) => (message.role === "tool" ? message.content : []))
  const paths = new Map(
    since.flatMap((message) => (message.role === "assistant" ? message.content : [])).flatMap(callPath)
  )
  if (results.length > 0) {
    return introduced(...results.map((result) => report(paths.get(result.id) ?? result.name, result)))
  }
  const files = fileNames(asked)
  if (files.length === 0) return introduced(echo(asked))
  if (!tools.includes("read")) {
    return introduced(`The prompt names ${files.join(", ")}, but no "read" tool is offered.`)
  }
  const key = Math.abs(Hash.string(JSON.stringify(prompt.content.map(textOf)))).toString(36)
  return { calls: files.map((path, index) => ({ id: `call_${key}_${index}`, path })) }
}

const echo = (asked: string): string => {
  const shown = clip(asked.trim().replaceAll(/\s+/g, " "), maxEcho)
  return (
    `It was asked: ${shown === "" ? "(nothing)" : `"${shown}"`}. It cannot think about that. ` +
    "It can read files: name one in the prompt, for example README.md."
  )
}

/** File-like names in a text, in order, without duplicates; quoted names may contain spaces. */
export const fileNames = (text: string): ReadonlyArray<string> => {
  const found = new Set<string>()
  const unquoted = text.replaceAll(/(["'`])([^"'`\n]{1,200}?\.[A-Za-z]\w{0,9})\1/g, (_, __, name: string) => {
    found.add(name)
    return " "
  })
  for (const word of unquoted.split(/[\s,;]+/)) {
    // A mention counts by its name.
    const name = word.replace(/^["'`([{<]*@?/, "").replace(/["'`)\]}>:!?.]+$/, "")
    if (name.includes("://") || notFiles.has(name.toLowerCase())) continue
    const looksLikeFile = /^[\w./@~+-]*[\w-]\.[A-Za-z]\w{0,9}$/.test(name) && !/^[^/]+@[^/]+$/.test(name)
    if (looksLikeFile || wellKnown.test(name)) found.add(name)
  }
  return [...found].slice(0, maxFiles)
}

const notFiles: ReadonlySet<string> = new Set(["e.g", "i.e", "a.k.a", "node.js", "next.js", "vue.js"])
const wellKnown = /^(?:[\w.-]+\/)*(?:README|LICENSE|CHANGELOG|Makefile|Dockerfile)$/

const report = (path: string, result: { readonly isFailure: boolean; readonly result: unknown }): string => {
  const text = contentText(result.result)
  if (result.isFailure) return `${path} could not be read: ${clip(text.trim() || "no reason was given", 300)}`
  const scripts = /(?:^|[\\/])package\.json$/.test(path) ? scriptsOf(text) : undefined
  if (scripts !== undefined) return reportScripts(path, scripts)
  // The end of the last line begins no other.
  const lines = text.replace(/\n$/, "").split("\n")
  const excerpt = lines.filter((line) => line.trim() !== "").slice(0, maxExcerptLines)
  const count = text === "" ? 0 : lines.length
  return [
    `${path}: the read tool returned ${count} ${count === 1 ? "line" : "lines"}, ${text.length} characters.`,
    ...(excerpt.length === 0 ? [] : ["It begins:", ...excerpt.map((line) => `    ${clip(line, maxExcerptChars)}`)])
  ].join("\n")
}

const reportScripts = (path: string, scripts: ReadonlyArray<readonly [string, string]>): string => {
  if (scripts.length === 0) return `${path} defines no scripts.`
  const more = scripts.length > maxListed ? [`- and ${scripts.length - maxListed} more`] : []
  return [
    `${path} defines ${scripts.length} ${scripts.length === 1 ? "script" : "scripts"}:`,
    ...scripts.slice(0, maxListed).map(([name, command]) => `- ${name}: ${clip(command, 200)}`),
    ...more
  ].join("\n")
}

/** The scripts of a manifest, whose text may have line numbers or a frame. */
const scriptsOf = (text: string): ReadonlyArray<readonly [string, string]> | undefined => {
  const bare = text.replaceAll(/^[ \t]*\d+[ \t]*[|:→\t][ \t]?/gm, "")
  for (const candidate of [text, bare]) {
    const json = parse(candidate.slice(candidate.indexOf("{"), candidate.lastIndexOf("}") + 1))
    if (!Predicate.isRecord(json)) continue
    const scripts = Predicate.isRecord(json["scripts"]) ? json["scripts"] : {}
    return Object.entries(scripts).flatMap(([name, command]) =>
      Predicate.isString(command) ? [[name, command] as const] : []
    )
  }
  return undefined
}

/** Extracts the text of a tool result: text, a list of content parts, or an object around either. */
const contentText = (value: unknown): string => {
  if (Predicate.isString(value)) return value
  if (Array.isArray(value)) return value.map(contentText).filter(Predicate.isTruthy).join("\n")
  if (!Predicate.isRecord(value)) return value === undefined || value === null ? "" : String(value)
  for (const field of ["text", "content", "message", "error", "output"]) {
    if (value[field] !== undefined && contentText(value[field]) !== "") return contentText(value[field])
  }
  return JSON.stringify(value)
}

const callPath = (part: Prompt.AssistantMessagePart): ReadonlyArray<readonly [string, string]> =>
  part.type === "tool-call" && Predicate.isRecord(part.params) && Predicate.isString(part.params["path"])
    ? [[part.id, part.params["path"]]]
    : []

const textOf = (message: Prompt.Message | undefined): string => {
  if (message === undefined) return ""
  if (message.role === "system") return message.content
  return message.content
    .map((part) => (part.type === "text" || part.type === "reasoning" ? part.text : ""))
    .filter((text) => text !== "")
    .join("\n")
}

const clip = (text: string, max: number): string => (text.length <= max ? text : `${text.slice(0, max)}…`)

const estimateTokens = (text: string): number => Math.ceil(text.length / 4)

const partsOf = ({ prompt, toolChoice, tools }: LanguageModel.ProviderOptions): ReadonlyArray<Part> => {
  const reaction = react(prompt, toolChoice === "none" ? [] : tools.map(({ name }) => name))
  const isText = "text" in reaction
  const inputTokens = estimateTokens(JSON.stringify(prompt.content.map(textOf)))
  const outputTokens = estimateTokens(isText ? reaction.text : JSON.stringify(reaction.calls))
  return [
    ...(isText ? spoken(reaction.text) : reaction.calls.flatMap(called)),
    {
      type: "finish",
      reason: isText ? "stop" : "tool-calls",
      usage: { inputTokens, outputTokens, totalTokens: inputTokens + outputTokens }
    }
  ]
}

const spoken = (text: string): ReadonlyArray<Part> => [
  { type: "text-start", id: "text" },
  ...(text.match(/\S+\s*|\s+/g) ?? []).map((delta): Part => ({ type: "text-delta", id: "text", delta })),
  { type: "text-end", id: "text" }
]

const called = ({ id, path }: Call): ReadonlyArray<Part> => [
  { type: "tool-params-start", id, name: "read" },
  { type: "tool-params-delta", id, delta: JSON.stringify({ path }) },
  { type: "tool-params-end", id },
  { type: "tool-call", id, name: "read", params: { path } }
]

/** The offline model as an `@effect/ai` LanguageModel. */
export const make: Effect.Effect<LanguageModel.Service> = ProviderModel.make({
  streamText: (options) => Stream.suspend(() => Stream.fromIterable(partsOf(options))).pipe(Stream.rechunk(1))
})

/** The offline model with its facts: it is free and has no limits. */
export const resolved: Effect.Effect<ResolvedModel> = Effect.map(make, (model) => ({
  info: {
    canName: false,
    ref,
    name: "Offline scribe",
    contextTokens: 0,
    outputTokens: 0,
    price: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }
  },
  policy: {},
  model
}))
