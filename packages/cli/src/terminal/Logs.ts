/**
 * The logs on stderr: of a server, of a host of live shells (up to a limit: no one empties its log while it runs), and warnings of
 * work that continues. An entry is a line of text for people or JSON for programs, without control characters and secrets of the
 * environment. Spec: CL-112, CL-122, CL-127 in specs/cli.md, SL-171 in specs/shell.md.
 */
import { Cause, Chunk, HashMap, Inspectable, Layer, Logger, LogLevel } from "effect"
import { redactSecrets } from "@daybook/log/support/Redaction"
import { messageOf } from "@daybook/log/support/SystemError"
import { escaped, oneLine, visible } from "../render/Plain.ts"
import { standard } from "../support/Stream.ts"

/** Adds to the logs of `DAYBOOK_DEBUG`. */
export const warnings = Logger.add(
  Logger.make(({ logLevel, message }) => {
    if (LogLevel.lessThan(logLevel, LogLevel.Warning)) return
    const words = (Array.isArray(message) ? message : [message]).map(messageOf).join(": ")
    standard().stderr.write(`daybook: ${oneLine(words, 2_000)}\n`, () => undefined)
  })
)

export type Format = "text" | "json"

/** The levels by their names on the command line. */
export const levels = { debug: LogLevel.Debug, info: LogLevel.Info, warning: LogLevel.Warning, error: LogLevel.Error }

const names: Readonly<Record<string, string>> = { WARN: "warning", FATAL: "error", TRACE: "debug" }

/** The maximum lengths of a line's message and cause; longer ones are truncated. */
const most = { message: 2_000, cause: 8_000 }

const secretName = /KEY|TOKEN|SECRET|PASSWORD|OTLP_(?:\w+_)?HEADERS/i

/** Values that must not be in a log. Short values are left out, because they would hide ordinary words. */
export const secretsOf = (env: Readonly<Record<string, string | undefined>>): ReadonlyArray<string> =>
  Object.entries(env)
    .flatMap(([name, value]) => (secretName.test(name) && value !== undefined && value.length >= 8 ? [value] : []))
    .toSorted((one, other) => other.length - one.length)

const withoutSecrets = (text: string, secrets: ReadonlyArray<string>): string =>
  secrets.reduce((clean, secret) => clean.replaceAll(secret, "[secret]"), text)

const said = (part: unknown): string =>
  typeof part === "string" ? part : part instanceof Error ? part.message : Inspectable.toStringUnknown(part, 0)

type Expected = Error & { readonly _tag: string }

const isExpected = (error: unknown): error is Expected =>
  error instanceof Error && "_tag" in error && typeof error._tag === "string"

const told = ({ _tag, cause, message }: Expected): string =>
  `${_tag}: ${message}${cause instanceof Error && !message.includes(cause.message) ? `: ${cause.message}` : ""}`

/** What happened: the tags and sentences of expected errors, and of all others the stack. */
const happened = (cause: Cause.Cause<unknown>): string => {
  const failures = Chunk.toReadonlyArray(Cause.failures(cause))
  return failures.length > 0 && failures.every(isExpected) && Chunk.isEmpty(Cause.defects(cause))
    ? [...new Set(failures.map(told))].join("; ")
    : Cause.pretty(cause, { renderErrorCause: true })
}

/** The message and the cause, without secrets. */
const wordsOf = ({ cause, logLevel, message }: Logger.Logger.Options<unknown>, secrets: ReadonlyArray<string>) => {
  // A failure may quote a key that no variable holds. To look for one costs more than the line of a request.
  const isTrouble = LogLevel.greaterThanEqual(logLevel, LogLevel.Warning)
  const clean = (text: string) => {
    const known = withoutSecrets(text, secrets)
    return isTrouble ? redactSecrets(known) : known
  }
  return {
    words: oneLine(clean((Array.isArray(message) ? message : [message]).map(said).join(": ")), most.message),
    why: Cause.isEmpty(cause) ? undefined : clean(happened(cause)).slice(0, most.cause)
  }
}

/** The entry for another log, without anything that must not leave the machine. */
export const cleaned =
  (secrets: ReadonlyArray<string>) =>
  (entry: Logger.Logger.Options<unknown>): Logger.Logger.Options<unknown> => {
    const { why, words } = wordsOf(entry, secrets)
    const annotations = HashMap.map(entry.annotations, (value) => withoutSecrets(said(value), secrets))
    return {
      ...entry,
      message: words,
      cause: Cause.empty,
      annotations: why === undefined ? annotations : HashMap.set(annotations, "cause", visible(why))
    }
  }

export const logLine = (
  entry: Logger.Logger.Options<unknown>,
  format: Format,
  secrets: ReadonlyArray<string>
): string => {
  const { annotations, date, logLevel } = entry
  const { why, words } = wordsOf(entry, secrets)
  const clean = (text: string, length: number) => oneLine(withoutSecrets(text, secrets), length)
  const { sessionID, ...noted } = Object.fromEntries(HashMap.toEntries(annotations))
  const level = names[logLevel.label] ?? logLevel.label.toLowerCase()
  const rest = Object.entries(noted).map(([name, value]) => [oneLine(name, 80), clean(said(value), 400)] as const)
  const session = sessionID === undefined ? undefined : clean(said(sessionID), 200)
  if (format === "json") {
    const fields = {
      time: date.toISOString(),
      level,
      message: words,
      ...(session === undefined ? {} : { session }),
      ...(why === undefined ? {} : { cause: why }),
      ...(rest.length === 0 ? {} : { annotations: Object.fromEntries(rest) })
    }
    return `${escaped(JSON.stringify(fields))}\n`
  }
  const parts = [
    `${date.toISOString()} ${level.padEnd(7)} ${words}`,
    ...(session === undefined ? [] : [`session=${session}`]),
    ...rest.map(([name, value]) => `${name}=${value}`),
    ...(why === undefined ? [] : [`cause=${JSON.stringify(oneLine(why, most.cause))}`])
  ]
  return `${parts.join(" ")}\n`
}

export type Level = keyof typeof levels | "none"

export const layer = (format: Format, given: Level | undefined) => {
  const { stderr } = standard()
  const level = given ?? (stderr.terminal ? "warning" : "info")
  if (level === "none") return Layer.empty
  const secrets = secretsOf(process.env)
  // A log that cannot be written does not stop the server.
  const logger = Logger.make((entry) => stderr.write(logLine(entry, format, secrets), () => undefined))
  return Layer.merge(Logger.add(logger), Logger.minimumLogLevel(levels[level]))
}

/** Bytes that one host writes. */
const mostLogged = 1_048_576

/** A logger that writes whole lines until the first one that exceeds the limit. */
export const limited = (write: (line: string) => void, most: number = mostLogged): Layer.Layer<never> =>
  Layer.suspend(() => {
    const secrets = secretsOf(process.env)
    let left = most
    const logger = Logger.make((entry) => {
      const line = logLine(entry, "text", secrets)
      left -= Buffer.byteLength(line)
      if (left >= 0) write(line)
    })
    return Layer.merge(Logger.add(logger), Logger.minimumLogLevel(LogLevel.Warning))
  })
