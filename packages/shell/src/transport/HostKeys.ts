/**
 * Decides whether a host's key is trusted, by lines in the form of OpenSSH's `known_hosts`. Pure; `KnownHosts.ts` reads and
 * writes the files. Spec: SL-87, SL-88 in specs/shell.md.
 */
import { createHash, createHmac } from "node:crypto"

/** A line that names a key: a key that its hosts have, or one that was revoked. */
export interface KnownKey {
  readonly revoked: boolean
  /** The line's list of hosts. */
  readonly hosts: string
  readonly type: string
  /** The key in base64. */
  readonly key: string
}

export interface KnownKeys {
  readonly keys: ReadonlyArray<KnownKey>
  /** The numbers of lines that are not understood. They may name the host. */
  readonly faults: ReadonlyArray<number>
}

/** `revoked` and `changed` are never accepted; `unknown` means that no line names the host. */
export type Verdict = "known" | "unknown" | "changed" | "revoked"

/** A host as `known_hosts` names it: with its port if that is not 22. */
export const hostName = (host: string, port: number): string =>
  port === 22 ? host.toLowerCase() : `[${host.toLowerCase()}]:${port}`

/** The type that a key states itself, such as `ssh-ed25519`. */
export const keyType = (key: Buffer): string | undefined => {
  if (key.length < 4) return undefined
  const length = key.readUInt32BE(0)
  return length > 0 && length <= key.length - 4 ? key.toString("latin1", 4, 4 + length) : undefined
}

/** `SHA256:...`, as OpenSSH prints it. */
export const fingerprint = (key: Buffer): string =>
  `SHA256:${createHash("sha256").update(key).digest("base64").replace(/=+$/, "")}`

const base64 = /^[A-Za-z0-9+/]+={0,2}$/

/** A line: a key, nothing (a comment, or an authority of certificates, which ssh2 cannot check), or a fault. */
const parseLine = (line: string): KnownKey | "nothing" | "fault" => {
  const words = line.trim().split(/[ \t]+/)
  const [first = ""] = words
  if (first === "" || first.startsWith("#")) return "nothing"
  const [hosts = "", type = "", key = ""] = first.startsWith("@") ? words.slice(1) : words
  if (first === "@cert-authority") return "nothing"
  if (first.startsWith("@") && first !== "@revoked") return "fault"
  if (!base64.test(key) || keyType(Buffer.from(key, "base64")) !== type) return "fault"
  return { revoked: first === "@revoked", hosts, type, key: Buffer.from(key, "base64").toString("base64") }
}

export const parse = (text: string): KnownKeys => {
  const lines = text.split("\n").map((line, index) => ({ number: index + 1, parsed: parseLine(line) }))
  return {
    keys: lines.flatMap(({ parsed }) => (typeof parsed === "string" ? [] : [parsed])),
    faults: lines.flatMap(({ number, parsed }) => (parsed === "fault" ? [number] : []))
  }
}

/** `*` and `?` match as in OpenSSH. Linear in pattern times name: only the last `*` is tried again. */
const matchesPattern = (pattern: string, name: string): boolean => {
  let [at, position, star, mark] = [0, 0, -1, 0]
  while (position < name.length) {
    const wanted = pattern[at]
    if (wanted === "*") {
      star = at++
      mark = position
    } else if (wanted === "?" || wanted === name[position]) {
      at++
      position++
    } else if (star >= 0) {
      at = star + 1
      position = ++mark
    } else return false
  }
  while (pattern[at] === "*") at++
  return at === pattern.length
}

const matchesHash = (hashed: string, name: string): boolean => {
  const [, , salt = "", hash = ""] = hashed.split("|")
  return createHmac("sha1", Buffer.from(salt, "base64")).update(name).digest("base64") === hash
}

/** Whether a line's list of hosts names the host. A pattern with `!` excludes it. */
export const matches = (hosts: string, name: string): boolean => {
  if (hosts.startsWith("|1|")) return matchesHash(hosts, name)
  const patterns = hosts.toLowerCase().split(",")
  if (patterns.some((pattern) => pattern.startsWith("!") && matchesPattern(pattern.slice(1), name))) return false
  return patterns.some((pattern) => matchesPattern(pattern, name))
}

/** What the lines say of a key that a host presents. */
export const verdict = (known: ReadonlyArray<KnownKey>, name: string, key: Buffer): Verdict => {
  const presented = key.toString("base64")
  const lines = known.filter(({ hosts }) => matches(hosts, name))
  if (lines.some((line) => line.revoked && line.key === presented)) return "revoked"
  const trusted = lines.filter(({ revoked }) => !revoked)
  if (trusted.length === 0) return "unknown"
  return trusted.some((line) => line.key === presented) ? "known" : "changed"
}

/** The types of keys that are known of a host. A client asks for these first, else a host with several seems changed. */
export const knownTypes = (known: ReadonlyArray<KnownKey>, name: string): ReadonlyArray<string> => [
  ...new Set(known.flatMap(({ hosts, revoked, type }) => (!revoked && matches(hosts, name) ? [type] : [])))
]
