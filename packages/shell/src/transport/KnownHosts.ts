/**
 * Reads the files of known hosts, and adds keys to Daybook's own. `HostKeys.ts` decides by their lines. A file that exists and
 * cannot be read ends the attempt: it may revoke the key. Spec: SL-88..SL-91 in specs/shell.md.
 */
import { constants } from "node:fs"
import { mkdir, open } from "node:fs/promises"
import { dirname } from "node:path"
import { Effect } from "effect"
import { InvalidOption, TransportFailed } from "../domain/ShellError.ts"
import { fingerprint, hostName, keyType, type KnownKey, knownTypes, parse, verdict } from "./HostKeys.ts"
import { systemKnownHosts, type TransportSettings } from "./TransportSettings.ts"

/** No file of known hosts is that large. */
const mostBytes = 16 * 1024 * 1024

const refused = (details: string) => new TransportFailed({ transport: "ssh", reason: "host key", details })

const codeOf = (cause: unknown): string =>
  cause instanceof Error && "code" in cause && typeof cause.code === "string" ? cause.code : "unknown fault"

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

interface Files {
  readonly keys: ReadonlyArray<KnownKey>
  /** Lines that are not understood, as `FILE:LINE`. */
  readonly faults: ReadonlyArray<string>
}

const load = (paths: ReadonlyArray<string>): Effect.Effect<Files, TransportFailed> =>
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
  /** The types of keys to ask the host for first. */
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

export interface Wanted {
  readonly host: string
  readonly port: number
  /** The fingerprint that the caller expects. */
  readonly fingerprint: string | undefined
}

/** Reads the files, once per connection. */
export const trust = Effect.fn("KnownHosts.trust")(function* (
  { fingerprint: pinned, host, port }: Wanted,
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
