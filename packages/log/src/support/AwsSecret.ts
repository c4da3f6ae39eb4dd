/**
 * Finds a secret key of AWS that has no name: 40 characters of base64 beside the id of a key, on a line that speaks of AWS,
 * or alone on a line. Hashes of 40 characters have no capital letters. Pure. Spec: FM-760.
 */

const length = 40
/** Characters of a line that are looked at on each side. */
const beside = 256

const shape = /^(?=[^a-z]*[a-z])(?=[^A-Z]*[A-Z])(?=\D*\d)[A-Za-z0-9+/]+$/
const context = /\b(?:AKIA|ASIA)[A-Z0-9]{16}|\baws|amazon|\bs3\b|secret/i

/** Places where the kind of a letter or digit changes. A word with capital letters and numbers has few. */
const changes = (text: string): number =>
  (text.match(/[a-z](?=[+/]?[A-Z0-9])|[A-Z](?=[+/]?[a-z0-9])|\d(?=[+/]?[A-Za-z])/g) ?? []).length

/** Where the secret key begins that ends a run of characters; undefined if it is none. A run may contain escaped slashes. */
export const isAwsSecret = (text: string, start: number, end: number): number | undefined => {
  if (end - start < length) return undefined
  const run = text.slice(start, end)
  const name = run.lastIndexOf("=") + 1
  const key = run.slice(name)
  const bare = key.includes("\\") ? key.replaceAll("\\", "") : key
  if (bare.length !== length || !shape.test(bare)) return undefined
  const from = start + name
  const before = text.slice(Math.max(0, from - beside), from)
  const after = text.slice(end, end + beside)
  const line = [before.slice(before.lastIndexOf("\n") + 1), after.split("\n", 1)[0] ?? ""]
  const least = line.some((part) => context.test(part)) ? 8 : line.some((part) => /[^\s"',]/.test(part)) ? Infinity : 12
  return changes(bare) >= least ? from : undefined
}
