/**
 * Wakes tails for commits of other nodes. One connection listens; a notice holds ids only: the writer, the position and
 * the sessions. A poll covers notices that were lost. Spec: PG-9 in specs/postgres.md, LG-12, LG-58 in specs/log.md.
 */
import type * as SqlClient from "@effect/sql/SqlClient"
import type * as SqlError from "@effect/sql/SqlError"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import { OutsideClock } from "@daybook/log/log/SqlEventLog"
import type { Commit, Tails } from "@daybook/log/log/Tails"
import { Effect, Schedule, type Scope } from "effect"
import * as Connections from "./Connections.ts"

/** PostgreSQL accepts notices of less than 8,000 bytes. */
const longestNotice = 7_900

/** A notice that has no room for the ids of its sessions has this instead, which means any session. */
const anySession = "*"

/** The notice that work may have moved between nodes. */
const moved = "moved"

/** The statement that tells the nodes that work may have moved. */
export const moveNotice = ({ schema }: Connections.Settings): Connections.Sent => ({
  text: "SELECT pg_notify($1, $2)",
  values: [channel(schema), moved]
})

export const channel = (schema: string): string => `daybook_${schema}`

/** The statement that tells the other nodes, in the transaction of a commit. */
export const notice =
  ({ schema }: Connections.Settings, writer: string) =>
  (position: number, sessions: ReadonlyArray<SessionID>): Connections.Sent => {
    const text = `${writer} ${position} ${sessions.join(",")}`
    const short = text.length > longestNotice ? `${writer} ${position} ${anySession}` : text
    return { text: "SELECT pg_notify($1, $2)", values: [channel(schema), short] }
  }

/** The end of the log, with its removals. */
interface End {
  readonly position: number
  readonly removals: number
}

const selectEnd = (sql: SqlClient.SqlClient) =>
  Effect.map(
    sql<End>`SELECT position, coalesce((SELECT max(number) FROM session_removal), 0) AS removals FROM log_head`,
    ([end]) => end ?? { position: 0, removals: 0 }
  )

export interface Wakes {
  readonly announce: (commits: ReadonlyArray<Commit>) => void
  /** This process stored events up to a position, and rings no tails for them. */
  readonly seen: (position: number) => void
  /** This process removed a session, and rang its tails. */
  readonly removed: () => void
}

/** Where the tails of a log are woken. */
export interface Options {
  readonly settings: Connections.Settings
  readonly sql: SqlClient.SqlClient
  readonly tails: Tails
  readonly writer: string
  /** Hears that work may have moved. */
  readonly movedHere: () => void
}

/** Wakes the tails of a notice. */
const makeHear =
  ({ movedHere, tails, writer }: Options, seen: (position: number) => void) =>
  (payload: string | undefined) => {
    if (payload === moved) return movedHere()
    const [from, position, ids = anySession] = (payload ?? "").split(" ")
    if (from === writer) return
    seen(Number(position) || 0)
    if (ids === anySession) return tails.ringAll()
    for (const id of ids.split(",")) tails.reset(id)
  }

/** Listens on one connection until it breaks. `ready` runs when it listens: notices before were lost. */
const listenOnce = ({ settings }: Options, hear: (payload: string | undefined) => void, ready: () => void) =>
  Effect.async<never, unknown>((resume) => {
    const client = Connections.client(settings)
    const ended = (cause?: unknown) => resume(Effect.fail(cause ?? new Error("the connection ended")))
    client.on("error", ended)
    client.on("end", ended)
    client.on("notification", ({ payload }) => hear(payload))
    client
      .connect()
      .then(() => client.query(`LISTEN ${client.escapeIdentifier(channel(settings.schema))}`))
      .then(ready, ended)
    return Effect.promise(() => client.end().catch(() => {}))
  })

/** Between two attempts to listen. */
const again = Schedule.exponential("50 millis", 2).pipe(Schedule.union(Schedule.spaced("2 seconds")), Schedule.jittered)

/** Starts to listen and to poll, in the current scope. */
export const make = (options: Options): Effect.Effect<Wakes, SqlError.SqlError, Scope.Scope> =>
  Effect.gen(function* () {
    const { sql, tails } = options
    const clock = yield* OutsideClock
    /** The newest position for which tails were rung. */
    let { position: known, removals } = yield* selectEnd(sql)
    const seen = (position: number) => {
      if (position > known) known = position
    }

    const listens = listenOnce(options, makeHear(options, seen), () => {
      tails.ringAll()
      options.movedHere()
    })
    yield* listens.pipe(
      Effect.tapError((cause) => Effect.logDebug("the connection that listens for commits broke", cause)),
      Effect.retry(again),
      Effect.withClock(clock),
      Effect.forkScoped
    )

    const look = Effect.map(selectEnd(sql), (end) => {
      const isNews = end.position > known || end.removals !== removals
      seen(end.position)
      removals = end.removals
      if (isNews) tails.ringAll()
    })
    yield* Effect.zipRight(tails.tailed, look).pipe(
      Effect.catchAllCause((cause) => Effect.logDebug("looking for other nodes' commits failed", cause)),
      Effect.repeat(Schedule.spaced("1 second")),
      Effect.withClock(clock),
      Effect.forkScoped
    )

    return {
      seen,
      removed: () => {
        removals += 1
      },
      announce: (commits) => {
        for (const { events } of commits) seen(events.at(-1)?.position ?? 0)
        tails.announce(commits)
      }
    }
  })
