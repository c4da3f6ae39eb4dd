/**
 * Checks for `daybook doctor`: the database, whether a process keeps the session files current, and whether each
 * configured provider answers. Spec: CL-19.
 */
import { homedir } from "node:os"
import { dirname, join } from "node:path"
import { type ConfigError, Effect, Option, Stream } from "effect"
import { safeFetch } from "@daybook/core/http/SameOrigin"
import { Sessions } from "@daybook/core/session/Sessions"
import * as Snapshots from "@daybook/core/snapshot/Snapshots"
import * as Upkeep from "@daybook/core/snapshot/Upkeep"
import { follower } from "@daybook/files/record/LedgerFile"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import type { Session } from "@daybook/log/domain/Message"
import { EventLog, type LogUnavailable } from "@daybook/log/log/EventLog"
import * as Doctor from "@daybook/log/maintenance/Doctor"
import * as Rebuild from "@daybook/log/maintenance/Rebuild"
import { verify } from "@daybook/log/search/Indexing"
import * as PrivateFile from "@daybook/log/storage/PrivateFile"
import * as Store from "@daybook/log/Store"
import { isAlive } from "@daybook/log/support/Alive"
import { Listing } from "@daybook/models"
import { many, sizeText } from "../support/Amounts.ts"
import { dataFolder } from "../support/Paths.ts"
import type { UsageError } from "../support/Errors.ts"
import { rootOf } from "./FilesHost.ts"
import * as ModelOptions from "./ModelOptions.ts"

/** One line of the report. */
export interface Check {
  readonly about: string
  readonly verdict: "ok" | "warning" | "error"
  readonly says: string
  /** What to do about it. */
  readonly fix?: string
}

type Failures = LogUnavailable | Effect.Effect.Error<ReturnType<typeof opened>>

const opened = (filename: string) => Effect.provide(Stream.runDrain(Doctor.verify), Store.layer({ filename }))

/** The faults of the database; none if it is sound. */
export const database = (filename: string): Stream.Stream<Check, Failures> =>
  Doctor.verify.pipe(
    Stream.map((finding): Check => ({
      about: finding.sessionID ?? "database",
      verdict: finding.severity,
      says: finding.what,
      fix: finding.fix
    })),
    Stream.provideLayer(Store.layer({ filename }))
  )

/** The faults of the search index; none if there is no index. They are warnings: the index can be rebuilt. */
export const search = (filename: string) =>
  Effect.map(verify, (found) =>
    found.map((says): Check => ({
      about: "search",
      verdict: "warning",
      says,
      fix: "daybook search --rebuild builds the index again from the log"
    }))
  ).pipe(Effect.provide(Store.layer({ filename })))

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

/** Rebuilds the projections of one session, or of all, from the events. */
export const rebuild = (filename: string, which: SessionID | "all") =>
  Effect.provide(Rebuild.rebuild(which), Store.layer({ filename }))

/** Events are counted up to this number. */
const mostCounted = 10_000

/** How many of the events that are left after this position the files do not contain. */
const behind = (position: number) =>
  Effect.gen(function* () {
    const log = yield* EventLog
    let [after, count] = [position, 0]
    while (count < mostCounted) {
      const page = yield* log.readFeed({ after, gaps: true })
      count += page.events.length
      if (!page.hasMore) return `${count} ${count === 1 ? "event" : "events"}`
      after = page.position
    }
    return `more than ${mostCounted} events`
  })

const about = "files"

/** The last report of the session files' follower; nothing if there has been none. */
export const files = (filename: string) =>
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
  }).pipe(Effect.provide(Store.layer({ filename })))

const causeText = (cause: unknown): string => {
  if (!(cause instanceof Error)) return String(cause)
  return cause.cause instanceof Error ? cause.cause.message : cause.message
}

const patience = "5 seconds"

/** Requests the list of models, which is free and requires the key. */
const reach = (name: string, address: string, headers: Record<string, string>): Effect.Effect<Check> =>
  Effect.tryPromise({
    try: (signal) => safeFetch(address, { headers, signal }),
    catch: (cause) => causeText(cause)
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
    const { default: standard, defaultHint, providers } = yield* ModelOptions.options
    const first: Check =
      standard === undefined
        ? {
            about: "model",
            verdict: "warning",
            says: "no model is selected",
            fix: defaultHint ?? "name one with --model"
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
