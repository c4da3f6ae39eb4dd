/**
 * Reads the files of known hosts, and adds keys to Daybook's own. A file that exists and
 * cannot be read ends the attempt: it may revoke the key. Spec: SL-87..SL-91 in specs/shell.md.
 */
import { createHash, createHmac } from "node:crypto"
import { constants } from "node:fs"
import { mkdir, open } from "node:fs/promises"
import { dirname } from "node:path"
import { Effect } from "effect"
import { InvalidOption, TransportFailed } from "../domain/ShellError.ts"
import { systemKnownHosts, type TransportSettings } from "./TransportSettings.ts"
import { codeOf } from "@daybook/log/support/SystemError"

// Decides whether a host's key is trusted, by lines in the form of OpenSSH's `known_hosts`.

/** A line that names a key: a key that its hosts have, or one that was revoked. */
interface KnownKey {
  readonly revoked: boolean
  /** The line's list of hosts. */
  readonly hosts: string
  readonly type: string
  /** The key in base64. */
  readonly key: string
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
const fingerprint = (key: Buffer): string =>
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

/** The keys, and the numbers of lines that are not understood: they may name the host. */
export const parse = (text: string) => {
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

/** No file of known hosts is that large. */
const mostBytes = 16 * 1024 * 1024

const refused = (details: string) => new TransportFailed({ transport: "ssh", reason: "host key", details })

/** The text of a file; empty if there is none. */
const read = async (path: string): Promise<string> => {
  const file = await open(path, "r").catch((cause: unknown) => {
    if (codeOf(cause) === "ENOENT") return undefined
    throw cause
  })
  if (file === undefined) return ""
  try {
    const { size } = await file.stat()
    if (size > mostBytes) throw Object.assign(new Error("too large"), { code: "EFBIG" })
    return await file.readFile("utf8")
  } finally {
    await file.close()
  }
}

/**
 * Adds a line with one write at the end of the file: writers in other processes lose nothing, and a reader sees the line or
 * not. The line break before it ends a line that a power cut left torn.
 */
const append = async (path: string, line: string): Promise<void> => {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 })
  const { O_APPEND, O_CREAT, O_NOFOLLOW, O_RDWR } = constants
  const file = await open(path, O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW, 0o600)
  try {
    const { size } = await file.stat()
    const last = Buffer.alloc(1)
    if (size > 0) await file.read(last, 0, 1, size - 1)
    const bytes = Buffer.from(size > 0 && last[0] !== 0x0a ? `\n${line}\n` : `${line}\n`)
    const { bytesWritten } = await file.write(bytes)
    if (bytesWritten < bytes.length) throw Object.assign(new Error("no space"), { code: "ENOSPC" })
    await file.sync()
  } finally {
    await file.close()
  }
}

/** The keys of the files, and their lines that are not understood, as `FILE:LINE`. */
const load = (paths: ReadonlyArray<string>) =>
  Effect.map(
    Effect.forEach(paths, (path) =>
      Effect.tryPromise({
        try: () => read(path),
        catch: (cause) =>
          refused(
            `the file of known hosts ${path} cannot be read (${codeOf(cause)}), and it may forbid the host: repair it`
          )
      }).pipe(Effect.map((text) => ({ path, ...parse(text) })))
    ),
    (files) => ({
      keys: files.flatMap(({ keys }) => keys),
      faults: files.flatMap(({ faults, path }) => faults.map((line) => `${path}:${line}`))
    })
  )

/** Decides on the key of one host. */
export interface HostTrust {
  readonly types: ReadonlyArray<string>
  /** Succeeds if the key is trusted. Its error says what was presented and what to do. */
  readonly check: (key: Buffer) => Effect.Effect<void, TransportFailed>
}

/** One key is accepted at a time, so that of two new keys of a host the second sees the first. */
const accepting = Effect.unsafeMakeSemaphore(1)

const acceptNew = Effect.fnUntraced(function* (own: string, name: string, key: Buffer) {
  const { keys } = yield* load([own])
  if (verdict(keys, name, key) === "known") return
  if (verdict(keys, name, key) !== "unknown") return yield* refused(`${name} has another key since a moment ago`)
  yield* Effect.tryPromise({
    try: () => append(own, `${name} ${keyType(key) ?? "unknown"} ${key.toString("base64")}`),
    catch: (cause) =>
      refused(`the key of ${name} cannot be written to ${own} (${codeOf(cause)}): make the file writable`)
  })
})

export interface ExpectedHost {
  readonly host: string
  readonly port: number
  /** The fingerprint that the caller expects. */
  readonly fingerprint: string | undefined
}

/** Reads the files, once per connection. */
export const trust = Effect.fn("KnownHosts.trust")(function* (
  { fingerprint: pinned, host, port }: ExpectedHost,
  settings: TransportSettings
) {
  const own = settings.ownKnownHosts
  if (settings.acceptNew === true && own === undefined) {
    return yield* new InvalidOption({
      option: "acceptNew",
      details: "needs ownKnownHosts, the file that remembers keys"
    })
  }
  const paths = [...(settings.knownHosts ?? systemKnownHosts()), ...(own === undefined ? [] : [own])]
  const { faults, keys } = yield* load(paths)
  const name = hostName(host, port)
  const check = Effect.fnUntraced(function* (key: Buffer) {
    const presented = `${name} presents the ${keyType(key) ?? "unknown"} key ${fingerprint(key)}`
    const found = verdict(keys, name, key)
    if (found === "revoked") return yield* refused(`${presented}, which a file of known hosts revokes`)
    if (pinned !== undefined) {
      if (pinned.replace(/=$/, "") === fingerprint(key)) return
      return yield* refused(`${presented}, not the expected ${pinned}: check which one is right`)
    }
    if (found === "known") return
    if (found === "changed") {
      return yield* refused(
        `${presented}, but another key is known: someone may intercept the connection. If the host has a new key, ` +
          `remove the old one from ${paths.join(" or ")}`
      )
    }
    if (own === undefined || settings.acceptNew !== true) {
      return yield* refused(`${presented}, which no file of known hosts has: add it, or expect this fingerprint`)
    }
    if (faults.length > 0) {
      return yield* refused(
        `${presented}, which is new, but ${faults[0]} is not understood and may name the host: repair it`
      )
    }
    yield* accepting.withPermits(1)(acceptNew(own, name, key))
  })
  const result: HostTrust = { types: knownTypes(keys, name), check }
  return result
})
