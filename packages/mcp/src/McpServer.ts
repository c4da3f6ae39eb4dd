/** An MCP server's configuration, for the file and for applications. Spec: MC-1, MC-2, MC-36. */
import { createHash } from "node:crypto"
import { Duration, Option, Predicate, Redacted, Schema } from "effect"
import { optional } from "@daybook/log/support/Optional"

// Defines how a server fails.

/** A server's failure, as a sentence without its secrets. */
export class ServerFault extends Schema.TaggedError<ServerFault>("@daybook/mcp/ServerFault")("ServerFault", {
  details: Schema.String,
  /**
   * `lost`: the transport broke, and the server is connected again. `forgotten`: the server no longer knows the session,
   * and did not run the request. `unavailable`: it is not connected. Absent: it answered with an error.
   */
  reason: optional(Schema.Literal("lost", "forgotten", "unavailable"))
}) {}

/** Replaces the schema's message, which would show the value: it may be a secret. */
const saying = (text: string) => ({ message: () => ({ message: text, override: true }) })

/** Text, optionally `Redacted`; plain text in a configuration file. */
const Secret = Schema.Union(Schema.String, Schema.RedactedFromSelf(Schema.String)).annotations(
  saying("expected text; put numbers in quotes")
)
type Secret = typeof Secret.Type

/** The text of a secret. */
export const reveal = (secret: Secret): string => (Redacted.isRedacted(secret) ? Redacted.value(secret) : secret)

const maximumTimeout = Duration.days(1)

const isTimeout = (value: unknown): value is Duration.DurationInput =>
  (typeof value === "string" || Duration.isDuration(value)) &&
  Option.exists(
    Duration.decodeUnknown(value),
    (duration) => Duration.greaterThan(duration, Duration.zero) && Duration.lessThanOrEqualTo(duration, maximumTimeout)
  )

const Timeout = Schema.declare(isTimeout).annotations(
  saying('expected a duration of at most a day with its unit, such as "90 seconds"')
)

const line = (text: string) => !/[\r\n\0]/.test(text)

const Url = Schema.String.pipe(
  Schema.filter((text) => URL.canParse(text) && ["http:", "https:"].includes(new URL(text).protocol))
).annotations(saying("expected a URL that begins with http:// or https://"))

const Headers = Schema.Record({ key: Schema.String, value: Secret })
  .pipe(
    Schema.filter((headers) =>
      Object.entries(headers).every(([name, value]) => /^[\w!#$%&'*+.^`|~-]+$/.test(name) && line(reveal(value)))
    )
  )
  .annotations(saying("expected header names, with values of one line of text; put numbers in quotes"))

const Environment = Schema.Record({ key: Schema.String, value: Secret })
  .pipe(
    Schema.filter((env) =>
      Object.entries(env).every(([name, value]) => /^[^=\0]+$/.test(name) && !reveal(value).includes("\0"))
    )
  )
  .annotations(saying("expected names of variables, with values of text; put numbers in quotes"))

const ofEvery = {
  timeout: optional(Timeout),
  /** `false` disables the server; `true` by default. */
  enabled: optional(Schema.Boolean)
}

const Switch = Schema.Literal("off", "on").annotations(saying("expected off or on"))
const Folders = Schema.Array(Schema.NonEmptyString).annotations(saying("expected a list of paths"))

/** A server's overrides of the host's sandbox; its working folder is read-only unless `writable` names it. */
const ServerSandbox = Schema.Struct({
  mode: optional(Switch),
  network: optional(Switch),
  writable: optional(Folders),
  readable: optional(Folders)
})

/** A server that runs as a child process and speaks over its standard streams. */
export const StdioServer = Schema.Struct({
  command: Schema.NonEmptyString,
  args: optional(Schema.Array(Schema.String)),
  /** Variables of the process, besides a few harmless ones (EN-1); it inherits no others. */
  env: optional(Environment),
  cwd: optional(Schema.NonEmptyString),
  /** Overrides the host's sandbox. */
  sandbox: optional(ServerSandbox),
  ...ofEvery
})
export type StdioServer = typeof StdioServer.Type

/** A server reached over streamable HTTP. */
export const HttpServer = Schema.Struct({ url: Url, headers: optional(Headers), ...ofEvery })
export type HttpServer = typeof HttpServer.Type

/** One configured server: a `command`, or a `url`. */
export const McpServer = Schema.Union(StdioServer, HttpServer)
export type McpServer = typeof McpServer.Type

export const isStdio = (server: McpServer): server is StdioServer => "command" in server

/** Configured servers by name. */
export const McpServers = Schema.Record({ key: Schema.String, value: McpServer }).pipe(
  Schema.filter((servers) => {
    const bad = Object.keys(servers).find((name) => !/^[a-z0-9][a-z0-9_-]{0,31}$/.test(name))
    return bad === undefined
      ? undefined
      : `the server name ${JSON.stringify(bad.slice(0, 100))}: expected at most 32 of a-z, 0-9, "_" and "-", the first a letter or digit`
  })
)
export type McpServers = typeof McpServers.Type

// Digests of descriptions, which do not depend on the order of keys: a changed one needs a new approval (PM-41).

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

/** Identifies a server for approvals by its command or URL, without values of variables. Spec: PM-40. */
export const serverFingerprint = (server: McpServer): string => {
  if (!isStdio(server)) return fingerprint({ url: new URL(server.url).href })
  const { args = [], command, cwd, env = {} } = server
  return fingerprint({ command, args, cwd, env: Object.keys(env).sort() })
}

/** A request to a server failed. */
export class McpError extends Schema.TaggedError<McpError>("@daybook/mcp/McpError")("McpError", {
  server: Schema.String,
  /** `unknown`: no server has that name. `unavailable`: it is not connected. */
  reason: Schema.Literal("unknown", "unavailable", "refused", "timeout"),
  details: Schema.String
}) {
  override get message() {
    return `MCP server "${this.server}": ${this.details}`
  }
}

/** Redacting shorter values would hide too much other text. */
const shortestSecret = 6

/** A server's configured texts that must not be shown. */
const secretsOf = (server: McpServer): ReadonlyArray<string> => {
  if (isStdio(server)) return Object.values(server.env ?? {}).map(reveal)
  const { password, searchParams, username } = new URL(server.url)
  return [...Object.values(server.headers ?? {}).map(reveal), username, password, ...searchParams.values()].flatMap(
    // In `Bearer abc` the second word is the secret, and it may appear without the first.
    (secret) => [secret, ...secret.split(" ")]
  )
}

const mask = "\u{e000}"

/** Redacts a server's secrets. `last` returns only the end of the text, without a part of a secret. */
export const redactor = (server: McpServer) => {
  const secrets = [...new Set(secretsOf(server).flatMap((secret) => [secret, encodeURIComponent(secret)]))]
    .filter((secret) => secret.length >= shortestSecret)
    .sort((a, b) => b.length - a.length)
  // Masks keep the length, so that positions in the text do not change.
  const masked = (text: string) =>
    secrets.reduce((rest, secret) => rest.replaceAll(secret, mask.repeat(secret.length)), text)
  const shown = (text: string) => text.replaceAll(new RegExp(`${mask}+`, "gu"), "<redacted>")
  return {
    /** How much more text than `last` returns must be kept. */
    longest: secrets[0]?.length ?? 0,
    all: (text: string): string => shown(masked(text)),
    last: (text: string, limit: number): string => shown(masked(text).slice(-limit))
  }
}
export type Redactor = ReturnType<typeof redactor>

/** A server's text as part of a sentence: one line, bounded. */
export const inSentence = (text: string, limit = 500): string => {
  const words = text
    .replaceAll(/[\p{Cc}\p{Cf}\s]+/gu, " ")
    .trim()
    .replace(/[.!]+$/, "")
  return words.length <= limit ? words : `${words.slice(0, limit)}...`
}

/** A configured server's `timeout`. */
export const callTimeout = (server: McpServer): Duration.Duration => Duration.decode(server.timeout ?? "1 minute")

export const isEnabled = (server: McpServer): boolean => server.enabled !== false
