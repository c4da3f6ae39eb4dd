/**
 * The larger sections of the configuration: `providers`, model servers of one's own and what differs for known ones, and
 * `shell`, the limits of live shells; `search`, a search engine; and the fields that sections share. Pure. Spec: CF-720..CF-724
 * in specs/config.md.
 */
import { ParseResult, Predicate, Record, Redacted, Schema, Struct } from "effect"
import {
  amount,
  boolean,
  counting,
  expects,
  optional,
  selected,
  shaped,
  someText,
  texts,
  type Issue,
  nearest,
  type Parsed,
  showPath
} from "@daybook/core/definition/Yaml"
import type { Price } from "@daybook/log/domain/Values"
import type { Profile } from "@daybook/models/Profiles"
import type { ConfiguredProvider, ModelSettings } from "@daybook/models/Providers"
import { knownAs, knownNames } from "@daybook/models/Servers"
import type { OperatorPolicy } from "@daybook/shell/policy/Policy"
import type { TransportSettings } from "@daybook/shell/transport/TransportSettings"
import type { SearchProvider } from "@daybook/tools/BuiltinTools"
import { present } from "@daybook/log/support/Optional"
import { durationOf, durationRule, sizeOf, sizeRule } from "../support/Amounts.ts"

export const isMap = (value: unknown): value is { readonly [key: string]: unknown } => Predicate.isRecord(value)

export const WrittenPrice = Schema.Struct({
  input: amount,
  output: amount,
  cache_read: optional(amount),
  cache_write: optional(amount)
}).pipe(shaped("a map of input and output, in US dollars per million tokens"))

/** Cache reads and writes cost as much as input unless set (CF-24). */
export const priceOf = ({
  cache_read: cacheRead,
  cache_write: cacheWrite,
  input,
  output
}: typeof WrittenPrice.Type): Price => ({
  input,
  output,
  cacheRead: cacheRead ?? input,
  cacheWrite: cacheWrite ?? input
})

/** A size or a duration with its unit, as `support/Amounts.ts` reads it. */
export const amountOf = (read: (text: string) => number | undefined, rule: string) =>
  optional(
    Schema.String.pipe(
      Schema.filter((text) => read(text) !== undefined),
      expects(rule)
    )
  )

/** The milliseconds of a duration, or zero for `never`; undefined for another text. */
export const durationOrNever = (text: string): number | undefined => (text === "never" ? 0 : durationOf(text))

/** A duration with its unit, or `never`. */
export const amountOrNever = amountOf(durationOrNever, `never, or ${durationRule}`)

/** Paths are absolute; absent settings have the defaults of `ShellSettings`. */
export interface ShellSection {
  /** Milliseconds; zero for never. */
  readonly idle?: number
  readonly limit?: number
  /** False: whole outputs are not kept. */
  readonly outputs?: false | { readonly folder?: string; readonly quota?: number }
  readonly policy?: OperatorPolicy
  readonly transports?: TransportSettings
}

const WrittenOutputs = Schema.Struct({
  enabled: optional(boolean),
  folder: optional(someText),
  max_size: amountOf(sizeOf, sizeRule)
}).pipe(shaped("a map of enabled, folder and max_size"))

const WrittenPolicy = Schema.Struct({
  allow: optional(texts),
  deny: optional(texts),
  deny_patterns: optional(texts),
  allow_dangerous: optional(boolean)
}).pipe(shaped("a map of allow, deny, deny_patterns and allow_dangerous"))

const WrittenSsh = Schema.Struct({
  keys: optional(someText),
  known_hosts: optional(texts),
  accept_new: optional(boolean)
}).pipe(shaped("a map of keys, known_hosts and accept_new"))

const WrittenDocker = Schema.Struct({ program: optional(someText), host: optional(someText) }).pipe(
  shaped("a map of program and host")
)

export const WrittenShell = Schema.Struct({
  idle: amountOrNever,
  limit: optional(counting),
  outputs: optional(WrittenOutputs),
  policy: optional(WrittenPolicy),
  ssh: optional(WrittenSsh),
  docker: optional(WrittenDocker)
}).pipe(shaped("a map"))

const outputsOf = (
  { enabled, folder, max_size: quota }: typeof WrittenOutputs.Type,
  absolute: (written: string) => string
) =>
  enabled === false
    ? (false as const)
    : present({
        folder: folder === undefined ? undefined : absolute(folder),
        quota: quota === undefined ? undefined : sizeOf(quota)
      })

const policyOf = ({
  allow_dangerous: allowDangerous,
  deny_patterns: denyPatterns,
  ...lists
}: typeof WrittenPolicy.Type): OperatorPolicy => ({ ...lists, ...present({ allowDangerous, denyPatterns }) })

const transportsOf = (
  { docker = {}, ssh = {} }: Pick<typeof WrittenShell.Type, "docker" | "ssh">,
  absolute: (written: string) => string
): TransportSettings =>
  present({
    keyFolder: ssh.keys === undefined ? undefined : absolute(ssh.keys),
    knownHosts: ssh.known_hosts?.map(absolute),
    acceptNew: ssh.accept_new,
    dockerProgram: docker.program,
    dockerHost: docker.host
  })

export const shellOf = (
  { idle, limit, outputs, policy, ...transports }: typeof WrittenShell.Type,
  absolute: (written: string) => string
): ShellSection =>
  present({
    idle: idle === undefined ? undefined : durationOrNever(idle),
    limit,
    outputs: outputs && outputsOf(outputs, absolute),
    policy: policy && policyOf(policy),
    transports: transportsOf(transports, absolute)
  })

const oneOf = <const A extends ReadonlyArray<string>>(...words: A) =>
  Schema.Literal(...words).pipe(expects(`${words.slice(0, -1).join(", ")} or ${words.at(-1)}`))

const api = oneOf("anthropic", "openai", "openai-compatible", "gemini")

const isAddress = (text: string): boolean => {
  if (!/^https?:\/\//.test(text) || !URL.canParse(text)) return false
  const { password, username } = new URL(text)
  return username === "" && password === ""
}
const address = Schema.String.pipe(
  Schema.filter(isAddress),
  expects("an http or https address without a user or a password")
)

const near = (name: string): string => {
  const meant = nearest(name, knownNames)
  return meant === undefined ? `known: ${knownNames.join(", ")}` : `did you mean ${meant}?`
}
const knownName = Schema.String.pipe(
  Schema.filter((name) => knownAs(name) !== undefined, {
    message: ({ actual }) => ({
      message: `expected the name of a known provider; ${near(String(actual))}`,
      override: true
    })
  })
)

const WrittenCallIds = Schema.Struct({
  set: oneOf("word", "printable"),
  length: counting,
  exact: boolean
}).pipe(shaped("a map of set, length and exact"))

const WrittenBack = Schema.Struct({
  field: oneOf("reasoning_content", "reasoning", "reasoning_details", "content"),
  back: oneOf("never", "calls", "always"),
  required: boolean
}).pipe(shaped("a map of field, back and required"))

const medium = oneOf("image", "pdf")

/** The rules of a server that differ from the rules of the known server that it resembles. */
const WrittenProfile = Schema.Struct({
  like: optional(knownName),
  system: optional(oneOf("anywhere", "leading", "one")),
  system_role: optional(oneOf("system", "developer")),
  alternates: optional(boolean),
  answers_results: optional(boolean),
  call_ids: optional(WrittenCallIds),
  thinking: optional(WrittenBack),
  tags: optional(boolean),
  effort: optional(
    oneOf(
      "reasoning_effort",
      "reasoning.effort",
      "thinking",
      "thinking.type",
      "enable_thinking",
      "chat_template_kwargs",
      "none"
    )
  ),
  media: optional(Schema.Array(medium).pipe(shaped("a list of image and pdf"))),
  pictures: optional(counting),
  max_tokens: optional(oneOf("max_tokens", "max_completion_tokens", "none")),
  key_header: optional(oneOf("own", "bearer")),
  cache_marks: optional(boolean),
  stream_options: optional(boolean),
  tool_choice: optional(boolean),
  listing: optional(oneOf("models", "ollama", "llama.cpp", "none"))
}).pipe(shaped("the name of a known provider, or a map"))
type WrittenProfile = typeof WrittenProfile.Type

const levels = Schema.Array(someText).pipe(shaped("true, false, or a list of levels"))

const WrittenModel = Schema.Struct({
  name: optional(someText),
  context: optional(counting),
  output: optional(counting),
  price: optional(WrittenPrice),
  input: optional(Schema.Array(oneOf("text", "image", "pdf")).pipe(shaped("a list of text, image and pdf"))),
  thinking: optional(
    selected<boolean | ReadonlyArray<string>>((value) =>
      Array.isArray(value)
        ? ParseResult.decodeUnknown(levels)
        : ParseResult.decodeUnknown(Schema.Boolean.pipe(expects("true, false, or a list of levels")))
    )
  )
}).pipe(shaped("a map of name, context, output, price, input and thinking"))

export const WrittenProvider = Schema.Struct({
  api: optional(api),
  baseURL: optional(address),
  key: optional(someText),
  headers: optional(Schema.Record({ key: Schema.String, value: someText }).pipe(shaped("a map of headers"))),
  profile: optional(
    selected<WrittenProfile>((value) =>
      isMap(value)
        ? ParseResult.decodeUnknown(WrittenProfile)
        : (input, options) =>
            ParseResult.map(ParseResult.decodeUnknown(knownName)(input, options), (like): WrittenProfile => ({ like }))
    )
  ),
  models: optional(Schema.Record({ key: Schema.String, value: WrittenModel }).pipe(shaped("a map of models by id")))
}).pipe(shaped("a map of api, baseURL, key, headers, profile and models"))
type WrittenProvider = typeof WrittenProvider.Type

type Environment = Readonly<{ [name: string]: string | undefined }>

const reference = /\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)\}|^\$([A-Za-z_][A-Za-z0-9_]*)$/g

/** The text with its variables inserted, and the names of unset variables. */
const expanded = (text: string, environment: Environment) => {
  const missing: Array<string> = []
  const value = text.replaceAll(reference, (_, braced: string | undefined, bare: string | undefined) => {
    const name = braced ?? bare ?? ""
    const found = environment[name]?.trim() ?? ""
    if (found === "") missing.push(name)
    return found
  })
  return { missing, value: Redacted.make(value) }
}

/** The section `search`. */
export const WrittenSearch = Schema.Struct({
  provider: oneOf("brave", "tavily", "searxng"),
  key: optional(someText),
  url: optional(address)
}).pipe(
  shaped("a map of provider, key and url"),
  Schema.filter(({ key, provider, url }) => (provider === "searxng" ? url : key) !== undefined, {
    message: () => "expected a key for brave and tavily, and a url for searxng"
  })
)

export const searchOf = (
  { key = "", provider, url }: typeof WrittenSearch.Type,
  environment: Environment
): SearchProvider =>
  provider === "searxng"
    ? { provider, url: url ?? "" }
    : { provider, apiKey: expanded(key, environment).value, ...present({ url }) }

/** Whether the API key is a literal in the file. */
const isLiteral = (key: string | undefined): boolean => key !== undefined && !/\$\{|^\$[A-Za-z_]/.test(key)

/** The paths of API keys that are literals in the file; undefined if there are none. */
export const keysOf = (
  providers: { readonly [name: string]: WrittenProvider } = {},
  search: { readonly key?: string } = {}
) => {
  const keys = [
    ...Object.entries(providers).map(([name, { key }]) => [["providers", name, "key"], key] as const),
    [["search", "key"], search.key] as const
  ]
  const literal = keys.flatMap(([path, key]) => (isLiteral(key) ? [showPath(path)] : []))
  return literal.length === 0 ? undefined : literal
}

/** What a provider lacks, and variables that are not written as `${NAME}`. */
export const providerIssues = (
  providers: { readonly [name: string]: WrittenProvider },
  at: Parsed["at"]
): ReadonlyArray<Issue> =>
  Object.entries(providers).flatMap(([name, { api, baseURL, headers = {}, key = "", profile }]) => {
    const issue = (path: ReadonlyArray<string>, details: string) => ({ path: showPath(path), ...at(path), details })
    const known = knownAs(name) ?? (profile?.like === undefined ? undefined : knownAs(profile.like))
    const lacks = [
      ...(api === undefined && known === undefined ? ["api"] : []),
      ...(baseURL === undefined && knownAs(name)?.baseUrl === undefined ? ["baseURL"] : [])
    ]
    const broken = Object.entries({ key, ...headers }).filter(([, text]) =>
      text.replaceAll(reference, "").includes("${")
    )
    const unknown = knownAs(name) === undefined ? `; ${name} is not a known provider: ${near(name)}` : ""
    return [
      ...(lacks.length === 0 ? [] : [issue(["providers", name], `expected ${lacks.join(" and ")}${unknown}`)]),
      ...broken.map(([field]) =>
        issue(
          field === "key" ? ["providers", name, "key"] : ["providers", name, "headers", field],
          "expected ${NAME} with a variable's name"
        )
      )
    ]
  })

const rulesOf = ({
  answers_results: answersResults,
  cache_marks: cacheMarks,
  call_ids: callIds,
  key_header: keyHeader,
  max_tokens: maxTokens,
  stream_options: streamOptions,
  system_role: systemRole,
  tool_choice: toolChoice,
  ...same
}: WrittenProfile): Partial<Profile> => ({
  ...Struct.omit(same, "like"),
  ...present({ answersResults, cacheMarks, callIds, keyHeader, maxTokens, streamOptions, systemRole, toolChoice })
})

const modelOf = ({ context, input, name, output, price, thinking }: typeof WrittenModel.Type): ModelSettings =>
  present({
    name,
    contextTokens: context,
    outputTokens: output,
    price: price && priceOf(price),
    media: input?.filter((each) => each !== "text"),
    thinks: thinking === undefined ? undefined : thinking !== false,
    variants: typeof thinking === "object" ? thinking : undefined
  })

export const providerOf = (
  { api, baseURL, headers, key, models, profile }: WrittenProvider,
  environment: Environment
): ConfiguredProvider => {
  const apiKey = key === undefined ? undefined : expanded(key, environment)
  const sent = headers && Record.map(headers, (text) => expanded(text, environment))
  const missing = [...(apiKey?.missing ?? []), ...Object.values(sent ?? {}).flatMap((each) => each.missing)]
  const rules = profile === undefined ? {} : rulesOf(profile)
  return present({
    api,
    baseUrl: baseURL,
    apiKey: apiKey?.value,
    headers: sent && Record.map(sent, ({ value }) => value),
    like: profile?.like,
    profile: Object.keys(rules).length === 0 ? undefined : rules,
    models: models && Record.map(models, modelOf),
    missing: missing.length === 0 ? undefined : missing
  })
}
