/**
 * Reads the user's configuration file, YAML with snake_case keys, into the fields of `Daybook.Options`. Reads only that
 * file, and reports all of its errors together. Spec: CF-1..CF-9.
 */
import { homedir } from "node:os"
import * as path from "node:path"
import { Effect, Either, Redacted, Schema, Struct } from "effect"
import { userAgent } from "@daybook/core/agent/AgentDefinition"
import type { EnvironmentGrants } from "@daybook/core/child/ChildEnvironment"
import type { SandboxSettings } from "@daybook/core/child/Sandbox"
import {
  decodeParsed,
  Issue,
  type KeyPath,
  namePattern,
  nameRule,
  type Parsed,
  parseYaml,
  showIssues,
  showPath
} from "@daybook/core/definition/Yaml"
import type { Agent } from "@daybook/core/domain/Agent"
import { NamingMode } from "@daybook/core/session/SessionOptions"
import type { Template } from "@daybook/core/prompt/Templates"
import { readText } from "@daybook/core/support/TextFile"
import { nameRule as addressRule, isName } from "@daybook/log/domain/Address"
import type { Price } from "@daybook/log/domain/Values"
import { isStdio, type McpServer } from "@daybook/mcp/McpServer"
import type { ConfiguredProvider } from "@daybook/models/Providers"
import { ageOf, sizeOf } from "../support/Amounts.ts"
import { expandVariables } from "./EnvironmentVariables.ts"
import { keysOf, providerIssues, providerOf } from "./ProvidersSection.ts"
import { type ShellSection, shellOf } from "./ShellSection.ts"
import { durationOrNever, isMap, present, priceOf } from "./Written.ts"
import { File, type WrittenSandbox } from "./WrittenConfig.ts"

/** The file is unusable; `issues` lists all of its errors. */
export class ConfigInvalid extends Schema.TaggedError<ConfigInvalid>("@daybook/cli/ConfigInvalid")("ConfigInvalid", {
  file: Schema.String,
  issues: Schema.Array(Issue)
}) {
  override get message() {
    return `the configuration ${this.file} cannot be used:\n${showIssues(this.issues)}`
  }
}

/** A configured reference: a file or folder that prompts can mention by name. */
export interface Reference {
  /** Absolute. */
  readonly path: string
  readonly description?: string
}

/**
 * The settings of a configuration; absent ones are undefined. Compatible with `Daybook.Options`, except for `shared`.
 */
export interface Settings {
  readonly compaction?: {
    readonly enabled?: boolean
    readonly reserveTokens?: number
    readonly keepRecentTokens?: number
    readonly prune?: boolean
  }
  /** As written: paths, globs, URLs. */
  readonly instructions?: ReadonlyArray<string>
  readonly references?: Readonly<Record<string, Reference>>
  /** Absolute folders. */
  readonly skills?: ReadonlyArray<string>
  readonly agents?: ReadonlyArray<Agent>
  readonly templates?: ReadonlyArray<Template>
  /** Environment and headers are redacted. */
  readonly mcp?: Readonly<Record<string, McpServer>>
  /** Paths are absolute. */
  readonly sandbox?: SandboxSettings
  /** Variables passed to commands, by name. */
  readonly environment?: EnvironmentGrants
  /** The person's folders whose projects are trusted: absolute patterns, as in `TrustOptions.folders`. */
  readonly trust?: { readonly folders?: ReadonlyArray<string> }
  /** Budget of one session, in US dollars and tokens. */
  readonly budget?: { readonly cost?: number; readonly tokens?: number }
  /** How sessions without a title get one. */
  readonly naming?: NamingMode
  /** Milliseconds of event loop lag above which prompts wait. */
  readonly maxLoopLag?: number
  /** How long a permission waits for an answer of a client: milliseconds; zero for never refusing it. */
  readonly permissionTimeout?: number
  /** US dollars per million tokens, by `provider/model`. */
  readonly prices?: Readonly<Record<string, Price>>
  /** Providers by name: new ones, and what differs for known ones. Keys and headers are redacted. */
  readonly providers?: Readonly<Record<string, ConfiguredProvider>>
  /** The key paths of keys that stand in the file themselves. */
  readonly literalKeys?: ReadonlyArray<string>
  /** What `daybook serve` removes of the log in the background. */
  readonly retention?: RetentionSettings
  /** False: no snapshots of files are taken. */
  readonly snapshots?: false
  /** Absolute folders outside of git work trees whose files are snapshotted. */
  readonly snapshotFolders?: ReadonlyArray<string>
  /** Bytes of all snapshots together. */
  readonly snapshotBytes?: number
  /** What the operator decides about live shells. */
  readonly shell?: ShellSection
  /** Shared spaces of several users or agents, by name: whose sessions they hold, and who reads their files. */
  readonly shared?: Readonly<Record<string, SharedSpace>>
}

/** How long events are kept, and how large the database may grow. At least one of `keep` and `maxSize` is set. */
export interface RetentionSettings {
  /** Milliseconds. */
  readonly keep?: number
  /** Bytes. */
  readonly maxSize?: number
  /** The folder of archives; absolute. */
  readonly archive?: string
}

/** A shared space; without `agents`, it accepts every agent. */
export interface SharedSpace {
  readonly agents?: ReadonlyArray<string>
  /** Who reads its files. */
  readonly read: Audience
  /** Who may send prompts to its agents through the space's socket; default: its owner. */
  readonly write?: Audience
  /** The group of its files and sockets, by number or name; default: the owner's. */
  readonly group?: string | number
}

type Audience = "owner" | "group" | "everyone"

/** Settings of MCP servers are never shown: arguments and URLs may hold secrets too; of providers, keys and headers. */
const secret = ([section, , field]: KeyPath) =>
  section === "mcp" || (section === "providers" && (field === undefined || field === "key" || field === "headers"))

/** Drops empty sections, for example one whose lines are all commented out. */
const withoutEmpty = ({ at, value }: Parsed): Parsed => ({
  at,
  value: isMap(value) ? Object.fromEntries(Object.entries(value).filter(([, section]) => section !== null)) : value
})

interface Naming {
  readonly takes: (key: string) => boolean
  readonly rule: string
}

const names: Naming = { takes: (key) => namePattern.test(key), rule: nameRule }

/** The naming rule of each section. */
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

/** Names that break their section's rule. */
const badNames = (file: typeof File.Type, at: Parsed["at"]): ReadonlyArray<Issue> =>
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
export interface Surroundings {
  readonly folder: string
  readonly home: string
  readonly environment: Readonly<Record<string, string | undefined>>
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
  const decoded = decodeParsed(File, { at, value }, secret)
  const unnamed = Either.match(decoded, {
    onLeft: () => [],
    onRight: (file) => [...badNames(file, at), ...providerIssues(file.providers ?? {}, at)]
  })
  const issues = [...Either.match(decoded, { onLeft: (faults) => faults, onRight: () => unnamed }), ...variables]
  if (Either.isLeft(decoded) || issues.length > 0) return Either.left(issues)
  const {
    agents,
    budget,
    compaction,
    environment: granted,
    instructions,
    max_loop_lag: maxLoopLag,
    mcp,
    naming,
    permission_timeout: permissionTimeout,
    prices,
    providers,
    references,
    retention,
    sandbox,
    shared,
    shell,
    skills,
    snapshots,
    templates,
    trust
  } = decoded.right
  const absolute = (written: string) =>
    path.resolve(folder, written === "~" || written.startsWith("~/") ? path.join(home, written.slice(1)) : written)
  return Either.right(
    present({
      compaction:
        compaction &&
        present({
          enabled: compaction.enabled,
          reserveTokens: compaction.reserve_tokens,
          keepRecentTokens: compaction.keep_recent_tokens,
          prune: compaction.prune
        }),
      instructions,
      references: references && mapValues(references, (each) => ({ ...each, path: absolute(each.path) })),
      skills: skills?.map(absolute),
      agents: agents && Object.entries(agents).map(([name, definition]) => userAgent({ name, definition })),
      templates: templates && Object.entries(templates).map(([name, template]) => ({ name, ...template })),
      mcp: mcp && mapValues(mcp, (server) => closed(server, absolute)),
      environment: granted,
      trust: trust && present({ folders: trust.folders?.map(absolute) }),
      sandbox: sandbox && sandboxOf(sandbox, absolute),
      budget,
      naming,
      maxLoopLag,
      permissionTimeout: permissionTimeout === undefined ? undefined : durationOrNever(permissionTimeout),
      prices: prices && mapValues(prices, priceOf),
      providers: providers && mapValues(providers, (provider) => providerOf(provider, environment)),
      literalKeys: keysOf(providers),
      retention:
        retention &&
        present({
          keep: retention.keep === undefined ? undefined : ageOf(retention.keep),
          maxSize: retention.max_size === undefined ? undefined : sizeOf(retention.max_size),
          archive: retention.archive === undefined ? undefined : absolute(retention.archive)
        }),
      snapshots: snapshots?.enabled === false ? (false as const) : undefined,
      snapshotFolders: snapshots?.folders?.map(absolute),
      snapshotBytes: snapshots?.max_size === undefined ? undefined : sizeOf(snapshots.max_size),
      shell: shell && shellOf(shell, absolute),
      shared: shared && mapValues(shared, (space) => ({ ...space, read: space.read ?? "owner" }))
    })
  )
}

const maximumBytes = 1024 * 1024

/** Overrides for `load`; default: the process's environment and the user's home folder. */
export type LoadOptions = Partial<Pick<Surroundings, "environment" | "home">>

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
