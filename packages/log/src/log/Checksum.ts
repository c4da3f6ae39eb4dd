/** Computes the CRC-32 of an event's row, over every column except its position. Spec: ST-11 in specs/storage.md. */
import { crc32 } from "node:zlib"

/** The columns that the checksum covers. */
export interface Checked {
  readonly id: string
  readonly session_id: string
  readonly seq: number
  readonly type: string
  readonly created: number
  readonly data: string
}

/** One step of FNV-1a, which no two values of 32 bits leave with the same result. */
const step = (hash: number, value: number): number => Math.imul(hash ^ value, 0x01000193)

const stepText = (hash: number, text: string): number => {
  let stepped = hash
  for (let at = 0; at < text.length; at++) stepped = step(stepped, text.charCodeAt(at))
  return stepped
}

/** The hash of a session and a type, which rows of one kind share. */
export const kindHash = (sessionID: string, type: string): number => stepText(stepText(0, sessionID) ^ 0x20, type)

/** The hash of all columns but the payload, from that of the kind. */
export const rowHash = (kind: number, seq: number, created: number, id: string): number =>
  stepText(step(step(step(kind, seq), created | 0), Math.floor(created / 0x1_0000_0000)), id)

/** The checksum of a row: the CRC-32 of the payload in UTF-8, begun with the hash of the other columns. */
export const sum = (hash: number, data: string): number => crc32(data, hash >>> 0)

/** The session and type of the last checksum: neighbouring rows often share both. */
const last = { session_id: "", type: "", hash: kindHash("", "") }

const kindHashOf = ({ session_id, type }: Checked): number => {
  if (last.session_id === session_id && last.type === type) return last.hash
  last.session_id = session_id
  last.type = type
  last.hash = kindHash(session_id, type)
  return last.hash
}

/** Returns the checksum of a whole row. A change of one column always changes it. */
export const checksumOf = (row: Checked): number =>
  sum(rowHash(kindHashOf(row), row.seq, row.created, row.id), row.data)
