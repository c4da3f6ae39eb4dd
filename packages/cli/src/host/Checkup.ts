/**
 * Checks for `daybook doctor`: the database, whether a process keeps the session files current, whether each configured
 * provider answers, and what a prompt in the folder would be made of. Spec: CL-19, CL-93.
 */
import { existsSync } from "node:fs"
import { homedir } from "node:os"
import { dirname, join } from "node:path"
import { type ConfigError, Effect, HashMap, Layer, Logger, LogLevel, Option, Stream, Struct } from "effect"
import { Agents } from "@daybook/core/agent/Agents"
import { findProgram as findSandbox } from "@daybook/core/child/Sandbox"
import { safeFetch } from "@daybook/core/http/SameOrigin"
import { ModelResolver } from "@daybook/core/model/ModelResolver"
import { Sessions } from "@daybook/core/session/Sessions"
import * as Snapshots from "@daybook/core/snapshot/Snapshots"
import * as Upkeep from "@daybook/core/snapshot/Upkeep"
import * as Daybook from "@daybook/embedded/Daybook"
import { follower } from "@daybook/files/record/LedgerFile"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import type { Session } from "@daybook/log/domain/Message"
import { EventLog } from "@daybook/log/log/EventLog"
import * as Doctor from "@daybook/log/maintenance/Doctor"
import * as Rebuild from "@daybook/log/maintenance/Rebuild"
import { verify } from "@daybook/log/search/Indexing"
import { withoutRoom } from "@daybook/log/storage/FullDisk"
import * as PrivateFile from "@daybook/log/storage/PrivateFile"
import { isAlive } from "@daybook/log/support/Alive"
import { unansweredWords } from "@daybook/log/support/SystemError"
import { Mcp, type McpStatus } from "@daybook/mcp/Mcp"
import { Listing, OfflineModel } from "@daybook/models"
import type * as Config from "../config/Config.ts"
import * as Configuration from "../config/Configuration.ts"
import type { Place } from "../config/DatabasePath.ts"
import { many, sizeText } from "../support/Amounts.ts"
import type { UsageError } from "../support/Errors.ts"
import { dataFolder } from "../support/Paths.ts"
import { rootOf } from "./FilesHost.ts"
import { builtinsOf, serverStart } from "./Host.ts"
import * as ModelList from "./ModelList.ts"
import * as Nodes from "./Nodes.ts"
import * as PlaceStore from "./PlaceStore.ts"
import * as Trusting from "./Trusting.ts"

export interface Check {
  readonly about: string
  readonly verdict: "ok" | "warning" | "error"
  readonly says: string
  /** What to do about it. */
  readonly fix?: string
}

/** The faults of the database; none if it is sound. */
export const database = (place: Place) =>
  Doctor.verify.pipe(
    Stream.map((finding): Check => ({
      about: finding.sessionID ?? "database",
      verdict: finding.severity,
      says: finding.what,
      fix: finding.fix
    })),
    Stream.provideLayer(PlaceStore.layer(place))
  )

/** The disk of the database, if nothing can be written to it. A server of PostgreSQL has its own. */
export const room = (place: Place): Check | undefined => {
  const says = place._tag === "File" ? withoutRoom(place.path) : undefined
  if (says === undefined) return undefined
  return { about: "disk", verdict: "error", says, fix: "free some space: nothing can be saved until then" }
}

/** The faults of the search index, as warnings, because it can be rebuilt. Without an index there are none. */
export const search = (place: Place) =>
  Effect.map(verify, (found) =>
    found.map((says): Check => ({
      about: "search",
      verdict: "warning",
      says,
      fix: "daybook search --rebuild builds the index again from the log"
    }))
  ).pipe(
    Effect.catchTag("DatabaseError", ({ message: says }) =>
      Effect.succeed<ReadonlyArray<Check>>([
        {
          about: "search",
          verdict: "warning",
          says,
          fix: "make the file usable, or remove it: the next search builds the index again"
        }
      ])
    ),
    Effect.provide(PlaceStore.layerSearching(place))
  )

/** Daybook's own folders, which only their owner may read. */
const ownFolders = (filename: string): ReadonlyArray<string> => {
  const data = dataFolder(process.env, homedir())
  return [
    data,
    join(data, "trust"),
    join(data, "mcp"),
    join(dirname(filename), "tool-output"),
    Snapshots.folderBeside(filename)
  ]
}

/** Reports database files and Daybook folders that other users may access; `fix` restricts them to their owner. */
export const modes = (filename: string, fix: boolean): Effect.Effect<ReadonlyArray<Check>> =>
  Effect.flatMap(
    Effect.promise(() => PrivateFile.wide(filename, ownFolders(filename))),
    (found) =>
      Effect.forEach(found, (file) => {
        const [about, mode] = ["modes", file.mode.toString(8).padStart(4, "0")]
        const wide = `${file.path} has mode ${mode}: other users may access it`
        const check: Check = { about, verdict: "warning", says: wide, fix: "daybook doctor --fix restricts it to you" }
        if (!fix) return Effect.succeed(check)
        return Effect.match(
          Effect.tryPromise(() => PrivateFile.tighten(file)),
          {
            onSuccess: (): Check => ({
              about,
              verdict: "ok",
              says: `${file.path} had mode ${mode}; now only you may access it`
            }),
            onFailure: (): Check => ({ ...check, verdict: "error", fix: `its owner runs chmod go= ${file.path}` })
          }
        )
      })
  )

const mendings = {
  damaged: "keeps the snapshots that are whole",
  orphaned: "removes them",
  unfinished: "erases it"
} as const

/** One fault, mended if `fix`. */
const snapshotFault = (fault: Upkeep.Fault, fix: boolean) => {
  const { details, kind, root, store } = fault
  const says = `snapshots of ${root ?? store}: ${details}`
  const check: Check = { about: "snapshots", verdict: "warning", says, fix: `daybook doctor --fix ${mendings[kind]}` }
  if (!fix) return Effect.succeed(check)
  return Effect.match(Upkeep.mend(fault), {
    onSuccess: (): Check => ({ about: "snapshots", verdict: "ok", says: `${says}; mended` }),
    onFailure: ({ message }): Check => ({ ...check, fix: `it could not be mended: ${message}` })
  })
}

/** The faults of the snapshots of files, and how many there are; `fix` mends them. None: undo restores no files. */
export const snapshots = (filename: string, fix: boolean): Effect.Effect<ReadonlyArray<Check>> =>
  Effect.gen(function* () {
    const folder = Snapshots.folderBeside(filename)
    const faults = yield* Upkeep.check(folder)
    const found = yield* Effect.forEach(faults, (fault) => snapshotFault(fault, fix))
    const { bytes, folders, snapshots } = yield* Upkeep.measure(folder)
    const says = `${many(snapshots, "snapshot")} of ${many(folders, "folder")}, ${sizeText(bytes)}`
    return snapshots === 0 ? found : [...found, { about: "snapshots", verdict: "ok", says } satisfies Check]
  }).pipe(
    Effect.catchAll(({ message }) =>
      Effect.succeed<ReadonlyArray<Check>>([{ about: "snapshots", verdict: "warning", says: message }])
    )
  )

/** The ids of the first few sessions, and how many more there are. */
const few = (sessions: ReadonlyArray<Session>): string => {
  const ids = sessions.slice(0, 5).map(({ id }) => id)
  return `${ids.join(", ")}${sessions.length > ids.length ? ` and ${sessions.length - ids.length} more` : ""}`
}

/** Work that dead processes left behind. */
export const left = Effect.gen(function* () {
  const sessions = yield* Sessions
  const lists = [
    ["cut off when their process ended", "continues", yield* sessions.interrupted],
    ["with prompts that wait for a run", "runs them", yield* sessions.waiting]
  ] as const
  return lists.flatMap(([what, then, found]): ReadonlyArray<Check> =>
    found.length === 0
      ? []
      : [{ about: "sessions", verdict: "warning", says: `${what}: ${few(found)}`, fix: `daybook resume ID ${then}` }]
  )
})

/** Workspaces that prompts wait for and no node has. */
export const missing = Effect.map(Nodes.found, (report) =>
  Nodes.missing(report).map(([workspace, says]): Check => {
    const fix = `daybook serve --node HOST:PORT --workspace ${workspace}=DIR runs them`
    return { about: "sessions", verdict: "warning", says, fix }
  })
)

/** Rebuilds the projections of one session, or of all, from the events. */
export const rebuild = (place: Place, which: SessionID | "all") =>
  Effect.provide(Rebuild.rebuild(which), PlaceStore.layer(place))

const mostCounted = 10_000

/** How many of the events that are left after this position the files do not contain. */
const behind = Effect.fnUntraced(function* (position: number) {
  const log = yield* EventLog
  let [after, count] = [position, 0]
  while (count < mostCounted) {
    const page = yield* log.readFeed({ after, gaps: true })
    count += page.events.length
    if (!page.hasMore) return many(count, "event")
    after = page.position
  }
  return `more than ${mostCounted} events`
})

const about = "files"

/** The last report of the session files' follower; nothing if there has been none. */
export const files = (place: Place) =>
  Effect.gen(function* () {
    const root = yield* rootOf(undefined)
    const said = yield* follower(root, process.geteuid?.() ?? 0)
    if (Option.isNone(said)) return []
    const { error, pid, position, since, state } = said.value
    const when = new Date(since).toISOString()
    const alive = isAlive(pid)
    if (alive && state === "following") {
      const check: Check = { about, verdict: "ok", says: `process ${pid} keeps the files at ${root} current` }
      return [check]
    }
    if (alive && state === "failing") {
      const check: Check = {
        about,
        verdict: "error",
        says: `the files at ${root} are not current since ${when}: ${error ?? "unknown"}; they are ${yield* behind(position)} behind`,
        fix: `remove the cause; process ${pid} tries again every 30 seconds`
      }
      return [check]
    }
    const check: Check = {
      about,
      verdict: "warning",
      says: `no process keeps the files at ${root} current since ${when}`,
      fix: "daybook serve keeps them current; daybook files export updates them once"
    }
    return [check]
  }).pipe(Effect.provide(PlaceStore.layer(place)))

const patience = "5 seconds"

/** Requests the list of models, which is free and requires the key. */
const reach = (name: string, address: string, headers: Record<string, string>): Effect.Effect<Check> =>
  Effect.tryPromise({
    try: (signal) => safeFetch(address, { headers, signal }),
    catch: unansweredWords
  }).pipe(
    Effect.tap((response) => Effect.promise(async () => response.body?.cancel())),
    Effect.timeoutFail({ duration: patience, onTimeout: () => `no answer in ${patience}` }),
    Effect.match({
      onFailure: (why): Check => ({
        about: name,
        verdict: "error",
        says: `${new URL(address).host} cannot be reached: ${why}`,
        fix: "check the address, the network and its proxy"
      }),
      onSuccess: ({ status }): Check =>
        status === 401 || status === 403
          ? { about: name, verdict: "error", says: `the key was refused (HTTP ${status})`, fix: "check the key" }
          : status >= 500
            ? { about: name, verdict: "warning", says: `answers HTTP ${status}`, fix: "try again later" }
            : { about: name, verdict: "ok", says: `${new URL(address).host} answers` }
    })
  )

/** Checks each configured provider, and the default model. */
export const models: Effect.Effect<ReadonlyArray<Check>, ConfigError.ConfigError | UsageError> = Effect.gen(
  function* () {
    const { default: standard, providers } = yield* ModelList.modelOptions
    const first: Check =
      standard === undefined
        ? {
            about: "model",
            verdict: "warning",
            says: "no model is selected",
            fix: "daybook setup keeps one"
          }
        : OfflineModel.isOffline(standard)
          ? {
              about: "model",
              verdict: "warning",
              says: "only the offline model answers, a fixed program",
              fix: "daybook setup keeps a key"
            }
          : { about: "model", verdict: "ok", says: `${standard.providerID}/${standard.id}` }
    const reached = yield* Effect.forEach(
      Object.entries(providers),
      ([name, provider]) => {
        const target = Listing.targetOf(name, provider)
        return target === undefined
          ? Effect.succeed<Check>({ about: name, verdict: "ok", says: "created by the host" })
          : reach(name, Listing.modelsAddress(target), Listing.headersOf(target))
      },
      { concurrency: "unbounded" }
    )
    return [first, ...reached]
  }
)

/** Any model will do: it is never called. */
const anyModel = Layer.succeed(ModelResolver, ModelResolver.of({ resolve: () => OfflineModel.resolved }))

const words = (message: unknown): string => (Array.isArray(message) ? message.map(String).join(" ") : String(message))

const serverCheck = ({ details, name, state, tools }: McpStatus): Check => {
  const about = `mcp ${name}`
  const said = details === undefined ? "" : `: ${details}`
  return state === "connected"
    ? { about, verdict: details === undefined ? "ok" : "warning", says: `connected, ${tools} tools${said}` }
    : { about, verdict: "error", says: `${state}${said}` }
}

/** Checks the configuration file and reports its faults. */
export const configuration = Effect.gen(function* () {
  const { file } = yield* Configuration.places
  const about = "config"
  const exposed = yield* Effect.orElseSucceed(Configuration.exposedKeys, () => undefined)
  return yield* Effect.match(Configuration.read, {
    onFailure: (error) => ({
      settings: undefined,
      checks:
        error._tag === "UsageError"
          ? [{ about, verdict: "error", says: error.message } satisfies Check]
          : error.message.split("\n").map((says): Check => ({ about, verdict: "error", says }))
    }),
    onSuccess: (settings) => ({
      settings,
      checks: [
        exposed === undefined
          ? ({
              about,
              verdict: "ok",
              says: existsSync(file) ? file : `there is no ${file}; it is optional`
            } satisfies Check)
          : ({ about, verdict: "warning", says: exposed } satisfies Check)
      ]
    })
  })
})

/** Checks that the configured sandbox can be created. */
const sandbox = ({
  mcp = {},
  sandbox: settings = {}
}: Configuration.Configured): Effect.Effect<ReadonlyArray<Check>> => {
  const asked = [settings, ...Object.values(mcp).map((server) => ("sandbox" in server ? server.sandbox : undefined))]
  return asked.some((each) => each?.mode === "on")
    ? Effect.match(findSandbox(settings), {
        onFailure: ({ message }): ReadonlyArray<Check> => [{ about: "sandbox", verdict: "error", says: message }],
        onSuccess: (program) => [{ about: "sandbox", verdict: "ok", says: `${program} can create sandboxes` }]
      })
    : Effect.succeed([])
}

/** Lists the configured MCP servers without starting them. */
const named = (mcp: Config.Settings["mcp"]): ReadonlyArray<Check> => {
  const names = Object.keys(mcp ?? {})
  return names.length === 0
    ? []
    : [{ about: "mcp", verdict: "ok", says: `${names.join(", ")}: not started; daybook doctor --mcp checks them` }]
}

/** Rehearses a prompt in the folder; with `servers`, MCP servers are started and asked for their tools. */
export const rehearse = (
  directory: string,
  configured: Configuration.Configured,
  servers: boolean
): Effect.Effect<ReadonlyArray<Check>> => {
  const { fetch, mcp = {}, search, ...settings } = configured
  const warnings: Array<Check> = []
  const gather = Logger.make(({ annotations, logLevel, message }) => {
    // Each server has a check of its own.
    if (LogLevel.greaterThanEqual(logLevel, LogLevel.Warning) && !HashMap.has(annotations, "server")) {
      warnings.push({ about: "context", verdict: "warning", says: words(message) })
    }
  })
  return Effect.gen(function* () {
    const sessions = yield* Sessions
    const agents = yield* Agents
    const { id: sessionID } = yield* sessions.create({ location: { directory } })
    // A missing template makes the runtime read all of them.
    yield* sessions.prompt({ sessionID, prompt: { text: "/daybook-doctor" }, resume: false })
    const { estimate, frame } = yield* sessions.request({ sessionID })
    const connected = yield* Mcp
    const status = servers ? yield* Effect.zipRight(connected.ready, connected.status) : []
    const known = yield* agents.list({ directory })
    const { standing } = yield* (yield* Trusting.storeOf(settings)).report(directory)
    const trusted = standing.state === "trusted"
    return [
      {
        about: "trust",
        verdict: trusted ? "ok" : "warning",
        says: `the project is ${standing.state}: ${standing.why}`,
        ...(trusted ? {} : { fix: "daybook trust shows what it brings, daybook trust grant trusts it" })
      },
      {
        about: "context",
        verdict: "ok",
        says: `a prompt in ${directory} begins with ${estimate.system + estimate.tools} tokens: ${frame.system.length} system texts, ${frame.tools.length} tools`
      },
      { about: "agents", verdict: "ok", says: known.map(({ name }) => name).join(", ") },
      ...(yield* sandbox(configured)),
      ...(servers ? status.map(serverCheck) : named(mcp))
    ] satisfies ReadonlyArray<Check>
  }).pipe(
    Effect.provide(
      Layer.unwrapEffect(
        Effect.map(Trusting.storeOf(settings), (trust) =>
          Daybook.layer({
            filename: ":memory:",
            ...Struct.omit(settings, "literalKeys", "notifications", "providers", "shared", "shell", "trust"),
            builtins: builtinsOf(fetch, search),
            trust,
            mcp: servers ? mcp : {},
            serverStart: serverStart()
          })
        )
      ).pipe(Layer.provide(anyModel))
    ),
    Effect.catchAll(({ message }) => Effect.succeed([{ about: "context", verdict: "error", says: message } as const])),
    Effect.map((checks) => [...checks, ...warnings]),
    Effect.provide(Layer.mergeAll(Logger.add(gather), Logger.minimumLogLevel(LogLevel.Warning)))
  )
}
