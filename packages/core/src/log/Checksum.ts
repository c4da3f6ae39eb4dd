/** The CRC-32 of an event's row, over everything but its position. Spec: ST-11 in specs/storage.md. */
import { crc32 } from "node:zlib"

/** What the checksum covers. */
export interface Checked {
  readonly id: string
  readonly session_id: string
  readonly seq: number
  readonly type: string
  readonly created: number
  readonly data: string
}

/**
 * The checksum of `id session seq type created`, followed by the payload, in UTF-8. Every row that is read is compared: one
 * native call over one text is the cheapest form that was measured (decision 0022).
 */
export const checksumOf = ({ created, data, id, seq, session_id, type }: Checked): number =>
  crc32(`${id} ${session_id} ${seq} ${type} ${created}${data}`)
