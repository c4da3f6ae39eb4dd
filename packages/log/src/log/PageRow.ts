/**
 * Verifies and decodes the rows of a page. A replay decodes hundreds of thousands of rows a second, so a row is an array
 * of few columns and becomes an event without an object between. Pages: `Page.ts`; whole rows for other readers:
 * `EventRow.ts`. Spec: LG-25, LG-28.
 */
import type { EventID, SessionID } from "../domain/Identifiers.ts"
import * as Registry from "../events/Registry.ts"
import type { SessionEvent } from "../events/SessionEvents.ts"
import { kindHash, rowHash } from "./Checksum.ts"
import * as EventIds from "./EventIds.ts"
import { EventUnreadable } from "./EventLog.ts"
import { decodePayload, detailsOf, isEventID, isKnownSession, longPayload } from "./EventRow.ts"
import { countSound } from "./JoinedChecksum.ts"

/**
 * A row's columns: place, kind, time, checksum, payload; in the feed also session and sequence number. The kind is the
 * number of the type.
 */
export type PageRow = ReadonlyArray<unknown>

/** The place: the position, followed by the id if the row stores one. */
export const placeColumn = "iif(e.id IS NULL, e.position, e.position || ' ' || e.id)"

/** The columns from the time to the payload. A long payload is null, unless the limit is one row. */
export const lastColumns = (limit: number): string =>
  "e.created, e.checksum, " +
  (limit === 1 ? "e.data" : `CASE WHEN octet_length(e.data) <= ${longPayload} THEN e.data END`)

/** Splits the text of a place or a kind into its number and what follows. */
export const split = (text: string): readonly [number: number, rest: string] => {
  const space = text.indexOf(" ")
  return [Number(text.slice(0, space)), text.slice(space + 1)]
}

/** How the rows of one session and type are read. */
interface Kind {
  /** The stored name; undefined if the number has none. */
  readonly stored: string | undefined
  /** Undefined for a name that this build does not know. */
  readonly codec: Registry.Codec | undefined
  readonly hash: number
}

/** Finds kinds by session and number, for types with the names. */
const makeKinds = (names: Readonly<Record<string, string>>) => {
  const sessions = new Map<unknown, Map<unknown, Kind>>()
  let current: unknown
  let kinds = new Map<unknown, Kind>()
  return (session: unknown, type: unknown): Kind => {
    if (session !== current) {
      current = session
      kinds = sessions.get(session) ?? new Map<unknown, Kind>()
      sessions.set(session, kinds)
    }
    const known = kinds.get(type)
    if (known !== undefined) return known
    const stored = names[String(type)]
    const codec = stored === undefined ? undefined : Registry.codecOf(stored)
    const kind: Kind = { stored, codec, hash: kindHash(String(session), stored ?? "") }
    kinds.set(type, kind)
    return kind
  }
}

/** What a page's rows have in common. */
export interface Shared {
  /** The kind of the first row. */
  readonly firstType: unknown
  /** The names of the database's types, and its identity. */
  readonly names: Readonly<Record<string, string>>
  readonly identity: string
  /** Rows of one session, and the cursor before them; undefined for the feed. */
  readonly of: { readonly sessionID: SessionID; readonly after: number } | undefined
  /** The most rows of the page: one row alone may have a long payload. */
  readonly limit: number
}

/** Decoded rows. */
export interface Decoded {
  /** The events without unknown types, up to the first row that is long or unreadable. */
  readonly events: ReadonlyArray<SessionEvent>
  /** How many rows were read, those of unknown types included. */
  readonly read: number
  /** The code units of their payloads. */
  readonly length: number
  /** The position of the last row that was read; undefined if there is none. */
  readonly position: number | undefined
  /** Why the next row is unreadable; undefined if it is long or there is none. */
  readonly stopped: EventUnreadable | undefined
}

/** A row without its payload. */
interface Place {
  readonly kind: Kind
  readonly position: number
  readonly seq: number
  readonly id: EventID
  readonly sessionID: SessionID
  readonly created: number
}

/** Decodes a verified row; undefined for a type that this build does not know. Throws if its payload does not decode. */
const eventOf = (place: Place | undefined, payload = ""): SessionEvent | undefined => {
  if (place?.kind.codec === undefined) return undefined
  const { created, id, position, seq, sessionID } = place
  const { codec } = place.kind
  const { type, version } = codec
  const data = decodePayload(codec, payload)
  // The codec decodes the payload of its own type; the lookup hides that from the compiler.
  return { position, seq, id, sessionID, version, created, type, data } as SessionEvent
}

const invalid = "its id, session or type is not valid"
const changed = "its checksum differs: the row was changed after it was written"

/** Decodes the rows up to the first one that is long or unreadable. */
export const decode = (rows: ReadonlyArray<PageRow>, shared: Shared): Decoded => {
  const { firstType, limit, of } = shared
  const kindOf = makeKinds(shared.names)
  const idAt = EventIds.make(shared.identity)
  const sessionAt = (at: number): unknown => (of === undefined ? rows[at]?.[5] : of.sessionID)
  const seqAt = (at: number): unknown => (of === undefined ? rows[at]?.[6] : of.after + 1 + at)
  const kindAt = (at: number): Kind => kindOf(sessionAt(at), at === 0 ? firstType : rows[at]?.[1])

  /** The row's place; undefined if it is not valid. */
  const placeOf = (row: PageRow, at: number): Place | undefined => {
    // By index: destructuring an array goes through its iterator, which costs as much as an object.
    const place = row[0]
    const created = row[2]
    const [sessionID, seq, kind] = [sessionAt(at), seqAt(at), kindAt(at)]
    if (typeof created !== "number" || typeof seq !== "number" || !isKnownSession(sessionID)) return undefined
    if (kind.stored === undefined) return undefined
    if (typeof place === "number") return { kind, position: place, seq, id: idAt(created, place), sessionID, created }
    const [position, id] = split(String(place))
    return isEventID(id) ? { kind, position, seq, id, sessionID, created } : undefined
  }

  const unreadable = (at: number, details: string) => {
    const [place, seq] = [rows[at]?.[0], seqAt(at)]
    const position = typeof place === "string" ? split(place)[0] : place
    return new EventUnreadable({
      sessionID: String(sessionAt(at)),
      seq: typeof seq === "number" ? seq : -1,
      ...(typeof position === "number" ? { position } : {}),
      type: String(kindAt(at).stored),
      details
    })
  }

  const places: Array<Place> = []
  const [hashes, payloads, checksums]: [Array<number>, Array<string>, Array<number>] = [[], [], []]
  let stopped: EventUnreadable | undefined
  for (const row of rows) {
    const data = row[4]
    const checksum = row[3]
    if (data === null && limit > 1) break
    const place = placeOf(row, places.length)
    if (place === undefined || typeof data !== "string" || typeof checksum !== "number") {
      stopped = unreadable(places.length, invalid)
      break
    }
    hashes.push(rowHash(place.kind.hash, place.seq, place.created, place.id))
    payloads.push(data)
    checksums.push(checksum)
    places.push(place)
  }
  const sound = countSound({ hashes, payloads, checksums })
  if (sound < places.length) stopped = unreadable(sound, changed)

  const events: Array<SessionEvent> = []
  let read = 0
  let length = 0
  try {
    for (; read < sound; read++) {
      length += payloads[read]?.length ?? 0
      const event = eventOf(places[read], payloads[read])
      if (event !== undefined) events.push(event)
    }
  } catch (thrown) {
    stopped = unreadable(read, detailsOf(thrown))
  }
  return { events, read, length, position: places[read - 1]?.position, stopped }
}
