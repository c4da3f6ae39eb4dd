/**
 * Caches the decoded messages that the model sees, per session, between turns. The first turn reads the projected rows
 * from the last compaction on. Later turns fold only new events, with the fold that also writes the rows. So a turn's
 * cost follows what is new and what is shown, not what is stored. The cache is LRU, bounded in sessions and in size.
 * Spec: EX-R9, EX-R16 (EP-10).
 */
import { Effect, Either } from "effect"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import { edited, type Message } from "@daybook/log/domain/Message"
import type { SessionEvent } from "@daybook/log/events/SessionEvents"
import {
  type CursorAhead,
  type CursorExpired,
  EventLog,
  type EventUnreadable,
  type ReadError
} from "@daybook/log/log/EventLog"
import * as MemoryTables from "@daybook/log/projection/MemoryTables"
import { project } from "@daybook/log/projection/Projection"
import type { InputRow, MessageRow, PartRow } from "@daybook/log/projection/Tables"
import { assembleOne, eventsOf, partOwner } from "@daybook/log/store/Assemble"
import type { EventsBySeq } from "@daybook/log/store/Content"
import { SessionStore } from "@daybook/log/store/SessionStore"
import type { StoreError } from "@daybook/log/store/StoreError"
import { spanned } from "@daybook/log/support/Spans"

/** Cache limits; the session in use is never evicted. */
export interface Bounds {
  readonly sessions: number
  /** Characters in the cached events. The assembled messages share these strings or hold one more copy. */
  readonly chars: number
}

const defaultBounds: Bounds = { sessions: 64, chars: 64 * 1024 * 1024 }

/** An assembled message and the rows it was built from. The events that they refer to never change. */
type Assembled = {
  readonly row: MessageRow
  readonly parts: ReadonlyArray<PartRow>
  readonly input: InputRow | undefined
  readonly message: Message
}

type Kept = {
  /** By message id. A message is reused as long as its rows are the same objects. */
  readonly assembled: Map<string, Assembled>
  readonly tables: MemoryTables.MemoryTables
  /** The events that the rows refer to. */
  readonly events: EventsBySeq
  readonly baselineSeq: number
  readonly cursor: number
  readonly incarnation: number
  /** Characters in the events. */
  readonly chars: number
}

export interface History {
  /**
   * Returns the messages to show, in order. `baselineSeq` separates the System messages that the baseline already
   * contains.
   */
  readonly load: (
    sessionID: SessionID,
    baselineSeq: number
  ) => Effect.Effect<ReadonlyArray<Message>, ReadError | StoreError>
}

/** While a session is owned and running, its log neither shrinks nor expires: this is a broken invariant. */
const moved = (error: CursorAhead | CursorExpired) => Effect.die(error)

export const loadOwned = (history: History, sessionID: SessionID, baselineSeq: number) =>
  Effect.catchTags(history.load(sessionID, baselineSeq), { CursorAhead: moved, CursorExpired: moved })

/** A completed compaction, or a move of the leaf, changes which messages are shown: cached rows are stale. */
const startsAnew = ({ type }: SessionEvent): boolean =>
  type === "session.next.compaction.ended" || type === "session.next.leaf.moved"

const charsIn = (value: unknown): number => {
  if (typeof value === "string") return value.length
  if (typeof value !== "object" || value === null) return 0
  return Object.values(value).reduce<number>((total, each) => total + charsIn(each), 0)
}

/** Counted once per event. */
const counted = new WeakMap<object, number>()

const charsOf = (event: Either.Either<SessionEvent, unknown>): number => {
  const known = counted.get(event)
  if (known !== undefined) return known
  const chars = Either.isRight(event) ? charsIn(event.right.data) : 0
  counted.set(event, chars)
  return chars
}

/** The events that the rows refer to, and their size. A call's earlier progress, for example, is dropped. */
const inUse = (tables: MemoryTables.MemoryTables, all: EventsBySeq): Pick<Kept, "events" | "chars"> => {
  const events = new Map<number, Either.Either<SessionEvent, EventUnreadable>>()
  let chars = 0
  for (const seq of eventsOf(rowsOf(tables))) {
    const event = all.get(seq)
    if (event === undefined) continue
    events.set(seq, event)
    chars += charsOf(event)
  }
  return { events, chars }
}

const rowsOf = (tables: MemoryTables.MemoryTables) => ({
  messages: tables.rows("session_message"),
  parts: tables.rows("session_part"),
  inputs: tables.rows("session_input")
})

/** Assembles the messages of the tables. A message with unchanged rows keeps its object identity. */
const assembleKept = (sessionID: SessionID, { assembled, events, tables }: Kept) => {
  const parts = new Map<string, Array<PartRow>>()
  for (const part of tables.rows("session_part")) {
    const own = parts.get(part.message_id)
    if (own === undefined) parts.set(part.message_id, [part])
    else own.push(part)
  }
  const inputs = new Map(tables.rows("session_input").map((input) => [input.id, input]))
  const messages: Array<Message> = []
  for (const row of tables.rows("session_message")) {
    const own = parts.get(partOwner(row)) ?? []
    const input = inputs.get(row.id)
    const before = assembled.get(row.id)
    if (
      before?.row === row &&
      before.input === input &&
      before.parts.length === own.length &&
      before.parts.every((part, index) => part === own[index])
    ) {
      messages.push(before.message)
      continue
    }
    const made = assembleOne(sessionID, row, own, input, events)
    if (Either.isLeft(made)) return Either.left(made.left)
    assembled.set(row.id, { row, parts: own, input, message: made.right })
    messages.push(made.right)
  }
  return Either.right(messages)
}

/** Builds a history with the given cache limits. */
export const makeBounded = Effect.fnUntraced(function* (bounds: Bounds) {
  const log = yield* EventLog
  const store = yield* SessionStore
  const kept = new Map<string, Kept>()

  /** Evicts the least recently used sessions until the cache is within its limits. */
  const shrink = () => {
    let chars = 0
    for (const one of kept.values()) chars += one.chars
    for (const [oldest, one] of kept) {
      if (kept.size <= 1 || (kept.size <= bounds.sessions && chars <= bounds.chars)) return
      kept.delete(oldest)
      chars -= one.chars
    }
  }

  const fromRows = Effect.fnUntraced(function* (sessionID: SessionID, baselineSeq: number) {
    const rows = yield* store.contextRows(sessionID, baselineSeq)
    const tables = MemoryTables.make()
    for (const row of rows.inputs) tables.load("session_input", row)
    for (const row of rows.messages) tables.load("session_message", row)
    for (const row of rows.parts) tables.load("session_part", row)
    const { cursor, events, incarnation } = rows
    return { assembled: new Map(), tables, events, baselineSeq, cursor, incarnation }
  })

  /** Folds new events into the cached rows. Returns undefined when the rows must be read again. */
  const foldOn = Effect.fnUntraced(
    function* (sessionID: SessionID, from: Kept): Effect.fn.Return<Kept | undefined, ReadError> {
      const events = new Map(from.events)
      let { cursor } = from
      for (;;) {
        // A session that was removed and created again under the same id is another incarnation.
        const page = yield* log.read({ sessionID, after: cursor, incarnation: from.incarnation })
        for (const event of page.events) {
          if (startsAnew(event)) return undefined
          const changes = project(event).filter(({ table }) => table !== "session" && table !== "session_label")
          if (Either.isLeft(from.tables.apply(changes))) return undefined
          events.set(event.seq, Either.right(event))
        }
        cursor = page.cursor
        if (!page.hasMore) return { ...from, events, cursor }
      }
    },
    (effect, sessionID) =>
      Effect.catchTags(effect, {
        CursorExpired: () => Effect.succeed(undefined),
        SessionNotFound: () => Effect.as(log.head(sessionID), undefined)
      })
  )

  return {
    load: spanned(
      "History.load",
      Effect.fnUntraced(function* (sessionID: SessionID, baselineSeq: number) {
        const before = kept.get(sessionID)
        kept.delete(sessionID)
        const folded = before?.baselineSeq === baselineSeq ? yield* foldOn(sessionID, before) : undefined
        const read = folded ?? (yield* fromRows(sessionID, baselineSeq))
        const now: Kept = { ...read, ...inUse(read.tables, read.events) }
        kept.set(sessionID, now)
        shrink()
        return edited(yield* assembleKept(sessionID, now))
      })
    )
  }
})

/** Builds a history with the default cache limits. */
export const make = makeBounded(defaultBounds)
