/**
 * Verifies the database: file, connection, and each session's log and projections. Reports what is wrong and what to
 * do. Writes nothing: it folds the events into a scratch database and compares the projections with it, one session per
 * snapshot, page by page. Of removed events it verifies what is left. Spec: ST-12..ST-14, RT-16, RT-17.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import * as SqlError from "@effect/sql/SqlError"
import { Array as Arr, Chunk, Effect, Either, Option, Stream } from "effect"
import { SessionID } from "../domain/Identifiers.ts"
import type { SessionEvent } from "../events/SessionEvents.ts"
import type { LogUnavailable } from "../log/EventLog.ts"
import { pageSize, selectCheckedPage, toEvent, unavailable } from "../log/EventRow.ts"
import type { AnyRow } from "../projection/Change.ts"
import type { SessionBase } from "../projection/SessionBase.ts"
import { selectBase } from "../retention/Prune.ts"
import * as PrunedParts from "../retention/PrunedParts.ts"
import { applicationID, type DatabaseError, ReadSql, schemaVersion } from "../storage/Database.ts"
import { isPostgres } from "../storage/Dialect.ts"
import { reasonOf, snapshot } from "../storage/Transaction.ts"
import * as Content from "../store/Content.ts"
import { referencesOf, sumOf } from "../store/ContentBlock.ts"
import * as Fold from "./Fold.ts"
import { created, differing, type Listing, selectRows } from "./Fold.ts"
import { selectSessions } from "./Rebuild.ts"

// Verifies what a pruned session keeps: the state at its floor, and the blocks with every event that a row or a part
// refers to.

/** What was found up to the floor. */
export interface FloorCheck {
  readonly problems: ReadonlyArray<string>
  /** The state at the floor; undefined if there is no floor, or if it cannot be read. */
  readonly base: (SessionBase & { readonly position: number }) | undefined
}

/** The place of an event. */
type Position = { readonly seq: number; readonly position: number }

/** Sequence numbers per query of references. */
const range = 0x1_0000

/** The problems of one block's events: wrong places, payloads, and checksums that differ from the rows'. */
const checkFloorEvents = (
  { first, last, sum }: { readonly first: number; readonly last: number; readonly sum: number },
  rows: ReadonlyArray<Content.KeptRow>,
  previous: Position
): ReadonlyArray<string> => {
  const problems: Array<string> = []
  let before = previous
  for (const row of rows) {
    if (row.seq <= before.seq || row.position <= before.position) {
      problems.push(`the kept event ${row.seq} follows event ${before.seq}, or has a position before it`)
    }
    before = row
    const event = toEvent(row)
    if (Option.isSome(event) && Either.isLeft(event.value)) {
      problems.push(`the kept event ${row.seq} (${row.type}) cannot be read: ${event.value.left.details}`)
    }
  }
  if (sumOf(rows.map(({ checksum }) => checksum)) !== sum) {
    problems.push(`the kept events ${first} to ${last} differ from what was written`)
  }
  if (rows[0]?.seq !== first || before.seq !== last) {
    problems.push(`the block of the kept events ${first} to ${last} begins or ends with another event`)
  }
  return problems
}

/** The marks of a removed event: it is in a block; something refers to it. */
const [held, needed] = [1, 2]

/**
 * Reads every block. Marks the events that blocks hold, or that a damaged block may hold, and those that the blocks' parts
 * refer to: a byte per removed event.
 */
const checkBlocks = Effect.fnUntraced(function* (sql: Sql, sessionID: SessionID, floor: number) {
  const problems: Array<string> = []
  const kept = new Uint8Array(floor + 1)
  const mark = (seq: number, as: number) => void (kept[seq] = (kept[seq] ?? 0) | as)
  const blocks = Content.makeBlocks(sql, sessionID)
  let before: Position = { seq: -1, position: 0 }
  while (problems.length < enough) {
    const block = yield* blocks.next({ from: before.seq, through: floor })
    if (block === undefined) break
    const { content, first, last } = block
    const rows = Either.match(content, { onLeft: () => [], onRight: (opened) => opened.rows() })
    const found = Either.match(content, {
      onLeft: (reason) => [`the kept events ${first} to ${last} cannot be read: ${reason}`],
      onRight: ({ sum }) => checkFloorEvents({ first, last, sum }, rows, before)
    })
    problems.push(...found)
    if (found.length > 0) for (let seq = Math.max(0, first); seq <= last; seq++) mark(seq, held)
    for (const { seq } of rows) mark(seq, held)
    const parts = Either.match(content, { onLeft: () => [], onRight: (opened) => opened.parts() })
    for (const part of parts) for (const seq of referencesOf(part)) mark(seq, needed)
    before = { seq: last, position: Arr.last(rows).pipe(Option.getOrElse(() => before)).position }
  }
  // After enough problems the other blocks are not read.
  if (problems.length >= enough) kept.fill(held, before.seq + 1)
  return { problems, kept, last: before }
})

/** The events that must be in a block: rows made in a range refer to them, or the list of decisions has them. */
const selectNeeded = Effect.fnUntraced(function* (sql: Sql, sessionID: SessionID, range: Content.Range) {
  const referenced = yield* Content.selectReferenced(sql, sessionID, range)
  const parts = yield* PrunedParts.select(sql, sessionID, range)
  const decisions = yield* sql<{ readonly seq: number }>`SELECT seq FROM kept_decision
    WHERE session_id = ${sessionID} AND seq > ${range.from} AND seq <= ${range.through}`
  return [...referenced, ...parts.flatMap(referencesOf), ...decisions.map(({ seq }) => seq)]
})

const checkReferences = Effect.fnUntraced(function* (sql: Sql, sessionID: SessionID, kept: Uint8Array) {
  const problems: Array<string> = []
  const floor = kept.length - 1
  for (let from = -1; from < floor; from += range) {
    const referred = yield* selectNeeded(sql, sessionID, { from, through: Math.min(floor, from + range) })
    for (const seq of referred) kept[seq] = (kept[seq] ?? 0) | needed
  }
  for (let seq = 0; seq <= floor && problems.length < enough; seq++) {
    if (kept[seq] === needed) problems.push(`the removed event ${seq}, to which its rows refer, is in no block`)
  }
  return problems
})

/** Compares the state at the floor with the blocks: the events at the floor and of the epoch are always kept. */
const checkBase = ({ position, row }: NonNullable<FloorCheck["base"]>, kept: Uint8Array, last: Position) => {
  const floor = kept.length - 1
  const problems: Array<string> = []
  const isHeld = (seq: number) => ((kept[seq] ?? 0) & held) !== 0
  if (!isHeld(floor)) problems.push(`the event ${floor} at its floor is in no block`)
  else if (last.position !== position) {
    problems.push(`its floor is at position ${position}, the event there at ${last.position}`)
  }
  if (row.epoch !== null && !isHeld(row.epoch)) problems.push(`the event ${row.epoch} of its epoch is in no block`)
  return problems
}

const checkBelow = Effect.fnUntraced(function* (
  sql: Sql,
  sessionID: SessionID,
  floor: number
): Effect.fn.Return<FloorCheck, SqlError.SqlError> {
  if (floor < 0) return { problems: [], base: undefined }
  const unreadable: Array<string> = []
  const base = yield* Effect.catchTag(selectBase(sql, sessionID, floor), "EventUnreadable", ({ details }) =>
    Effect.sync(() => void unreadable.push(details))
  )
  const { kept, last, problems } = yield* checkBlocks(sql, sessionID, floor)
  const references = yield* checkReferences(sql, sessionID, kept)
  // A damaged block may hold what the state refers to.
  const ofBase = base === undefined || problems.length > 0 ? [] : checkBase(base, kept, last)
  return { problems: [...unreadable, ...problems, ...ofBase, ...references], base }
})

export interface Finding {
  /** `error`: something is lost or wrong. `warning`: nothing is lost, but the build or a setting does not fit. */
  readonly severity: "error" | "warning"
  /** Absent for findings about the database as a whole. */
  readonly sessionID?: string
  readonly what: string
  readonly fix: string
}

type Sql = SqlClient.SqlClient
type Head = { readonly session: number; readonly session_id: string; readonly seq: number; readonly floor: number }

const restore = "stop writing to the database and restore it from a copy; `daybook events` still reads what is whole"
const rebuildIt = "nothing is lost: `daybook doctor --rebuild SESSION` rebuilds this session's rows from its events"

const putBack =
  "restore the session's archives, the newest first: `daybook prune --restore FILE`; without archives, restore the " +
  "database from a copy"

const error = (what: string, fix: string, sessionID?: string): Finding => ({
  severity: "error",
  ...(sessionID === undefined ? {} : { sessionID }),
  what,
  fix
})

const warning = (what: string, fix: string, sessionID?: string): Finding => ({
  ...error(what, fix, sessionID),
  severity: "warning"
})

const pragma = (sql: Sql, name: string) =>
  Effect.map(sql.unsafe(`PRAGMA ${name}`).values, (rows) => rows.map((row) => row.map(String).join(" ")))

/** The required settings of the writing connection. */
const settings = [
  ["journal_mode", "wal"],
  ["synchronous", "2"],
  ["foreign_keys", "1"],
  ["auto_vacuum", "2"],
  ["application_id", String(applicationID)]
] as const

const checkSettings = Effect.fnUntraced(function* (sql: Sql) {
  const findings: Array<Finding> = []
  for (const [name, expected] of settings) {
    const [found = "nothing"] = yield* pragma(sql, name)
    if (found === expected || (name === "journal_mode" && found === "memory")) continue
    const fix = name === "auto_vacuum" ? "run VACUUM after setting it" : "open the database with Daybook only"
    findings.push(warning(`${name} is ${found}, not ${expected}`, fix))
  }
  const rows = yield* sql<{ readonly latest: number | null }>`SELECT max(migration_id) AS latest FROM migration`
  const latest = rows[0]?.latest ?? 0
  if (latest !== schemaVersion) {
    const what = `the schema is version ${latest}, this build knows ${schemaVersion}`
    findings.push(error(what, latest > schemaVersion ? "use a newer Daybook" : "open the database once for writing"))
  }
  return findings
})

/** Maximum number of findings per kind; a corrupt file can have millions. */
const enough = 20

const checkFile = Effect.fnUntraced(function* (sql: Sql) {
  const integrity = yield* pragma(sql, `integrity_check(${enough})`)
  const broken = integrity.filter((line) => line !== "ok").map((line) => error(`the file is damaged: ${line}`, restore))
  const orphans = yield* sql<{ readonly table: string; readonly rowid: number | null; readonly parent: string }>`
    SELECT "table", rowid, parent FROM pragma_foreign_key_check LIMIT ${enough}`
  return [
    ...broken,
    ...orphans.map(({ parent, rowid, table }) =>
      error(`row ${rowid ?? "?"} of ${table} belongs to no row of ${parent}`, "restore the database from a copy")
    )
  ]
})

/** Checks the last numbers that PostgreSQL's log gave: it must not give a number again that is in use. */
const checkNumbers = (sql: Sql) =>
  Effect.map(
    sql<{ readonly position: number; readonly session: number; readonly event: number; readonly head: number }>`
      SELECT position, session, coalesce((SELECT max(position) FROM event), 0) AS event,
        coalesce((SELECT max(session) FROM event_sequence), 0) AS head FROM log_head`,
    (rows) => {
      const [last] = rows
      const found = (what: string) => error(what, restore)
      if (last === undefined) return [found("the row of the last position is missing")]
      return [
        ...(last.event > last.position
          ? [found(`the last position is ${last.position}, an event has ${last.event}`)]
          : []),
        ...(last.head > last.session ? [found(`the last session is ${last.session}, a head has ${last.head}`)] : [])
      ]
    }
  )

/** The tables of PostgreSQL without a foreign key to their session. Each has an index that begins with it. */
const unreferenced = ["event", "session_input", "session_message", "session_part"]

/** Rows without a session. Each table's index is read once for each of its sessions, not for each row. */
const checkOrphans = Effect.fnUntraced(function* (sql: Sql) {
  const findings: Array<Finding> = []
  for (const table of unreferenced) {
    const rows = yield* sql.unsafe<{ readonly session: number }>(`WITH RECURSIVE found AS (
        SELECT min(session) AS session FROM ${table}
        UNION ALL SELECT (SELECT min(session) FROM ${table} t WHERE t.session > f.session) FROM found f
          WHERE f.session IS NOT NULL)
      SELECT session FROM found f WHERE session IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM event_sequence h WHERE h.session = f.session) LIMIT ${enough}`)
    for (const { session } of rows) {
      findings.push(error(`rows of ${table} belong to session number ${session}, which does not exist`, restore))
    }
  }
  return findings
})

const missing = (first: number, last: number): string =>
  first === last ? `event ${first} is missing` : `the events from ${first} to ${last} are missing`

/** The state that the fold starts from. */
type Base = SessionBase & { readonly position: number }

/**
 * Reads the events above the floor, folds them into the scratch database, and reports wrong sequence numbers, positions
 * and contents. Without the state at its floor, a pruned session does not fold.
 */
const checkEvents = Effect.fnUntraced(function* (
  sql: Sql,
  fold: Fold.Fold,
  { floor, seq, session, session_id }: Head,
  base: Base | undefined
) {
  const sessionID = SessionID.make(session_id, { disableValidation: true })
  const findings: Array<Finding> = []
  const found = (what: string, fix: string) => findings.push(error(what, fix, session_id))
  yield* fold.begin(base?.row)
  let [cursor, position, unknown, folded] = [floor, base?.position ?? 0, 0, floor < 0 || base !== undefined]
  for (;;) {
    const rows = yield* selectCheckedPage(sql, session_id, cursor)
    const events: Array<SessionEvent> = []
    for (const row of rows) {
      const at = Number(row["seq"])
      if (at !== cursor + 1) found(missing(cursor + 1, at - 1), restore)
      if (Number(row["position"]) <= position) found(`event ${at} has a position before that of ${cursor}`, restore)
      ;[cursor, position] = [at, Number(row["position"])]
      const event = toEvent(row)
      if (Option.isNone(event)) unknown += 1
      else if (Either.isRight(event.value)) events.push(event.value.right)
      else found(`event ${at} (${event.value.left.type}) cannot be read: ${event.value.left.details}`, restore)
    }
    // Projections are compared only if every event folds.
    folded &&= findings.length === 0
    if (folded) {
      yield* Effect.catchTag(fold.add({ session, sessionID }, events), "EventRefused", (refusal) =>
        Effect.sync(() => {
          folded = false
          found(`its events contradict each other: ${refusal.message}`, restore)
        })
      )
    }
    if (rows.length === 0 || findings.length > enough) break
  }
  if (findings.length === 0 && cursor !== seq) found(`its head is ${seq}, its last event is ${cursor}`, restore)
  if (unknown > 0) {
    const what = `${unknown} of its events are of types that this build does not know; they are skipped`
    findings.push(warning(what, "use a newer Daybook to see them", session_id))
  }
  return { findings, folded }
})

const listings: ReadonlyArray<Listing> = [
  { table: "session_input", where: "promoted_seq IS NOT NULL", order: ["promoted_seq"] },
  { table: "session_input", where: "promoted_seq IS NULL", order: ["admitted_seq"] },
  ...Fold.otherListings
]

/** Whose rows, and above which floor. */
type Above = Pick<Head, "session" | "floor">

const difference = (
  { order, table }: Listing,
  stored: AnyRow | undefined,
  folded: AnyRow | undefined
): string | undefined => {
  const made = created[table]
  if (stored === undefined) return `${table} has no row for event ${folded?.[made] ?? "?"}`
  if (folded === undefined) return `${table} has a row for event ${stored[made] ?? "?"} that no event makes`
  if (order.some((column) => stored[column] !== folded[column])) {
    return `${table} has a row for event ${stored[made]} where that of event ${folded[made]} belongs`
  }
  const columns = differing(table, stored, folded)
  return columns.length === 0 ? undefined : `${table} differs from event ${stored[made]}: ${columns.join(", ")}`
}

/** The first difference between stored rows and folded rows. */
const compareRows = Effect.fnUntraced(function* (
  sql: Sql,
  fold: Fold.Fold,
  listing: Listing,
  { floor, session }: Above
): Effect.fn.Return<Option.Option<string>, SqlError.SqlError> {
  let after: AnyRow | undefined
  for (;;) {
    const page = { listing, floor, session, after, limit: pageSize }
    const [stored, folded] = [yield* selectRows(sql, page), yield* fold.rows(page)]
    for (let index = 0; index < Math.max(stored.length, folded.length); index++) {
      const found = difference(listing, stored[index], folded[index])
      if (found !== undefined) return Option.some(found)
    }
    if (stored.length < pageSize) return Option.none()
    after = stored.at(-1)
  }
})

const compareSession = Effect.fnUntraced(function* (sql: Sql, fold: Fold.Fold, sessionID: string) {
  const [stored, folded] = [yield* Fold.selectSession(sql, sessionID), yield* fold.session(sessionID)]
  if (stored === undefined || folded === undefined) {
    return stored === folded
      ? Option.none()
      : Option.some("its row in session is missing, or exists without a creation event")
  }
  const columns = differing("session", stored, folded)
  return columns.length === 0 ? Option.none() : Option.some(`session differs from its events: ${columns.join(", ")}`)
})

const checkProjections = Effect.fnUntraced(function* (sql: Sql, fold: Fold.Fold, head: Head) {
  const differences = [
    yield* compareSession(sql, fold, head.session_id),
    ...(yield* Effect.forEach(listings, (listing) => compareRows(sql, fold, listing, head)))
  ]
  return Arr.getSomes(differences).map((what) => error(what, rebuildIt, head.session_id))
})

/** A promoted prompt must be the message of its promotion; a withdrawn prompt must not be a message. */
const checkPromoted = Effect.fnUntraced(function* (sql: Sql, { floor, session, session_id }: Head) {
  const rows = yield* sql<{ readonly id: string; readonly admitted_seq: number }>`
    SELECT i.id, i.admitted_seq FROM session_input i LEFT JOIN session_message m ON m.id = i.id
    WHERE i.session = ${session}
      AND CASE WHEN i.withdrawn_seq IS NULL THEN i.promoted_seq END IS DISTINCT FROM m.seq LIMIT ${enough}`
  return rows.map(({ admitted_seq, id }) => {
    const fix = admitted_seq > floor ? rebuildIt : putBack
    return error(`the promotion of ${id} does not match its message`, fix, session_id)
  })
})

/** Turns a read of a damaged page into a finding, so that verification continues. */
const broken = (sessionID?: string) => (failure: SqlError.SqlError) =>
  reasonOf(failure) === "corrupt"
    ? Effect.succeed([error("the file is damaged: a page of it cannot be read", restore, sessionID)])
    : Effect.fail(unavailable("verify")(failure))

/** Checks one session in one snapshot, so that a concurrent commit is not a finding. */
const checkSession = Effect.fnUntraced(
  function* (sql: Sql, fold: Fold.Fold, sessionID: string) {
    const [head] =
      yield* sql<Head>`SELECT session, session_id, seq, floor FROM event_sequence WHERE session_id = ${sessionID}`
    if (head === undefined) return []
    const removed = Math.min(head.floor, head.seq)
    const below = yield* checkBelow(sql, SessionID.make(sessionID, { disableValidation: true }), removed)
    const { findings, folded } = yield* checkEvents(sql, fold, head, below.base)
    const projections = folded ? yield* checkProjections(sql, fold, head) : []
    const promoted = projections.length === 0 ? yield* checkPromoted(sql, head) : []
    return [...below.problems.map((what) => error(what, putBack, sessionID)), ...findings, ...projections, ...promoted]
  },
  (effect, sql) => snapshot(sql)(effect)
)

/**
 * Every problem of the database, one finding at a time; an empty stream means that the database is sound. Memory is
 * bounded, whatever the size of the file; appends continue meanwhile.
 */
export const verify: Stream.Stream<Finding, LogUnavailable | DatabaseError, Sql | ReadSql> = Stream.unwrapScoped(
  Effect.gen(function* () {
    const [sql, read] = [yield* SqlClient.SqlClient, yield* ReadSql]
    const fold = yield* Effect.mapError(Fold.make(read), (error) =>
      error instanceof SqlError.SqlError ? unavailable("verify")(error) : error
    )
    const checks = isPostgres(read) ? [checkNumbers(read), checkOrphans(read)] : [checkSettings(sql), checkFile(read)]
    const whole = Stream.fromIterable(checks).pipe(
      Stream.flatMap((check) => Stream.fromIterableEffect(Effect.catchAll(check, broken())))
    )
    const ids = Stream.paginateChunkEffect("", (after) =>
      Effect.map(Effect.mapError(selectSessions(read, after, pageSize), unavailable("verify")), (rows) => [
        Chunk.fromIterable(rows.map(({ session_id }) => session_id)),
        Option.map(Arr.last(rows), ({ session_id }) => session_id)
      ])
    )
    const sessions = Stream.flatMap(ids, (id) =>
      Stream.fromIterableEffect(Effect.catchAll(checkSession(read, fold, id), broken(id)))
    )
    return Stream.concat(whole, sessions)
  })
)
