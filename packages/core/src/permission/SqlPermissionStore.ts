/** Implements `PermissionStore` over the table `approval`, which the migrations create. Spec: PM-3, PM-40..PM-47. */
import * as SqlClient from "@effect/sql/SqlClient"
import type * as Statement from "@effect/sql/Statement"
import { Array as Arr, Clock, Effect, Either, Layer, Option, Schema } from "effect"
import { SessionID } from "@daybook/log/domain/Identifiers"
import { draft, type SessionEvent } from "@daybook/log/events/SessionEvents"
import { EventLog } from "@daybook/log/log/EventLog"
import { selectEvents, toEvent } from "@daybook/log/log/EventRow"
import { ReadSql } from "@daybook/log/storage/Database"
import { retryBusy } from "@daybook/log/storage/Transaction"
import { selectBySeq } from "@daybook/log/store/Content"
import type { Approval } from "../domain/Rule.ts"
import { folderIdentity } from "../trust/ProjectTrust.ts"
import {
  type ApprovalSource,
  ownUid,
  type PermissionEvent,
  PermissionStore,
  PermissionStoreError,
  SavedApproval
} from "./PermissionStore.ts"

const columns = `number, folder, permission, resource, nullif(definition, '') AS definition, session_id AS "sessionID",
  call_id AS "callID", agent, uid, time_created AS "savedAt", uses, time_used AS "usedAt", time_revoked AS "revokedAt",
  revoked_uid AS "revokedBy"`

const decodeRows = Schema.decodeUnknown(Schema.Array(SavedApproval))

const read = (rows: ReadonlyArray<object>) =>
  decodeRows(rows.map((row) => Object.fromEntries(Object.entries(row).filter(([, value]) => value !== null))))

const failed =
  (operation: string) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, PermissionStoreError, R> =>
    Effect.mapError(effect, (cause) => new PermissionStoreError({ operation, cause }))

const isPermissionEvent = (event: SessionEvent): event is PermissionEvent =>
  event.type === "session.next.permission.decided" || event.type === "session.next.permission.revoked"

/** The minimum interval between writes of one approval's uses, in milliseconds. */
const usesEvery = 60_000

const standing = (folder: string) =>
  Effect.tryPromise({
    try: () => folderIdentity(folder),
    catch: (cause) => new PermissionStoreError({ operation: "looking at their folder", cause })
  })

const select = (sql: SqlClient.SqlClient, folder: string, identity: string, permission?: string) =>
  Effect.flatMap(
    sql`SELECT ${sql.literal(columns)} FROM approval WHERE folder = ${folder} AND identity = ${identity}
      AND ${permission === undefined ? sql.literal("TRUE") : sql`(permission = ${permission} OR permission LIKE '%*%' OR permission LIKE '%?%')`}
      AND time_revoked IS NULL ORDER BY number`,
    read
  )

/** Counts the uses of approvals, and writes them at intervals and at the end of the scope. */
const makeUsed = Effect.fnUntraced(function* (sql: SqlClient.SqlClient) {
  const counted = new Map<number, { readonly uses: number; readonly writtenAt: number }>()

  const writeUses = Effect.fnUntraced(function* (now: number, every: number) {
    for (const [number, entry] of counted) {
      const { uses } = entry
      if (uses === 0 || now - entry.writtenAt < every) continue
      // Reset first, so that a concurrent call does not write them again.
      counted.set(number, { uses: 0, writtenAt: now })
      yield* sql`UPDATE approval SET uses = uses + ${uses}, time_used = ${now} WHERE number = ${number}`
    }
  }, failed("counting their uses"))

  yield* Effect.addFinalizer(() =>
    Clock.currentTimeMillis.pipe(
      Effect.flatMap((now) => writeUses(now, 0)),
      Effect.catchAll((error) => Effect.logWarning(error.message, error.cause))
    )
  )

  return Effect.fn("PermissionStore.used")(function* (numbers: ReadonlyArray<number>) {
    const now = yield* Clock.currentTimeMillis
    for (const number of numbers) {
      const { uses = 0, writtenAt = -Infinity } = counted.get(number) ?? {}
      counted.set(number, { uses: uses + 1, writtenAt })
    }
    yield* writeUses(now, usesEvery)
  })
})

/** Records the revocation in the session that saved the approval, if it still exists. */
const recordRevoked = (
  log: EventLog["Type"],
  { number, permission, resource, revokedBy, sessionID }: SavedApproval
) => {
  if (sessionID === undefined) return Effect.void
  const uid = revokedBy === undefined ? {} : { uid: revokedBy }
  const event = draft("session.next.permission.revoked", { number, permission, resource, ...uid })
  return log.append(sessionID, [event]).pipe(
    // A removed session accepts no events.
    Effect.catchTag("EventRefused", () => Effect.void),
    Effect.catchAll((error) => Effect.logWarning(`approval ${number} was revoked, without an event: ${error.message}`))
  )
}

/** Saves approvals, and returns all that now hold for them. */
const save = Effect.fn("PermissionStore.save")(function* (
  sql: SqlClient.SqlClient,
  folder: string,
  approvals: ReadonlyArray<Approval>,
  { agent, callID, sessionID }: ApprovalSource
) {
  if (approvals.length === 0) return []
  const identity = yield* standing(folder)
  const now = yield* Clock.currentTimeMillis
  const rows = approvals.map(({ definition = "", permission, resource }) => ({
    folder,
    identity,
    permission,
    resource,
    definition,
    session_id: sessionID,
    call_id: callID,
    agent,
    uid: ownUid() ?? null,
    time_created: now
  }))
  // One statement is atomic without an explicit transaction.
  const insert = sql`INSERT INTO approval ${sql.insert(rows)} ON CONFLICT DO NOTHING`
  const all = yield* failed("saving one")(retryBusy(Effect.zipRight(insert, select(sql, folder, identity))))
  return all.filter((saved) =>
    approvals.some(
      ({ definition, permission, resource }) =>
        saved.definition === definition && saved.permission === permission && saved.resource === resource
    )
  )
})

type KeptRow = { readonly session_id: string; readonly seq: number }

/** The last decisions that retention moved out of the log. */
const keptDecisions = (sql: SqlClient.SqlClient, folder: Statement.Fragment, limit: number) =>
  Effect.gen(function* () {
    const rows = yield* sql<KeptRow>`SELECT k.session_id, k.seq FROM kept_decision k
      JOIN session ON session.id = k.session_id JOIN event_sequence s ON s.session_id = k.session_id
      WHERE k.seq <= s.floor AND ${folder} ORDER BY k.position DESC LIMIT ${limit}`
    const bySession = Object.entries(Arr.groupBy(rows, ({ session_id }) => session_id))
    const found = yield* Effect.forEach(bySession, ([id, held]) => {
      const sessionID = SessionID.make(id, { disableValidation: true })
      return selectBySeq(
        sql,
        sessionID,
        Arr.map(held, ({ seq }) => seq)
      )
    })
    return yield* Either.all(found.flatMap((events) => [...events.values()]))
  })

/** Reads the last decisions and revocations, oldest first. */
const decisions = Effect.fn("PermissionStore.decisions")(function* (
  readSql: SqlClient.SqlClient,
  { folder, limit }: Parameters<PermissionStore["Type"]["decisions"]>[0]
) {
  const inFolder = folder === undefined ? readSql.literal("TRUE") : readSql`session.directory = ${folder}`
  const found = yield* failed("reading the decisions")(
    Effect.gen(function* () {
      // Permission events have negative types.
      const rows = yield* selectEvents(
        readSql,
        readSql`JOIN session ON session.id = s.session_id WHERE e.type < 0 AND e.seq > s.floor AND ${inFolder}
          ORDER BY e.position DESC LIMIT ${limit}`
      )
      const events = yield* Effect.all(rows.flatMap((row) => Option.toArray(toEvent(row))))
      return [...events, ...(yield* keptDecisions(readSql, inFolder, limit))]
    }).pipe(retryBusy)
  )
  return found
    .filter(isPermissionEvent)
    .toSorted((a, b) => a.position - b.position)
    .slice(-limit)
})

const make = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const log = yield* EventLog
  const readSql = yield* ReadSql
  const used = yield* makeUsed(sql)

  return PermissionStore.of({
    list: Effect.fn("PermissionStore.list")(function* (folder, permission) {
      const identity = yield* standing(folder)
      return yield* failed("reading them")(retryBusy(select(sql, folder, identity, permission)))
    }),
    listAll: Effect.flatMap(sql`SELECT ${sql.literal(columns)} FROM approval ORDER BY number`, read).pipe(
      retryBusy,
      failed("reading them"),
      Effect.withSpan("PermissionStore.listAll")
    ),
    save: (folder, approvals, source) => save(sql, folder, approvals, source),
    used,
    decisions: (options) => decisions(readSql, options),
    revoke: Effect.fn("PermissionStore.revoke")(function* (numbers) {
      if (numbers.length === 0) return []
      const now = yield* Clock.currentTimeMillis
      return yield* failed("revoking them")(
        sql`UPDATE approval SET time_revoked = ${now}, revoked_uid = ${ownUid() ?? null}
          WHERE ${sql.in("number", numbers)} AND time_revoked IS NULL RETURNING ${sql.literal(columns)}`.pipe(
          Effect.flatMap(read),
          Effect.tap((revoked) =>
            Effect.forEach(revoked, (approval) => recordRevoked(log, approval), { discard: true })
          )
        )
      )
    })
  })
})

/** Stores approvals in the host's database. */
export const layer: Layer.Layer<PermissionStore, never, EventLog | ReadSql | SqlClient.SqlClient> = Layer.scoped(
  PermissionStore,
  make
)
