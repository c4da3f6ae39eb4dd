/**
 * Puts an archive's events back: the same positions, ids and payloads, and the floor that they were removed from. They
 * are written below the present floor, where no reader sees them, until one transaction lowers it. Spec: RT-23, RT-24.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import { Effect, Stream } from "effect"
import * as EventRow from "../log/EventRow.ts"
import { checksumOf, selectIdentity } from "../log/EventRow.ts"
import * as Archive from "./Archive.ts"
import { ArchiveUnusable, type Header, type StoredEvent } from "./Archive.ts"
import { type Claimed, asClaimed, claim, finish, type PruneOptions, sweepMoved, typed } from "./Prune.ts"
import { paced } from "./Pace.ts"
import * as PrunedParts from "./PrunedParts.ts"
import { type Subject, selectSubject } from "./Plan.ts"
import * as SessionBase from "../projection/SessionBase.ts"

type Sql = SqlClient.SqlClient

/** What was put back. */
export interface Restored {
  readonly header: Header
  readonly events: number
}

/** Why the archive does not fit the session; undefined if it does. */
export const misfit = (header: Header, database: string, subject: Subject | undefined): string | undefined => {
  const { incarnation, sessionID, to } = header
  if (header.database !== database || subject === undefined || subject.incarnation !== incarnation) {
    return `${sessionID} was removed, or is of another database; an archive goes back only into the session it came from`
  }
  if (subject.floor < to) return `the events of ${sessionID} up to ${to} are in the log already`
  return subject.floor > to
    ? `${sessionID} was pruned further, up to ${subject.floor}: first restore the archive that ends there`
    : undefined
}

/** Refuses events that were changed, and counts the others. */
const verified = ({ header, events }: Archive.Reading, file: string) =>
  Stream.runFoldEffect(events, 0, (count, page) => {
    const changed = page.find(
      ({ checksum, ...event }) => checksumOf({ ...event, session_id: header.sessionID }) !== checksum
    )
    return changed === undefined
      ? Effect.succeed(count + page.length)
      : Effect.fail(new ArchiveUnusable({ file, details: `event ${changed.seq} was changed` }))
  })

/** Inserts a page as it was: an event that this database numbered stores no id. Names of types are never removed. */
const insert = (sql: Sql, { database, sessionID }: Header, page: ReadonlyArray<StoredEvent>) => {
  const idAt = EventRow.makeEventIds(database)
  return Effect.forEach(
    page,
    ({ checksum, created, data, id, position, seq, type }) =>
      sql`INSERT INTO event (position, session, seq, type, created, checksum, id, data)
        SELECT ${position}, s.session, ${seq}, t.type, ${created}, ${checksum},
          ${id === idAt(created, position) ? null : id}, ${data}
        FROM event_sequence s, event_type t WHERE s.session_id = ${sessionID} AND t.name = ${type}`,
    { discard: true }
  )
}

/** Readers see the events from here on. */
const lower = (sql: Sql, { base, from, sessionID }: Header) => {
  const state = base === null ? null : SessionBase.encode(base)
  return Effect.zipRight(
    sql`UPDATE event_sequence SET floor = ${from} WHERE session_id = ${sessionID}`,
    sql`UPDATE session_floor SET base = ${state}, position = ${base?.position ?? null} WHERE session_id = ${sessionID}`
  )
}

/** Writes the pages of a claimed session, and lowers its floor. */
const putBack = Effect.fnUntraced(function* (
  sql: Sql,
  claimed: Claimed,
  { events, header }: Archive.Reading,
  { pace, progress = () => Effect.void }: PruneOptions
) {
  yield* Stream.runForEach(events, (page) =>
    Effect.zipRight(
      paced(pace)(asClaimed(sql, claimed)(insert(sql, header, page))),
      progress({ copied: page.length, deleted: 0 })
    )
  )
  const { from, sessionID, to } = header
  yield* PrunedParts.putBack(sql, sessionID, { from, through: to }, (step) =>
    paced(pace)(asClaimed(sql, claimed)(step))
  )
  yield* asClaimed(sql, claimed)(lower(sql, header))
})

/**
 * Puts the events of an archive back. The whole archive is verified first. A refusal changes nothing; after a kill the
 * session is as before, and the same restore can be repeated.
 */
export const restore = Effect.fn("Retention.restore")(function* (file: string, options: PruneOptions) {
  const sql = yield* SqlClient.SqlClient
  const archive = yield* Archive.read(file)
  const { header } = archive
  const events = yield* verified(archive, file)
  const subject = yield* selectSubject(sql, header.sessionID)
  const details = misfit(header, yield* selectIdentity(sql), subject)
  if (details !== undefined || subject === undefined)
    return yield* new ArchiveUnusable({ file, details: details ?? "" })
  yield* finish(header.sessionID, options)
  const claimed = yield* claim(sql, subject)
  yield* putBack(sql, claimed, archive, options)
  yield* sweepMoved(sql, claimed, header.from, options)
  return { header, events } satisfies Restored
}, typed)
