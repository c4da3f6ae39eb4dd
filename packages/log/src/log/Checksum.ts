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

/** The session and type of the last checksum, and their part of it: rows of a page share the one and often the other. */
const last = { session_id: "", type: "", hash: stepText(0, " ") }

const kindOf = ({ session_id, type }: Checked): number => {
  if (last.session_id === session_id && last.type === type) return last.hash
  last.session_id = session_id
  last.type = type
  last.hash = stepText(stepText(0, session_id) ^ 0x20, type)
  return last.hash
}

/**
 * Returns the CRC-32 of the payload in UTF-8, begun with a hash of the other columns. A change of one column always
 * changes the checksum. Every row that is read is verified, so speed matters: the one text of all columns, which an
 * earlier checksum covered, took as long to join as the payload takes to sum up.
 */
export const checksumOf = (row: Checked): number => {
  const { created, data, id, seq } = row
  const place = step(step(step(kindOf(row), seq), created | 0), Math.floor(created / 0x1_0000_0000))
  return crc32(data, stepText(place, id) >>> 0)
}
