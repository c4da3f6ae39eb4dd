/**
 * Reads the delay that a provider asks for, from the headers, the body and the text of its answer. `ProviderStream.ts`
 * decides whether to wait for the delay. Pure. Spec: MD-35, MD-687, MD-783 in specs/models.md.
 */
import { Predicate } from "effect"

/** A delay in milliseconds, or its end in milliseconds since the epoch if the response has no `date` header. */
export interface Wait {
  readonly retryAfterMs?: number
  readonly retryAtMs?: number
}

/** The answer as far as it is known. */
export interface Answer {
  readonly headers: Readonly<Record<string, unknown>> | undefined
  readonly status: number | undefined
  /** The decoded body, or the value of an error part. */
  readonly body: unknown
  readonly text: string
}

/**
 * The delay that the provider asks for: `retry-after-ms`, else `retry-after`, else a field of the body, else the words,
 * else, after a 429, the latest reset of an exhausted rate limit. Invalid values are ignored.
 */
export const retryWait = ({ body, headers, status, text }: Answer): Wait => {
  const all = new Map(
    Object.entries(headers ?? {}).flatMap(([name, value]) =>
      Predicate.isString(value) ? [[name.toLowerCase(), value.trim()] as const] : []
    )
  )
  const named = namedIn(all)
  if (named !== undefined) return named
  const told = isRejected(status) ? undefined : (fieldIn(body) ?? wordsIn(text))
  return told ?? (status === 429 ? latestReset(all) : {})
}

/** A request that is wrong: its body is about something else than a wait. */
const isRejected = (status: number | undefined): boolean =>
  status !== undefined && status >= 400 && status < 500 && ![408, 409, 425, 429].includes(status)

type Headers = ReadonlyMap<string, string>

const namedIn = (all: Headers): Wait | undefined => {
  const ms = amount(all.get("retry-after-ms"))
  if (ms !== undefined) return { retryAfterMs: Math.ceil(ms) }
  const after = all.get("retry-after")
  const delay = secondsOf(after)
  if (delay !== undefined) return { retryAfterMs: delay }
  const at = dateOf(after)
  return at === undefined ? undefined : until(all, at)
}

const until = (all: Headers, at: number): Wait => {
  const date = dateOf(all.get("date"))
  return date === undefined ? { retryAtMs: at } : { retryAfterMs: Math.max(0, at - date) }
}

const latestReset = (all: Headers): Wait => {
  const resets = [...all].flatMap(([name, value]): ReadonlyArray<Wait> => {
    const left = all.get(name.replace("reset", "remaining"))
    if (
      !/^(?:x-|anthropic-)?ratelimit-(?:[\w-]+-)?reset(?:-[\w-]+)?$/.test(name) ||
      (left !== undefined && left !== "0")
    )
      return []
    const wait = resetOf(value)
    return wait === undefined ? [] : [wait.retryAtMs === undefined ? wait : until(all, wait.retryAtMs)]
  })
  resets.push(...exhausted(all.get("ratelimit") ?? ""))
  // Dates and durations are comparable only if the response has a date.
  const longest = (key: keyof Wait) => resets.reduce((most, wait) => Math.max(most, wait[key] ?? -1), -1)
  const [afterMs, atMs] = [longest("retryAfterMs"), longest("retryAtMs")]
  return afterMs >= 0 ? { retryAfterMs: afterMs } : atMs >= 0 ? { retryAtMs: atMs } : {}
}

/** The limits with nothing left in the header of the IETF's drafts: `"hour";r=0;t=1724`, `limit=9, remaining=0, reset=50`. */
const exhausted = (header: string): ReadonlyArray<Wait> =>
  [...header.matchAll(/\b(?:r|remaining)=0\b[^"]*?\b(?:t|reset)=(\d+)/g)].map(([, seconds = ""]) => ({
    retryAfterMs: Number(seconds) * 1000
  }))

/** A rate limit reset: a duration as `6m0.5s`, seconds, seconds or milliseconds since the epoch, or a date. */
const resetOf = (text: string): Wait | undefined => {
  const count = amount(text)
  // No delay is thirty years: larger numbers are timestamps.
  if (count !== undefined && count > 1e9) return { retryAtMs: count > 1e11 ? count : count * 1000 }
  const delay = secondsOf(text)
  if (delay !== undefined) return { retryAfterMs: delay }
  const at = dateOf(text)
  return at === undefined ? undefined : { retryAtMs: at }
}

/** Fields of a body that name a delay, with their unit in milliseconds. */
const fields: ReadonlyMap<string, number> = new Map([
  ["retry_after_ms", 1],
  ["retryAfterMs", 1],
  ["retry_after", 1000],
  ["retryAfter", 1000],
  ["retry_after_seconds", 1000],
  ["retryDelay", 1000],
  // Codex, and gateways to several accounts.
  ["resets_in_seconds", 1000],
  ["reset_seconds", 1000],
  // A model that is being loaded.
  ["estimated_time", 1000]
])

/** Fields that name the end of a delay: seconds or milliseconds since the epoch. */
const ends: ReadonlySet<string> = new Set(["resets_at", "reset_at"])

const deepest = 6

/**
 * The first delay that a field names: Gemini's `RetryInfo` is among the details of the error, OpenRouter repeats the headers of the
 * server behind it.
 */
const fieldIn = (value: unknown, depth = 0): Wait | undefined => {
  if (!Predicate.isRecord(value) && !Array.isArray(value)) return undefined
  const entries: ReadonlyArray<readonly [string, unknown]> = Object.entries(value).slice(0, 100)
  for (const [name, field] of entries) {
    const unit = fields.get(name)
    const delay = unit === undefined ? undefined : delayOf(field, unit)
    if (delay !== undefined) return { retryAfterMs: delay }
  }
  for (const [name, field] of entries) {
    const end = ends.has(name) ? resetOf(String(field)) : undefined
    if (end !== undefined) return end
  }
  if (depth === deepest) return undefined
  for (const [name, inner] of entries) {
    const wait = name === "headers" ? repeated(inner) : fieldIn(inner, depth + 1)
    if (wait !== undefined) return wait
  }
  return undefined
}

/** The delay that headers within a body name. */
const repeated = (headers: unknown): Wait | undefined => {
  if (!Predicate.isRecord(headers)) return undefined
  const all = new Map(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), String(value)]))
  const wait = namedIn(all) ?? latestReset(all)
  return Object.keys(wait).length === 0 ? undefined : wait
}

/** A number in this unit, a duration, or Google's `{ seconds, nanos }`. */
const delayOf = (field: unknown, unit: number): number | undefined => {
  if (Predicate.isRecord(field)) {
    const [seconds, nanos] = [amount(String(field["seconds"])), amount(String(field["nanos"] ?? 0))]
    return seconds === undefined ? undefined : Math.ceil(seconds * 1000 + (nanos ?? 0) / 1e6)
  }
  const text = Predicate.isNumber(field) ? String(field) : Predicate.isString(field) ? field.trim() : undefined
  const count = amount(text)
  return count === undefined ? durationOf(text) : Math.ceil(count * unit)
}

const units = "milliseconds?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|h|days?|d"
const durations = `(?:\\d+(?:\\.\\d+)? ?(?:${units})(?![a-z])(?:,? (?:and )?)?)+`
const compact = `(?:\\d+(?:\\.\\d+)?(?:ms|s|m|h|d))+(?![a-z])`
/** A duration after a word about a new attempt, in the same sentence: `try again in 1m12.5s`. */
const advice = new RegExp(
  `(?:again|retry(?:ing)?|wait|resets?|available|ready|accepted)\\b[^.\\n]{0,40}?\\b(?:in|after|for|wait)(?: about)? (${compact}|${durations})`,
  "i"
)
const plainWait = new RegExp(`\\b(?:please )?wait (${compact}|${durations})`, "i")

/** Seconds without their unit, or a field of Google's in the words of a gateway. */
const bareWait = /\bretry[- ]?after:? (\d+)(?![\d.]*\s?[a-z%])|retryDelay\W{1,6}(\d+(?:\.\d+)?)s/i
const chineseWait = /(?:等待|重试|再试)\D{0,6}(\d+) ?(秒|分钟|小时)|(\d+) ?(秒|分钟|小时)钟?[之以]?后/
const chineseUnits: ReadonlyMap<string | undefined, string> = new Map([
  ["秒", "s"],
  ["分钟", "m"],
  ["小时", "h"]
])
/** The end of a delay with its zone, or since the epoch. */
const endWords = /\bresets?(?: at)? (\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:?\d\d)|\d{10}(?:\d{3})?\b)/i

/** The delay that the words name, or its end. */
const wordsIn = (text: string): Wait | undefined => {
  const [, seconds, field] = bareWait.exec(text) ?? []
  const [, before, beforeUnit, after = before, afterUnit = beforeUnit] = chineseWait.exec(text) ?? []
  const delay =
    durationOf((advice.exec(text) ?? plainWait.exec(text))?.[1]) ??
    secondsOf(seconds ?? field) ??
    durationOf(`${after}${chineseUnits.get(afterUnit)}`)
  return delay === undefined ? resetOf(endWords.exec(text)?.[1] ?? "") : { retryAfterMs: delay }
}

const unitMs: ReadonlyArray<readonly [RegExp, number]> = [
  [/^(?:ms|milli)/i, 1],
  [/^s/i, 1000],
  [/^m/i, 60_000],
  [/^h/i, 3_600_000],
  [/^d/i, 86_400_000]
]

/** A duration as `1m12.5s` or `1 minute 5 seconds`, in milliseconds. */
const durationOf = (text: string | undefined): number | undefined => {
  if (text === undefined || !new RegExp(`^(?:${compact}|${durations})$`, "i").test(text.trim())) return undefined
  const parts = [...text.matchAll(/(\d+(?:\.\d+)?) ?([a-z]+)/gi)]
  const total = parts.reduce(
    (sum, [, count, unit = ""]) => sum + Number(count) * (unitMs.find(([name]) => name.test(unit))?.[1] ?? 0),
    0
  )
  return Math.ceil(Math.min(total, Number.MAX_SAFE_INTEGER))
}

/** Plain seconds, or a duration with its unit. */
const secondsOf = (text: string | undefined): number | undefined => {
  const seconds = amount(text)
  return seconds === undefined ? durationOf(text) : Math.ceil(seconds * 1000)
}

/** A non-negative decimal, capped at 2^53 / 1000, so that sums stay safe integers. */
const amount = (text: string | undefined): number | undefined =>
  text !== undefined && /^\d+(?:\.\d+)?$/.test(text)
    ? Math.min(Number(text), Math.floor(Number.MAX_SAFE_INTEGER / 1000))
    : undefined

/** A date in one of HTTP's three forms or in RFC 3339; `Date.parse` alone would accept `-5`. */
const dateOf = (text: string | undefined): number | undefined => {
  if (text === undefined || !/^(?:(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*,? |\d{4}-\d\d-\d\d[T ])/i.test(text))
    return undefined
  // The oldest form names no zone and means GMT.
  const at = Date.parse(/^[a-z]{3} .*\d{4}$/i.test(text) ? `${text} GMT` : text)
  return Number.isFinite(at) ? at : undefined
}
