/**
 * Reads the user's configuration file, YAML with snake_case keys, into the fields of `Daybook.Options`. Reads only that
 * file, and reports all of its errors together. Spec: CF-1..CF-9.
 */
import { homedir } from "node:os"
import * as path from "node:path"
import { Effect, Either, ParseResult, Predicate, Redacted, Schema, Struct } from "effect"
import { ConfiguredAgent, userAgent, WrittenModel } from "@daybook/core/agent/AgentDefinition"
import type { SandboxSettings } from "@daybook/core/child/Sandbox"
import {
  amount,
  boolean,
  counting,
  expects,
  namePattern,
  nameRule,
  optional,
  selected,
  shaped,
  someText,
  texts,
  whole,
  decodeParsed,
  Issue,
  type KeyPath,
  type Parsed,
  parseYaml,
  showIssues,
  showPath
} from "@daybook/core/definition/Yaml"
import { NamingMode } from "@daybook/core/session/SessionOptions"
import { readText } from "@daybook/core/support/TextFile"
import { isName, nameRule as addressRule } from "@daybook/log/domain/Address"
import { HttpServer, isStdio, type McpServer, StdioServer } from "@daybook/mcp/McpServer"
import { present } from "@daybook/log/support/Optional"
import { ageOf, ageRule, sizeOf, sizeRule } from "../support/Amounts.ts"
import {
  amountOf,
  amountOrNever,
  durationOrNever,
  isMap,
  keysOf,
  priceOf,
  providerIssues,
  providerOf,
  searchOf,
  shellOf,
  WrittenPrice,
  WrittenProvider,
  WrittenSearch,
  WrittenShell
} from "./Sections.ts"

const named = <A, I>(value: Schema.Schema<A, I>) =>
  optional(Schema.Record({ key: Schema.String, value }).pipe(shaped("a map of names")))

const WrittenReference = Schema.Struct({ path: someText, description: optional(someText) })
const WrittenTemplate = Schema.Struct({ body: someText, description: optional(someText) })

const variable = Schema.String.pipe(Schema.pattern(/^[A-Za-z_][A-Za-z0-9_]*$/), expects("the name of a variable"))
const variables = Schema.Array(variable).pipe(shaped("a list of names of variables"))

const toggle = optional(Schema.Literal("off", "on").pipe(expects("off or on")))
/** The section `sandbox`. */
const WrittenSandbox = Schema.Struct({
  mode: toggle,
  network: toggle,
  writable: optional(texts),
  readable: optional(texts),
  auto_allow: optional(boolean),
  processes: optional(counting),
  memory: optional(counting)
}).pipe(shaped("a map"))

const CommandServer = StdioServer.pipe(shaped("a map with a command or a url"))

const WrittenRetention = Schema.Struct({
  keep: amountOf(ageOf, ageRule),
  max_size: amountOf(sizeOf, sizeRule),
  archive: optional(someText)
}).pipe(
  shaped("a map of keep, max_size and archive"),
  Schema.filter(({ keep, max_size: maxSize }) => keep !== undefined || maxSize !== undefined, {
    message: () => "expected keep, max_size, or both"
  })
)

const WrittenSnapshots = Schema.Struct({
  enabled: optional(boolean),
  max_size: amountOf(sizeOf, sizeRule),
  folders: optional(texts)
}).pipe(shaped("a map of enabled, max_size and folders"))

const agentName = Schema.String.pipe(Schema.filter(isName), expects(`a name: ${addressRule}`))

const audiences = ["owner", "group", "everyone"] as const
const audience = optional(Schema.Literal(...audiences).pipe(expects("owner, group or everyone")))
const WrittenSpace = Schema.Struct({
  agents: optional(Schema.Array(agentName).pipe(shaped("a list of names"))),
  read: audience,
  write: audience,
  group: optional(
    Schema.Union(Schema.NonEmptyString, Schema.NonNegativeInt).pipe(expects("the name or the number of a group"))
  )
}).pipe(
  shaped("a map"),
  Schema.filter(({ read = "owner", write = "owner" }) => audiences.indexOf(write) <= audiences.indexOf(read), {
    message: () => "expected read to be at least as wide as write"
  })
)

export const WrittenConfig = Schema.Struct({
  model: optional(WrittenModel),
  compaction: optional(
    Schema.Struct({
      enabled: optional(boolean),
      reserve_tokens: optional(counting),
      keep_recent_tokens: optional(whole),
      prune: optional(boolean)
    }).pipe(shaped("a map"))
  ),
  instructions: optional(texts),
  references: named(
    selected<typeof WrittenReference.Type>((value) =>
      isMap(value)
        ? ParseResult.decodeUnknown(WrittenReference)
        : (input, options) =>
            ParseResult.map(ParseResult.decodeUnknown(someText)(input, options), (text) => ({ path: text }))
    )
  ),
  skills: optional(texts),
  agents: named(ConfiguredAgent),
  templates: named(
    selected<typeof WrittenTemplate.Type>((value) =>
      isMap(value)
        ? ParseResult.decodeUnknown(WrittenTemplate)
        : (input, options) => ParseResult.map(ParseResult.decodeUnknown(someText)(input, options), (body) => ({ body }))
    )
  ),
  mcp: named(
    selected<McpServer>((value) =>
      isMap(value) && "url" in value ? ParseResult.decodeUnknown(HttpServer) : ParseResult.decodeUnknown(CommandServer)
    )
  ),
  fetch: optional(Schema.Struct({ private_addresses: optional(boolean) }).pipe(shaped("a map"))),
  search: optional(WrittenSearch),
  environment: optional(Schema.Struct({ bash: optional(variables) }).pipe(shaped("a map of bash"))),
  trust: optional(Schema.Struct({ folders: optional(texts) }).pipe(shaped("a map of folders"))),
  sandbox: optional(WrittenSandbox),
  naming: optional(NamingMode.pipe(expects("model, prompt or off"))),
  notifications: toggle,
  max_loop_lag: optional(counting),
  permission_timeout: amountOrNever,
  budget: optional(Schema.Struct({ cost: optional(amount), tokens: optional(whole) }).pipe(shaped("a map"))),
  prices: named(WrittenPrice),
  providers: named(WrittenProvider),
  retention: optional(WrittenRetention),
  snapshots: optional(WrittenSnapshots),
  shell: optional(WrittenShell),
  shared: named(WrittenSpace)
}).pipe(shaped("a map of settings"))

type Environment = Readonly<Record<string, string | undefined>>

const reference = /\$\{env:([^}]*)(\}?)/g

/** The redacted text with its variables expanded, or one error per variable. */
const expand = (text: string, environment: Environment): Redacted.Redacted | ReadonlyArray<string> => {
  const faults: Array<string> = []
  const expanded = text.replaceAll(reference, (_, name: string, close: string) => {
    const value = environment[name]
    if (close === "" || !/^[A-Za-z_][A-Za-z0-9_]*$/.test(name))
      faults.push("expected ${env:NAME} with a variable's name")
    else if (value === undefined) faults.push(`the environment variable ${name} is not set`)
    return value ?? ""
  })
  return faults.length === 0 ? Redacted.make(expanded) : faults
}

/** Expands the variables in `mcp.*.env` and `mcp.*.headers`. Disabled servers are skipped. */
const expandVariables = (
  { at, value }: Parsed,
  environment: Environment
): { readonly value: unknown; readonly issues: ReadonlyArray<Issue> } => {
  if (!Predicate.isRecord(value) || !Predicate.isRecord(value.mcp)) return { value, issues: [] }
  const issues: Array<Issue> = []
  const entry = (path: ReadonlyArray<string>, written: unknown) => {
    if (typeof written !== "string" || !written.includes("${env:")) return written
    const expanded = expand(written, environment)
    if (Redacted.isRedacted(expanded)) return expanded
    issues.push(...expanded.map((details) => ({ path: showPath(path), ...at(path), details })))
    return ""
  }
  const section = (path: ReadonlyArray<string>, written: unknown) =>
    Predicate.isRecord(written)
      ? Object.fromEntries(Object.entries(written).map(([key, each]) => [key, entry([...path, key], each)]))
      : written
  const server = (name: string, written: unknown) => {
    if (!Predicate.isRecord(written) || written.enabled === false) return written
    const given = (["env", "headers"] as const).filter((key) => key in written)
    return { ...written, ...Object.fromEntries(given.map((key) => [key, section(["mcp", name, key], written[key])])) }
  }
  const mcp = Object.fromEntries(Object.entries(value.mcp).map(([name, written]) => [name, server(name, written)]))
  return { value: { ...value, mcp }, issues }
}

/** The file is unusable; `issues` lists all of its errors. */
export class ConfigInvalid extends Schema.TaggedError<ConfigInvalid>("@daybook/cli/ConfigInvalid")("ConfigInvalid", {
  file: Schema.String,
  issues: Schema.Array(Issue)
}) {
  override get message() {
    return `the configuration ${this.file} cannot be used:\n${showIssues(this.issues)}`
  }
}

/** The settings of a configuration; absent ones are undefined. Compatible with `Daybook.Options` but for `shared`. */
export type Settings = Readonly<ReturnType<typeof settingsOf>>

/** Settings of MCP servers are never shown: arguments and URLs may hold secrets too; of providers, keys and headers. */
const secret = ([section, , field]: KeyPath) =>
  section === "mcp" || (section === "providers" && (field === undefined || field === "key" || field === "headers"))

/** Drops empty sections, for example one whose lines are all commented out. */
const withoutEmpty = ({ at, value }: Parsed): Parsed => ({
  at,
  value: isMap(value) ? Object.fromEntries(Object.entries(value).filter(([, section]) => section !== null)) : value
})

type Naming = { readonly takes: (key: string) => boolean; readonly rule: string }

const names: Naming = { takes: (key) => namePattern.test(key), rule: nameRule }

const namings: {
  readonly [Section in "agents" | "references" | "templates" | "mcp" | "prices" | "providers" | "shared"]: Naming
} = {
  agents: names,
  references: names,
  templates: names,
  mcp: {
    takes: (key) => /^[a-z0-9][a-z0-9_-]{0,31}$/.test(key),
    rule: "at most 32 of a-z, 0-9, _ and -, the first a letter or digit"
  },
  prices: { takes: (key) => /^[^/\s]+\/\S+$/.test(key), rule: "provider/model" },
  providers: names,
  shared: { takes: isName, rule: addressRule }
}

const badNames = (file: typeof WrittenConfig.Type, at: Parsed["at"]): ReadonlyArray<Issue> =>
  Struct.keys(namings).flatMap((section) =>
    Object.keys(file[section] ?? {})
      .filter((key) => !namings[section].takes(key))
      .map((key) => ({
        path: showPath([section, key]),
        ...at([section, key]),
        details: `expected a name: ${namings[section].rule}`
      }))
  )

const redacted = (values: Readonly<Record<string, string | Redacted.Redacted>>) =>
  Object.fromEntries(
    Object.entries(values).map(([key, value]) => [key, Redacted.isRedacted(value) ? value : Redacted.make(value)])
  )

const located = <A extends { readonly writable?: ReadonlyArray<string>; readonly readable?: ReadonlyArray<string> }>(
  sandbox: A,
  absolute: (written: string) => string
): A => ({
  ...sandbox,
  ...(sandbox.writable === undefined ? {} : { writable: sandbox.writable.map(absolute) }),
  ...(sandbox.readable === undefined ? {} : { readable: sandbox.readable.map(absolute) })
})

const closed = (server: McpServer, absolute: (written: string) => string): McpServer =>
  isStdio(server)
    ? {
        ...server,
        ...(server.env === undefined ? {} : { env: redacted(server.env) }),
        ...(server.sandbox === undefined ? {} : { sandbox: located(server.sandbox, absolute) })
      }
    : { ...server, ...(server.headers === undefined ? {} : { headers: redacted(server.headers) }) }

const mapValues = <A, B>(record: Readonly<Record<string, A>>, f: (value: A) => B): Readonly<Record<string, B>> =>
  Object.fromEntries(Object.entries(record).map(([key, value]) => [key, f(value)]))

const sandboxOf = (
  { auto_allow: autoAllow, ...settings }: typeof WrittenSandbox.Type,
  absolute: (written: string) => string
): SandboxSettings => ({ ...located(settings, absolute), ...(autoAllow === undefined ? {} : { autoAllow }) })

/** The file's folder, and what its texts refer to. */
interface Surroundings {
  readonly folder: string
  readonly home: string
  readonly environment: Readonly<Record<string, string | undefined>>
}

/** The settings of a file. Paths are absolute; environments, headers and keys are redacted. */
const settingsOf = (
  {
    agents,
    compaction,
    environment: bash,
    fetch,
    mcp,
    permission_timeout: permissionTimeout,
    max_loop_lag: maxLoopLag,
    prices,
    providers,
    references,
    retention,
    sandbox,
    search,
    shared,
    shell,
    skills,
    snapshots,
    templates,
    trust,
    ...same
  }: typeof WrittenConfig.Type,
  { environment, folder, home }: Surroundings
) => {
  const absolute = (written: string) =>
    path.resolve(folder, written === "~" || written.startsWith("~/") ? path.join(home, written.slice(1)) : written)
  return present({
    ...same,
    compaction:
      compaction &&
      present({
        enabled: compaction.enabled,
        reserveTokens: compaction.reserve_tokens,
        keepRecentTokens: compaction.keep_recent_tokens,
        prune: compaction.prune
      }),
    references: references && mapValues(references, (each) => ({ ...each, path: absolute(each.path) })),
    skills: skills?.map(absolute),
    agents: agents && Object.entries(agents).map(([name, definition]) => userAgent({ name, definition })),
    templates: templates && Object.entries(templates).map(([name, template]) => ({ name, ...template })),
    mcp: mcp && mapValues(mcp, (server) => closed(server, absolute)),
    environment: bash,
    fetch: fetch && present({ privateAddresses: fetch.private_addresses }),
    search: search && searchOf(search, environment),
    /** The person's folders whose projects are trusted: patterns, as in `TrustOptions.folders`. */
    trust: trust && present({ folders: trust.folders?.map(absolute) }),
    sandbox: sandbox && sandboxOf(sandbox, absolute),
    /** Milliseconds of event loop lag above which prompts wait. */
    maxLoopLag,
    /** How long a permission waits for an answer of a client: milliseconds; zero for never refusing it. */
    permissionTimeout: permissionTimeout === undefined ? undefined : durationOrNever(permissionTimeout),
    /** US dollars per million tokens, by `provider/model`. */
    prices: prices && mapValues(prices, priceOf),
    providers: providers && mapValues(providers, (provider) => providerOf(provider, environment)),
    /** The paths of API keys that are literals in the file. */
    literalKeys: keysOf(providers, search),
    /** What `daybook serve` removes of the log in the background: milliseconds, bytes, the folder of archives. */
    retention:
      retention &&
      present({
        keep: retention.keep === undefined ? undefined : ageOf(retention.keep),
        maxSize: retention.max_size === undefined ? undefined : sizeOf(retention.max_size),
        archive: retention.archive === undefined ? undefined : absolute(retention.archive)
      }),
    /** False: no snapshots of files are taken. */
    snapshots: snapshots?.enabled === false ? (false as const) : undefined,
    /** Folders outside of git work trees whose files are snapshotted. */
    snapshotFolders: snapshots?.folders?.map(absolute),
    /** Bytes of all snapshots together. */
    snapshotBytes: snapshots?.max_size === undefined ? undefined : sizeOf(snapshots.max_size),
    shell: shell && shellOf(shell, absolute),
    /** Spaces of several users or agents. Without `agents`, a space accepts every agent; writers default to its owner. */
    shared: shared && mapValues(shared, (space) => ({ ...space, read: space.read ?? ("owner" as const) }))
  })
}

/** Parses a configuration: its settings, or all of its errors. Pure. */
export const parseConfig = (
  text: string,
  { environment, folder, home }: Surroundings
): Either.Either<Settings, ReadonlyArray<Issue>> => {
  const document = Either.map(parseYaml(text), withoutEmpty)
  if (Either.isLeft(document)) return Either.left(document.left)
  const { at } = document.right
  const { issues: variables, value } = expandVariables(document.right, environment)
  const decoded = decodeParsed(WrittenConfig, { at, value }, secret)
  const unnamed = Either.match(decoded, {
    onLeft: () => [],
    onRight: (file) => [...badNames(file, at), ...providerIssues(file.providers ?? {}, at)]
  })
  const issues = [...Either.match(decoded, { onLeft: (faults) => faults, onRight: () => unnamed }), ...variables]
  if (Either.isLeft(decoded) || issues.length > 0) return Either.left(issues)
  return Either.right(settingsOf(decoded.right, { environment, folder, home }))
}

const maximumBytes = 1024 * 1024

/** Overrides for `load`; default: the process's environment and the user's home folder. */
type LoadOptions = Partial<Pick<Surroundings, "environment" | "home">>

/** Loads the settings of a file. A missing file has none. */
export const load = Effect.fn("Config.load")(function* (file: string, options: LoadOptions = {}) {
  const invalid = (issues: ReadonlyArray<Issue>) => new ConfigInvalid({ file, issues })
  const text = yield* Effect.catchAll(readText(file, { maxBytes: maximumBytes }), ({ details, reason }) =>
    reason === "missing" ? Effect.succeed("") : invalid([{ path: "", details }])
  )
  const { environment = process.env, home = homedir() } = options
  const folder = path.dirname(path.resolve(file))
  return yield* Either.mapLeft(parseConfig(text, { environment, folder, home }), invalid)
})
