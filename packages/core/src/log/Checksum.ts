/**
 * The CRC-32 of an event's row, over everything but its position. Every row that is read is compared, so it has to be
 * cheap: `zlib` is fast over long texts, but each call costs as much as a hundred characters do here.
 */
import { crc32 } from "node:zlib"

/** What the checksum is of. */
export interface Checked {
  readonly id: string
  readonly session_id: string
  readonly seq: number
  readonly type: string
  readonly created: number
  readonly data: string
}

const polynomial = 0xed_b8_83_20

const table = Int32Array.from({ length: 256 }, (_, byte) => {
  let value = byte
  for (let bit = 0; bit < 8; bit++) value = (value & 1) === 1 ? (value >>> 1) ^ polynomial : value >>> 1
  return value
})

/** A payload that is no longer than this is not worth a call. */
const short = 96

/** Goes on over the characters; a number beyond 32 bits says that one of them is more than a byte of UTF-8. */
const notAscii = 2 ** 40

const over = (state: number, text: string): number => {
  let next = state
  let seen = 0
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index)
    seen |= code
    next = (table[(next ^ code) & 255] ?? 0) ^ (next >>> 8)
  }
  return seen < 128 ? next : notAscii
}

const space = (state: number): number => (table[(state ^ 32) & 255] ?? 0) ^ (state >>> 8)

const whole = ({ created, data, id, seq, session_id, type }: Checked): number =>
  crc32(data, crc32(`${id} ${session_id} ${seq} ${type} ${created}`))

/** The checksum of `id session seq type created` and the payload behind it, in UTF-8. */
export const checksumOf = (row: Checked): number => {
  let state = -1
  for (const part of [row.id, row.session_id, String(row.seq), row.type]) {
    state = over(state, part)
    if (state === notAscii) return whole(row)
    state = space(state)
  }
  state = over(state, String(row.created))
  if (row.data.length > short) return crc32(row.data, ~state >>> 0)
  state = over(state, row.data)
  return state === notAscii ? whole(row) : ~state >>> 0
}
