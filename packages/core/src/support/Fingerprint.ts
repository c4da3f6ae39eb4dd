/** Computes a digest of JSON that does not depend on key order. Pure. Spec: PM-41. */
import { createHash } from "node:crypto"
import { Predicate } from "effect"

/** The JSON of a value, with object keys sorted by code unit and undefined fields omitted. */
export const canonicalJson = (value: unknown): string => {
  if (Array.isArray(value)) return `[${value.map((each) => canonicalJson(each ?? null)).join(",")}]`
  if (!Predicate.isRecord(value)) return JSON.stringify(value)
  const members = Object.entries(value)
    .filter(([, each]) => each !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, each]) => `${JSON.stringify(key)}:${canonicalJson(each)}`)
  return `{${members.join(",")}}`
}

/** The SHA-256 of a value's canonical JSON. */
export const fingerprint = (value: unknown): string => createHash("sha256").update(canonicalJson(value)).digest("hex")
