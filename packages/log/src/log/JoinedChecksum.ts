/**
 * Verifies the checksums of many rows with one CRC-32 of their joined payloads: a call costs as much as the bytes of a
 * typical payload. For the CRC-32 of two texts, where `behind(c, n)` moves the CRC `c` in front of n bytes:
 *
 *   crc(a + b) = behind(crc(a), length of b) ^ crc(b)        a row's checksum = behind(its hash, length) ^ crc(payload)
 *
 * So the CRC of the joined payloads follows from hashes, lengths and checksums. One changed row always changes it.
 * Several changed rows escape it as rarely as one row escapes its own checksum. Spec: LG-63 in specs/log.md.
 */
import { crc32 } from "node:zlib"
import { sum } from "./Checksum.ts"

/** Code units of payloads that are joined: longer texts would leave the processor's cache. */
const joinedLength = 16 * 1024

/** The polynomial of CRC-32. Bits stand in reverse, as in the checksum: the highest one is the constant 1. */
const polynomial = 0xedb88320 | 0
const [one, xTo8] = [1 << 31, 1 << 23]

/** Multiplies two polynomials modulo that of CRC-32, without branches: no processor can predict them. */
const multiply = (a: number, b: number): number => {
  let product = 0
  let factor = b
  for (let bit = 31; bit >= 0; bit--) {
    product ^= factor & -((a >>> bit) & 1)
    factor = (factor >>> 1) ^ (polynomial & -(factor & 1))
  }
  return product
}

/** The factors of lengths up to 64 KiB; 0 if not computed yet. */
const factors = new Int32Array(64 * 1024 + 1)

/** x to the power of 8 times the length: it moves a CRC in front of so many bytes. */
const factorOf = (length: number): number => {
  const known = factors[length]
  if (known !== undefined && known !== 0) return known
  let [factor, square] = [one, xTo8]
  for (let left = length; left > 0; left = Math.floor(left / 2)) {
    if (left % 2 === 1) factor = multiply(factor, square)
    square = multiply(square, square)
  }
  if (known === 0) factors[length] = factor
  return factor
}

/** Rows as columns: the hash of what precedes the payload, the payload, and the stored checksum. */
export interface Summed {
  readonly hashes: ReadonlyArray<number>
  readonly payloads: ReadonlyArray<string>
  readonly checksums: ReadonlyArray<number>
}

/** The CRC that the joined payloads from one row to before another must have. */
const expected = (rows: Summed, from: number, to: number, lengthOf: (text: string) => number): number => {
  let crc = 0
  for (let at = from; at < to; at++) {
    const [hash = 0, payload = "", checksum = 0] = [rows.hashes[at], rows.payloads[at], rows.checksums[at]]
    crc = multiply(factorOf(lengthOf(payload)), crc ^ hash) ^ checksum
  }
  return crc >>> 0
}

const codeUnits = (text: string): number => text.length

/** The first row from one to before another that does not have its checksum; `to` if all have theirs. */
const firstChanged = ({ checksums, hashes, payloads }: Summed, from: number, to: number): number => {
  let at = from
  while (at < to && sum(hashes[at] ?? 0, payloads[at] ?? "") === checksums[at]) at += 1
  return at
}

/** How many rows have their checksums, before the first one that does not. */
export const countSound = (rows: Summed): number => {
  const { payloads } = rows
  let from = 0
  while (from < payloads.length) {
    let text = ""
    let to = from
    while (to < payloads.length && text.length < joinedLength) text += payloads[to++] ?? ""
    const crc = to - from > 1 ? crc32(text) : undefined
    // Most payloads are ASCII: as many bytes as code units.
    const isSound = crc === expected(rows, from, to, codeUnits) || crc === expected(rows, from, to, Buffer.byteLength)
    const changed = isSound ? to : firstChanged(rows, from, to)
    if (changed < to) return changed
    from = to
  }
  return from
}
