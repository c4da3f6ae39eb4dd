/**
 * A rollout of 148 KB and the same compressed by zstd at level 3 from a pipe, as Codex compresses; and frames that hold a text as
 * it is, whose blocks can be counted. Spec of the frames: RFC 8878.
 */
import type { Json } from "./ClaudeLogs.ts"
import { threadID } from "./CodexLogs.ts"

const timestamp = "2026-02-01T10:00:00.000Z"

const messageOf = (n: number): Json => ({
  timestamp,
  type: "response_item",
  payload:
    n % 2 === 1
      ? { type: "message", role: "user", content: [{ type: "input_text", text: `Question ${n % 7}.` }] }
      : { type: "message", role: "assistant", content: [{ type: "output_text", text: `Answer ${n % 7}.` }] }
})

const head: Json = {
  timestamp,
  type: "session_meta",
  payload: {
    id: threadID,
    timestamp,
    cwd: "/work/shop",
    originator: "codex_cli_rs",
    cli_version: "0.140.0",
    source: "cli"
  }
}

/** The rollout's text. */
export const text: string = [head, ...Array.from({ length: 900 }, (_, n) => messageOf(n + 1))]
  .map((record) => `${JSON.stringify(record)}\n`)
  .join("")

const base64 = [
  "KLUv/QBYBCwAGkMoCSIwbZMcQy0O+xf/yTLrjjCGPfqhRO1Z56akkmjNpAuDLIQB3wBvAGoAE45IoyECYUAgDQwqlIUFaDgYEUgy",
  "gaAsiqJEJCQRhsiERIOxYFEijSTScDgURXkkkImyKAmE41EUJWnQAIEkERFJhMGQQBoOCUjyoACgQoXCgHAoi5I4PCYckKIoWpC3",
  "oLIoDQcD8kggMDAgHIqiQB4MDAgHBgnJg8OhLMrDEWloMBowHo6iKBIOB5ABDx6OCAPKojxEcFCUqQABAZJEwMBUFuWBUSgsykOD",
  "A2JCg0RRlIZIEsHQcDAgkARSFiWRmBApiqJA0oK0kBZagkkAJeAUy6JIRDREIEkEI1IoBOX0cTl9XE4fl9PH5fRxOX1cTh+X08fl",
  "9HE5fVxOH5fTx+X0cTl9XE4fl9PH5fRxOX1cTh+X08fl9HE5fVxOH5fTx+X0cTl9XE4fl9PH5fRxOX1cTh+X08fl9HE5fVxOH5fT",
  "x+X0cRngkUSANA5EAh+X08fl9HE5fVxOH5fTx+X0cTl9XE4fl9PH5fRxOX1cTh+X08fl9HE5fVxOH5fTx+X0cTl9XE4fl9PH5fRx",
  "OX1cTh+X08fl9HE5fVxOH5fTx+X0cTl9XE4fl9PH5fRxOX1cTh+X08fl9HEfl9PH5fRxOX1cTh+X08fl9HE5fVxOH5fTx+X0cTl9",
  "XE4fl9PH5fRxOX1cTh+X08fl9HE5fVxOH5fTx+X0cTl9XE4fl9PH5fRxOX1cTh+X08fl9HE5fVxOH5fTx+X0cTl9XE4fl9PH5RSD",
  "K6giyAdlpFTZWQOyD1JIBxJAIAggCCAQBAqBQqAQ/CcECoHCH94j8hB5RB6Rp8hT5CHyiDwizyKPyCPyiPCIPEUekUfEI/KIeEQ8",
  "oh6RR+QR8Yh4RB4ij8gj0iPyiDwiD5EHkUfkEXmIPCIPkUfEU+QReUSeIg+RR+QR8Yh4iDwij8gj4hHxEHlEHhGPyCPqEXlEPUQe",
  "kYfII+IReUQeEQ8Rj8gj8og8RJ4ij4hH5CHyiHhEHpGnyEPkEfGIPEQekUfkEfUg8og8Io+Ih8gj8oh4RDwiD5FH5BH1iDwiniKP",
  "iEfkEXlEPCIeIo/II/IQ8Yg8Io/Ig8gj6hF5RJ4ij8hDxCPyEHlEHpGHyEPkEfGIPCKeIo/II/KIeIh4RB6RR9Qj8oh4RB4iHpFH",
  "5BH1iHhEHhGPyIPII/KIPCIPkYeIR+QReYo8Ik+RR+RB5BF5RDwiD5FH5BF5iPCIPCKPyCPiEfWIeEQeUY/IQ+QReUQ8Ih6Rh8gj",
  "4hF5RB6RhyKPyCPyiDxEPCKPyEPkKfKIeEQekYfII+IR9Yg8RB6RR+Qh4hHxiDwij4iHyCPyiDxEPSJPkUfkEfGIPCIeIo+IR+QR",
  "eUQ8RB4Rj8gj8hD1iDwij8hTxEPkEXlEHiKPyEPkIfIQeUQekaeIR+QReYg8Ijwij8gj8oh6RHhEHpFHxCPyiHpEHhEekUfkIfIQ",
  "eUQekYfIg8gj8og8Ik+Rp8hD5BF5iDwiHpFH5CHiEXlEPCIekUfkEXlE9Ig8Io/II+oh8og8RB4Rj8hD5BF5RDwiD5GnyEPkEXlE",
  "HhEPEY/II/KIPEU8Io/II+Ih8oh6RB6Rh8gj8iDyiHhEHpFH5CHiEXmIPCKPqKfII/KIPCI8Ih6RR+QR8Yg8Ih4RD5FH5BF5RD1E",
  "HpGHyCPyJPKIPCKPyEPkQeQReUQeIo/IU+QR4RF5RB4Rj4hH5BF5RDyiPCKPyCPyiHhEPUQekUfEI/IQeUQeIg+RR+Qh8hB5RB6R",
  "R8SzyCPyiDwiDxGPSDxicKm1BpyU1udYaeU7lbYYNkpa30HhKU2OltcWmgmA135od60JgB1oMa33AQMT4AGcMUzDreUEAPNGDAAq",
  "VGBQoSy4nD4up4/L6eNy+ricPi6nj8vp43L6uJw+LqePy+njcvq4nD4up4/LqQRnWAEAEvj//wSBn38ij8gj8og8Io/II/KIPCKP",
  "yCPyiDwij8gj8og8Io/II/KIPCKPyCPyiDwij8gj8og8Io/II/KIPEUekUfkEXlEHpFH5BF5RB6RR+QReUQekUfkEXlEHpFH5FkC",
  "BA=="
]

/** The rollout as Codex compresses it. */
export const compressed: Buffer = Buffer.from(base64.join(""), "base64")

/** The bytes in front of a stored block's own. */
export const blockHeadBytes = 3
/** The bytes in front of the blocks. */
export const frameHeadBytes = 6

/** A frame with a window of 1 MiB whose blocks hold these texts as they are. */
export const frameOf = (blocks: ReadonlyArray<string>): Buffer =>
  Buffer.concat([
    Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x50]),
    ...blocks.flatMap((block, at) => {
      const bytes = Buffer.from(block)
      const header = Buffer.alloc(blockHeadBytes)
      header.writeUIntLE((bytes.length << 3) | (at === blocks.length - 1 ? 1 : 0), 0, blockHeadBytes)
      return [header, bytes]
    })
  ])
