/** The statements of an append on heads, numbers and events. Spec: PG-3, PG-5 in specs/postgres.md. */
import type { NewEvent } from "@daybook/log/log/EventRow"
import { Schema, Struct } from "effect"
import type { Answer, Line, Sent } from "./Connections.ts"

/** The last numbers given to an event and to a session. */
const Numbers = Schema.Struct({ position: Schema.Int, session: Schema.Int })
export type Numbers = typeof Numbers.Type

/** The codes by which a statement of an append fails its transaction: rows break a rule, or numbers are not as supposed. */
export const broken = "23514"
const stale = "40001"

/** Locks the log's head: every other append waits until this transaction ends. */
export const lock: Sent = { text: "SELECT position, session FROM log_head WHERE one = $1 FOR UPDATE", values: [1] }

const decodeNumbers = Schema.decodeUnknownSync(Numbers)

/** The numbers of the locked head. */
export const numbersOf = (answer: Answer | undefined): Numbers => decodeNumbers(answer?.rows[0])

const HeadRow = Schema.Struct({
  session: Schema.Int,
  session_id: Schema.String,
  seq: Schema.Int,
  incarnation: Schema.NullOr(Schema.Int),
  owner_id: Schema.NullOr(Schema.String),
  owner_epoch: Schema.Int
})
export type HeadRow = typeof HeadRow.Type

const headColumns = Struct.keys(HeadRow.fields)

/**
 * Selects and locks heads, in the order in which every transaction locks several of them. A claim waits for the append,
 * or the append sees the claim.
 */
export const selectHeads = (sessionIDs: ReadonlyArray<string>): Sent => ({
  text: `SELECT ${headColumns.join(", ")} FROM event_sequence
    WHERE session_id = ANY($1::text[]) ORDER BY session_id FOR UPDATE`,
  values: [sessionIDs]
})

/** The heads of the answer by the ids of their sessions. The statement names the columns, so their types are known. */
export const headsOf = (answer: Answer | undefined): ReadonlyMap<string, HeadRow> =>
  new Map(((answer?.rows ?? []) as ReadonlyArray<HeadRow>).map((row) => [row.session_id, row]))

export interface Types {
  /** Whether all these events' types have committed numbers. */
  readonly know: (rows: ReadonlyArray<NewEvent>) => boolean
  /** Finds the numbers of these events' types. New names are added in the current transaction, which has the lock. */
  readonly learn: (line: Line, rows: ReadonlyArray<NewEvent>) => Promise<void>
  readonly of: (name: string) => number
  /** Begins a transaction: the one before was undone, or `keep` was called. */
  readonly begin: () => void
  /** The transaction was committed: what it added stays. */
  readonly keep: () => void
  /** A part of the transaction was undone. */
  readonly forget: () => void
}

const TypeRow = Schema.Struct({ type: Schema.Int, name: Schema.String })
const decodeTypes = Schema.decodeUnknownSync(Schema.Array(TypeRow))

/** Permission events are read over all sessions: a partial index holds the rows with a negative type. */
const isIndexed = (name: string): boolean => name.startsWith("session.next.permission.")

export const makeTypes = (): Types => {
  const committed = new Map<string, number>()
  let added = new Map<string, number>()
  /** The transaction has added a name: what it reads from then on is perhaps not committed. */
  let adds = false

  const add = async (line: Line, names: ReadonlyArray<string>): Promise<void> => {
    const [found] = await line.send([{ text: "SELECT type, name FROM event_type" }])
    const known = decodeTypes(found?.rows)
    for (const { name, type } of known) (adds ? added : committed).set(name, type)
    const all = known.map(({ type }) => type)
    let [usual, indexed] = [Math.max(0, ...all), Math.min(0, ...all)]
    const missing = names.filter((name) => !known.some((row) => row.name === name))
    const numbers = missing.map((name) => (isIndexed(name) ? (indexed -= 1) : (usual += 1)))
    if (missing.length === 0) return
    adds = true
    await line.send([
      {
        text: "INSERT INTO event_type (type, name) SELECT * FROM unnest($1::bigint[], $2::text[])",
        values: [numbers, missing]
      }
    ])
    missing.forEach((name, index) => added.set(name, numbers[index] ?? 0))
  }

  const find = (name: string) => committed.get(name) ?? added.get(name)

  return {
    know: (rows) => rows.every(({ type }) => committed.has(type)),
    learn: async (line, rows) => {
      const names = [...new Set(rows.map(({ type }) => type))].filter((name) => find(name) === undefined)
      if (names.length > 0) await add(line, names)
    },
    of: (name) => {
      const type = find(name)
      if (type === undefined) throw new Error(`the name ${name} has no number`)
      return type
    },
    begin: () => {
      added = new Map()
      adds = false
    },
    keep: () => {
      for (const [name, type] of added) committed.set(name, type)
    },
    forget: () => {
      added = new Map()
    }
  }
}

/** What a batch of events writes beside its projections. */
export interface Batch {
  readonly before: Numbers
  readonly numbers: Numbers
  readonly heads: ReadonlyArray<HeadRow>
  readonly rows: ReadonlyArray<NewEvent>
}

const insertText = `WITH numbers AS (UPDATE log_head SET position = $1, session = $2
      WHERE one = 1 AND position = $3 AND session = $4 RETURNING 1),
    events AS (INSERT INTO event (position, session, seq, type, created, checksum, id, data)
      SELECT * FROM unnest($5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[],
        $11::text[], $12::json[]) WHERE EXISTS (SELECT FROM numbers)),
    heads AS `

const insertValues = (types: Types, { before, numbers, rows }: Batch): ReadonlyArray<unknown> => [
  numbers.position,
  numbers.session,
  before.position,
  before.session,
  rows.map(({ position }) => position),
  rows.map(({ session }) => session),
  rows.map(({ seq }) => seq),
  rows.map(({ type }) => types.of(type)),
  rows.map(({ created }) => created),
  rows.map(({ checksum }) => checksum),
  rows.map(({ id }) => id),
  rows.map(({ data }) => data)
]

const upsertText = `${insertText} (INSERT INTO event_sequence (session, session_id, seq, incarnation)
      SELECT * FROM unnest($13::bigint[], $14::text[], $15::bigint[], $16::bigint[]) WHERE EXISTS (SELECT FROM numbers)
      ON CONFLICT (session_id) DO UPDATE SET seq = excluded.seq, incarnation = excluded.incarnation)
  SELECT refuse('${stale}', 'log_head', 'other numbers') WHERE NOT EXISTS (SELECT FROM numbers)`

/** Inserts events, and moves the locked heads of their sessions and of the log; fails if the log's head is not `before`. */
export const insert = (types: Types, batch: Batch): Sent => ({
  text: upsertText,
  values: [
    ...insertValues(types, batch),
    batch.heads.map(({ session }) => session),
    batch.heads.map(({ session_id }) => session_id),
    batch.heads.map(({ seq }) => seq),
    batch.heads.map(({ incarnation }) => incarnation)
  ]
})

/**
 * A commit's number among those of its writer, which are even, and the one that its writer had before. A commit that finds
 * another one fails.
 */
export interface Mark {
  readonly writer: string
  readonly before: number
  readonly number: number
}

const markText = (writer: string, number: string, before: string): string => `INSERT INTO log_writer (writer, number)
      VALUES (${writer}, ${number}::bigint) ON CONFLICT (writer) DO UPDATE SET number = excluded.number, time_updated = now()
      WHERE log_writer.number = ${before}::bigint RETURNING 1`

const moveText = `${insertText} (UPDATE event_sequence h SET seq = v.seq, incarnation = v.incarnation
      FROM unnest($13::text[], $14::bigint[], $15::bigint[], $16::bigint[], $17::bigint[], $18::text[], $19::bigint[])
        AS v (session_id, seq, incarnation, old_seq, old_incarnation, owner_id, owner_epoch)
      WHERE EXISTS (SELECT FROM numbers) AND h.session_id = v.session_id AND h.seq = v.old_seq
        AND h.incarnation IS NOT DISTINCT FROM v.old_incarnation AND h.owner_id IS NOT DISTINCT FROM v.owner_id
        AND h.owner_epoch = v.owner_epoch RETURNING 1),
    marked AS (${markText("$20", "$21", "$22")})
  SELECT CASE WHEN (SELECT count(*) FROM heads) = $23::bigint AND EXISTS (SELECT FROM marked)
    THEN pg_notify($24, $25)::text ELSE refuse('${stale}', 'event_sequence', 'other heads')::text END`

/**
 * Inserts as `insert` does, at heads that nothing has locked, marks the commit and sends its notice; fails if a head is not as
 * in `old`. It locks the log's head first, then those of sessions in the order in which every transaction locks several.
 */
export const insertAt = (
  types: Types,
  old: ReadonlyMap<string, HeadRow>,
  batch: Batch,
  mark: Mark,
  notice: Sent
): Sent => {
  const moved = batch.heads
    .flatMap((head) => {
      const before = old.get(head.session_id)
      return before === undefined ? [] : [{ before, head, bytes: Buffer.from(head.session_id) }]
    })
    .toSorted((one, other) => Buffer.compare(one.bytes, other.bytes))
  return {
    text: moveText,
    values: [
      ...insertValues(types, batch),
      moved.map(({ head }) => head.session_id),
      moved.map(({ head }) => head.seq),
      moved.map(({ head }) => head.incarnation),
      moved.map(({ before }) => before.seq),
      moved.map(({ before }) => before.incarnation),
      moved.map(({ before }) => before.owner_id),
      moved.map(({ before }) => before.owner_epoch),
      mark.writer,
      mark.number,
      mark.before,
      batch.heads.length,
      ...(notice.values ?? [])
    ]
  }
}

/** Records the number of a writer's commit, in its transaction. */
export const mark = ({ before, number, writer }: Mark): Sent => ({
  text: `WITH marked AS (${markText("$1", "$2", "$3")})
    SELECT refuse('${stale}', 'log_writer', 'another number') WHERE NOT EXISTS (SELECT FROM marked)`,
  values: [writer, number, before]
})

/**
 * Makes the number of a writer's last commit odd, and returns it. The statement waits for a transaction of the writer that has
 * recorded its number and not ended; one that records its number later fails.
 */
export const settle = (writer: string): Sent => ({
  text: `INSERT INTO log_writer (writer, number) VALUES ($1, 1)
    ON CONFLICT (writer) DO UPDATE SET number = log_writer.number | 1 RETURNING number`,
  values: [writer]
})

const decodeNumber = Schema.decodeUnknownSync(Schema.Struct({ number: Schema.Int }))

/** The number in the answer of `settle`. */
export const numberOf = (answer: Answer | undefined): number => decodeNumber(answer?.rows[0]).number
