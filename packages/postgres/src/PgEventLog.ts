/**
 * The event log on PostgreSQL. Contract: `EventLog.ts` of the log; appends: `Appends.ts`; wakes: `Wakes.ts`; reads are the
 * log's own. Spec: specs/postgres.md.
 */
import { randomUUID } from "node:crypto"
import * as SqlClient from "@effect/sql/SqlClient"
import * as SqlError from "@effect/sql/SqlError"
import { brokenRule, changesOf, isEventRefused, projecting, refused } from "@daybook/log/log/Appends"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import { EventLog, type EventRefused } from "@daybook/log/log/EventLog"
import * as EventRow from "@daybook/log/log/EventRow"
import { deleteRows } from "@daybook/log/log/Removals"
import * as Replay from "@daybook/log/log/Replay"
import * as SqlEventLog from "@daybook/log/log/SqlEventLog"
import * as Tails from "@daybook/log/log/Tails"
import * as Writer from "@daybook/log/log/Writer"
import { ReadSql } from "@daybook/log/storage/Database"
import { eraseBeside, IndexFile } from "@daybook/log/storage/SearchFile"
import { reasonOf } from "@daybook/log/storage/Transaction"
import { Cause, Clock, Context, Effect, Exit, Layer } from "effect"
import * as Appends from "./Appends.ts"
import type { Answer, Line, Sent, Settings } from "./Connections.ts"
import * as Events from "./Events.ts"
import { writes } from "./Tables.ts"
import * as Wakes from "./Wakes.ts"

/** The line of appends, and where it leads. */
export class Lines extends Context.Tag("@daybook/postgres/Lines")<
  Lines,
  { readonly line: Line; readonly settings: Settings; readonly movedHere: () => void }
>() {}

const answerOf = (result: unknown): Answer => {
  // The driver's result: rows, and the number of those that a statement changed.
  const { rowCount, rows } = result as { readonly rows: ReadonlyArray<unknown>; readonly rowCount: number | null }
  return { rows, changed: rowCount ?? 0 }
}

const lineOver = (connection: Context.Tag.Service<typeof SqlClient.TransactionConnection>[0]): Line => {
  const send: Line["send"] = async (statements) => {
    const answers: Array<Answer> = []
    for (const { text, values = [] } of statements) {
      const exit = await Effect.runPromiseExit(connection.executeRaw(text, values))
      if (Exit.isFailure(exit)) throw Cause.squash(exit.cause)
      answers.push(answerOf(exit.value))
    }
    return answers
  }
  return { begin: send, send, isConnected: () => true, drop: () => {} }
}

const storeFresh = async (line: Line, types: Events.Types, fresh: Replay.Fresh): Promise<void> => {
  const { events, head, rows, sessionID } = fresh
  types.begin()
  const [locked] = await line.send([Events.lock])
  const given = Events.numbersOf(locked)
  const numbers = {
    position: rows.at(-1)?.position ?? given.position,
    session: Math.max(given.session, head.session)
  }
  await types.learn(line, rows)
  const row = { ...head, session_id: sessionID, owner_id: null, owner_epoch: 0 }
  await line.send([Events.insert(types, { before: given, numbers, heads: [row], rows })])
  for (const page of Replay.pagesOf(events)) {
    for (const write of writes(changesOf(page), new Map([[sessionID, head.session]]))) {
      await line.send([write])
    }
  }
}

/** Stores replayed events in the transaction of the context. */
const store =
  (types: Events.Types, seen: (position: number) => void, { projectors, sql }: Appends.Projecting) =>
  (fresh: Replay.Fresh): Effect.Effect<void, SqlError.SqlError | EventRefused> =>
    Effect.withFiberRuntime(({ currentContext }) => {
      const [connection] = Context.unsafeGet(currentContext, SqlClient.TransactionConnection)
      seen(fresh.rows.at(-1)?.position ?? 0)
      const projected = Effect.forEach(Replay.pagesOf(fresh.events), (page) =>
        Effect.forEach(projectors, (projector) => projecting(projector, sql, connection, page))
      )
      return Effect.tryPromise({
        try: () => storeFresh(lineOver(connection), types, fresh),
        catch: (thrown) =>
          thrown instanceof SqlError.SqlError && reasonOf(thrown) === "constraint"
            ? refused(fresh.sessionID, brokenRule(thrown, "session_message"))
            : thrown
      }).pipe(
        Effect.catchAll((thrown) =>
          thrown instanceof SqlError.SqlError || isEventRefused(thrown) ? Effect.fail(thrown) : Effect.die(thrown)
        ),
        Effect.zipRight(projectors.length === 0 ? Effect.void : Effect.asVoid(projected))
      )
    })

const run = (sql: SqlClient.SqlClient, { text, values = [] }: Sent) => sql.unsafe(text, values)

/** Deletes the rows of removed sessions. PostgreSQL's vacuum frees their space (PG-15). */
const sweep = (sql: SqlClient.SqlClient): Effect.Effect<void, SqlError.SqlError> =>
  Effect.zipRight(deleteRows(sql), sql`UPDATE session_removal SET swept = 1 WHERE swept = 0`)

/** How long a probe waits for a lock. */
const patience = "2 seconds"

const make = Effect.fnUntraced(function* ({ projectors = [] }: SqlEventLog.Options) {
  const sql = yield* SqlClient.SqlClient
  const readSql = yield* ReadSql
  const { line, movedHere, settings } = yield* Lines
  const indexFile = yield* IndexFile
  const identity = yield* EventRow.selectIdentity(sql)
  const idAt = EventRow.makeEventIds(identity)
  const writer = randomUUID()
  yield* Effect.mapError(run(sql, Events.mark({ writer, before: 0, number: 0 })), EventRow.unavailable("be written"))
  yield* Effect.addFinalizer(() => Effect.ignore(sql`DELETE FROM log_writer WHERE writer = ${writer}`))
  // Of nodes that were killed. A log that is idle for longer writes its row again.
  yield* Effect.ignore(sql`DELETE FROM log_writer WHERE time_updated < now() - interval '30 days'`)

  const tails = Tails.make()
  const wakes = yield* Effect.mapError(
    Wakes.make({ settings, sql, tails, writer, movedHere }),
    EventRow.unavailable("be read")
  )
  const notice = Wakes.notice(settings, writer)
  const commit = Appends.commit({
    line,
    idAt,
    types: Events.makeTypes(),
    projectors,
    sql,
    marks: Appends.makeMarks(writer),
    notice,
    memory: Appends.makeMemory()
  })

  const removed = (sessionID: SessionID) =>
    Effect.sync(wakes.removed).pipe(
      Effect.zipRight(run(sql, notice(0, [sessionID]))),
      Effect.zipRight(sweep(sql)),
      Effect.zipRight(Effect.provideService(eraseBeside(sql), IndexFile, indexFile)),
      Effect.withClock(Clock.make()),
      Effect.catchAllCause((cause) => Effect.logDebug("a removed session is not erased yet", cause))
    )
  // An earlier process may have ended during a removal.
  yield* Effect.forkScoped(Effect.ignoreLogged(Effect.withClock(sweep(sql), Clock.make())))

  return SqlEventLog.over({
    sql,
    readSql,
    identity,
    tails,
    writer: yield* Writer.make(commit, wakes.announce),
    replay: {
      sql,
      idAt,
      last: Effect.map(run(sql, Events.lock), ([row]) => Events.numbersOf({ rows: [row], changed: 0 })),
      store: store(Events.makeTypes(), wakes.seen, { projectors, sql })
    },
    removed,
    probe: run(sql, { text: "UPDATE log_head SET position = position" }).pipe(
      Effect.timeoutFail({
        duration: patience,
        onTimeout: () => new SqlError.SqlError({ cause: { code: "55P03" }, message: "the log is locked" })
      }),
      Effect.withClock(Clock.make()),
      Effect.mapBoth({ onFailure: EventRow.unavailable("be written"), onSuccess: () => undefined })
    )
  })
})

/** The event log over the connections in the context. */
export const layer = (options: SqlEventLog.Options = {}) => Layer.scoped(EventLog, make(options))
