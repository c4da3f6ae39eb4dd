/**
 * Migrates entry logs of version 1 and 2 to version 3, record by record. Pure: the same log gets the same ids each time.
 * Spec: FM-20..FM-26 in specs/formats.md.
 */
import { createHash } from "node:crypto"
import { Predicate } from "effect"
import type { JsonRecord } from "@daybook/log/domain/Json"
import { currentVersion, type Header, versionOf } from "./Header.ts"

/** A record of version 3. `keptNothing`: its index of the first kept record names no entry before it. */
export interface Migrated {
  readonly record: JsonRecord
  readonly keptNothing?: true
}

export interface Migration {
  /** The header in version 3. */
  readonly header: JsonRecord
  /** The record in version 3. Call it for each record after the header, in order, with its slot. */
  readonly next: (record: JsonRecord, slot: number) => Migrated
}

/** Each step is a bijection of 32-bit numbers, so two indexes never get the same id. */
const scrambled = (value: number): number => {
  let bits = value | 0
  bits = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b)
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35)
  return (bits ^ (bits >>> 16)) >>> 0
}

/** Ids of eight hexadecimal digits for the records of a session by their index, all different. */
const idsOf = (sessionID: string) => {
  const key = createHash("sha256").update(sessionID).digest().readUInt32LE(0)
  return (index: number): string =>
    scrambled(index ^ key)
      .toString(16)
      .padStart(8, "0")
}

const without = (record: JsonRecord, field: string): JsonRecord =>
  Object.fromEntries(Object.entries(record).filter(([name]) => name !== field))

/** Version 1 has no ids: entries get one, and a chain in file order (MI-1..MI-3). */
const toVersion2 = (sessionID: string): Migration["next"] => {
  const idOf = idsOf(sessionID)
  const indexes = new Set<number>()
  let parentId: string | null = null
  return (record, index) => {
    if (!Predicate.isString(record["type"]) || record["type"] === "session") return { record }
    const id = idOf(index)
    const linked: JsonRecord = { ...record, id, parentId }
    parentId = id
    indexes.add(index)
    const { firstKeptEntryIndex: kept } = record
    if (record["type"] !== "compaction" || !Predicate.isNumber(kept)) return { record: linked }
    const rest = without(linked, "firstKeptEntryIndex")
    return indexes.has(kept)
      ? { record: { ...rest, firstKeptEntryId: idOf(kept) } }
      : { record: without(rest, "firstKeptEntryId"), keptNothing: true }
  }
}

/** Version 3 calls the role `hookMessage` `custom` (MI-5). */
const toVersion3 = (record: JsonRecord): JsonRecord => {
  const { message, type } = record
  return type === "message" && Predicate.isReadonlyRecord(message) && message["role"] === "hookMessage"
    ? { ...record, message: { ...message, role: "custom" } }
    : record
}

/** Begins the migration of a log. A log of version 3 stays as it is (MI-6). */
export const make = (header: Header, headerSlot: number): Migration => {
  const version = versionOf(header) ?? currentVersion
  if (version >= currentVersion) return { header, next: (record) => ({ record }) }
  const step = version < 2 ? toVersion2(header.id) : (record: JsonRecord): Migrated => ({ record })
  return {
    header: { ...header, version: currentVersion },
    next: (record, slot) => {
      const migrated = step(record, slot - headerSlot)
      return { ...migrated, record: toVersion3(migrated.record) }
    }
  }
}

/** A whole log in version 3: a header and entries, in order. */
export const migrate = (header: Header, records: ReadonlyArray<JsonRecord>): ReadonlyArray<JsonRecord> => {
  const migration = make(header, 0)
  return [migration.header, ...records.map((record, at) => migration.next(record, at + 1).record)]
}
