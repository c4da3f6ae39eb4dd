/**
 * Collects contents by the hash of their bytes, each once, with their references. Spec: FI-50..FI-52 in specs/files.md
 * (PK-5).
 */
import { createHash } from "node:crypto"

/** The content's SHA-256: `sha256-` and 64 lowercase hex digits. */
export const hashOf = (content: string | Uint8Array): string =>
  `sha256-${createHash("sha256").update(content).digest("hex")}`

/** The blob's file, relative to `context/`. */
export const blobPath = (hash: string): string => `dedup/blob/${hash}`

interface Blob {
  readonly content: string | Uint8Array
  readonly tokens: number
  readonly refs: ReadonlyArray<string>
}

export interface Blobs {
  readonly byHash: ReadonlyMap<string, Blob>
}

export const noBlobs: Blobs = { byHash: new Map() }

/** A content and one reference to it. */
export interface Referred {
  readonly content: string | Uint8Array
  readonly tokens: number
  /** A file relative to `context/`; for a file with lines, a colon and the line number follow. */
  readonly ref: string
}

/** The contents in order of their first reference. */
export const blobsOf = (referred: ReadonlyArray<Referred>): Blobs => {
  const byHash = new Map<string, Blob>()
  for (const { content, ref, tokens } of referred) {
    const hash = hashOf(content)
    const before = byHash.get(hash)
    const refs = before?.refs ?? []
    byHash.set(hash, { content, tokens, refs: refs.includes(ref) ? refs : [...refs, ref] })
  }
  return { byHash }
}

const sizeOf = (content: string | Uint8Array): number =>
  typeof content === "string" ? Buffer.byteLength(content) : content.length

/** The lines of `dedup/index.jsonl`. */
export const blobRows = ({ byHash }: Blobs) =>
  [...byHash].map(([hash, { content, refs, tokens }]) => ({ hash, refs, bytes: sizeOf(content), tokens }))
