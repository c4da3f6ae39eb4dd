/**
 * Classifies provider failures: retryable or not, the requested delay, context overflow, and what may be shown and
 * stored. Pure, over `@effect/ai` errors and the unknown values of error parts; retries are decided elsewhere. Spec:
 * MD-30..MD-35 in specs/models.md.
 */
import * as AiError from "@effect/ai/AiError"
import { Predicate } from "effect"
import { redactSecrets } from "@daybook/log/support/Redaction"
import { type RejectedContent, rejectedContent } from "./ContentRejection.ts"

/** A provider failure that is safe to store and show: without credentials, bounded. */
export interface ProviderFailure {
  /** One sentence for people. */
  readonly message: string
  /** Whether the same request may succeed later. Never true together with `overflow`. */
  readonly retryable: boolean
  /** Whether the request exceeded the model's context window. */
  readonly overflow: boolean
  /** Which content of the request the provider rejected, if that is why it failed. Never together with `overflow`. */
  readonly content?: RejectedContent
  /** The provider did not start on the request: it rejected it, or was not reached. */
  readonly refused: boolean
  readonly statusCode?: number
  /** The delay that the provider asks for, in milliseconds. */
  readonly retryAfterMs?: number
  /**
   * The end of the requested delay, in milliseconds since the epoch: from a date, when the response has no `date`
   * header.
   */
  readonly retryAtMs?: number
  /** Only headers useful for diagnosis (request ids, rate limits). */
  readonly responseHeaders?: Readonly<Record<string, string>>
  /** The start of the response body. */
  readonly responseBody?: string
}

const maxBodyChars = 4096
const maxMessageChars = 1000

/**
 * Classifies an `AiError` of a failed request, or the `error` of a stream's error part (MD-30). `modelID` is the model
 * of the request.
 */
export const classifyError = (error: unknown, modelID?: string): ProviderFailure => {
  const facts = factsOf(error, 0)
  const text = [facts.detail, facts.body, facts.code].filter(Predicate.isString).join("\n")
  const overflow = isOverflow(facts, text)
  const status = facts.status
  const headers = allowedHeaders(facts.headers)
  const wait = retryWait(facts)
  const content = overflow ? undefined : rejectedContent(status, text)
  const retryable = !overflow && content === undefined && isRetryable(facts, text)
  return {
    message: messageOf(facts, modelID),
    retryable,
    overflow,
    refused:
      overflow ||
      (status !== undefined && status >= 400) ||
      facts.transport === "unsent" ||
      facts.code === "redirect_refused" ||
      unreached.test(facts.code ?? ""),
    ...(content === undefined ? {} : { content }),
    ...(status === undefined ? {} : { statusCode: status }),
    ...wait,
    ...(headers === undefined ? {} : { responseHeaders: headers }),
    ...(facts.body === undefined ? {} : { responseBody: bounded(redactSecrets(facts.body), maxBodyChars) })
  }
}

/** Normalized facts about a failure. */
interface Facts {
  readonly detail?: string
  readonly body?: string
  /** The provider's error code: `overloaded_error`, `context_length_exceeded`, `ECONNRESET`. */
  readonly code?: string
  readonly status?: number
  readonly headers?: Readonly<Record<string, unknown>>
  readonly host?: string
  readonly path?: string
  /** True if the connection failed; "unsent" if the request could not be made. */
  readonly transport?: boolean | "unsent"
}

const maxDepth = 6

const factsOf = (error: unknown, depth: number): Facts => {
  if (AiError.isAiError(error)) return factsOfAiError(error, depth)
  if (Predicate.isString(error)) return factsOfText(error)
  if (!Predicate.isRecord(error) || depth > maxDepth) return {}
  // An AI SDK APICallError, a provider's error object, an event that contains one, or any Error.
  const inner = Predicate.isRecord(error["error"]) || Predicate.isString(error["error"]) ? error["error"] : undefined
  const nested = inner === undefined ? {} : factsOf(inner, depth + 1)
  const cause = error["cause"] === undefined ? {} : factsOf(error["cause"], depth + 1)
  const body = string(error["responseBody"])
  const fromBody = body === undefined ? {} : factsOfText(body)
  const status = [error["statusCode"], error["status"], error["code"]].map(httpStatus).find(Predicate.isNotUndefined)
  return {
    ...cause,
    ...fromBody,
    ...defined({
      status,
      detail: fromBody.detail ?? string(error["message"]) ?? string(error["detail"]),
      code: string(error["code"]) ?? fromBody.code ?? cause.code ?? string(error["type"]),
      headers: Predicate.isRecord(error["responseHeaders"]) ? error["responseHeaders"] : undefined,
      ...addressOf(error["url"])
    }),
    ...nested,
    ...(body === undefined ? {} : { body })
  }
}

/** A refusal by Daybook itself, anywhere in the chain of causes. */
const refusalOf = (error: unknown, depth: number): Facts | undefined => {
  if (!Predicate.isRecord(error) || depth > maxDepth) return undefined
  const [code, detail] = [string(error["code"]), string(error["message"])]
  return code !== undefined && detail !== undefined && final.has(code)
    ? { code, detail, transport: false }
    : refusalOf(error["cause"], depth + 1)
}

const factsOfAiError = (error: AiError.AiError, depth: number): Facts => {
  const refusal = refusalOf(error, depth)
  if (refusal !== undefined) return refusal
  switch (error._tag) {
    case "HttpRequestError":
      return defined({
        detail: error.description ?? factsOf(error.cause, depth + 1).detail ?? reasons[error.reason],
        code: factsOf(error.cause, depth + 1).code,
        ...addressOf(error.request.url),
        transport: error.reason === "Transport" || "unsent"
      })
    case "HttpResponseError": {
      const body = error.body === undefined || error.body === "undefined" ? undefined : unquote(error.body)
      const fromBody = body === undefined || error.reason !== "StatusCode" ? {} : factsOfText(body)
      return defined({
        detail: fromBody.detail ?? (error.reason === "StatusCode" ? undefined : broken),
        code: fromBody.code,
        status: error.response.status,
        headers: error.response.headers,
        ...addressOf(error.request.url),
        // A success status whose body is incomplete: the connection broke.
        transport: error.reason !== "StatusCode",
        body: error.reason === "StatusCode" ? body : undefined
      })
    }
    case "MalformedInput":
    case "MalformedOutput":
      return {
        ...defined({ code: error._tag, detail: error.description ?? factsOf(error.cause, depth + 1).detail }),
        transport: false
      }
    case "UnknownError": {
      const cause = factsOf(error.cause, depth + 1)
      return { ...cause, ...defined({ detail: cause.detail ?? error.description }) }
    }
  }
}

const broken = "the response ended before it was complete"
const reasons = {
  Transport: "the connection failed",
  Encode: "the request could not be encoded",
  InvalidUrl: "the address is not a valid URL"
} as const

/** Reads `{"error": {"message", "type", "code"}}`, `{"error": "..."}`, `{"message"}`, `{"detail"}`, or plain text. */
const factsOfText = (text: string): Facts => {
  const json = parseJson(text)
  if (!Predicate.isRecord(json)) {
    const plain = /^\s*</.test(text) ? htmlTitle(text) : text.trim()
    return plain === "" ? {} : { detail: plain }
  }
  const error = Predicate.isRecord(json["error"]) ? json["error"] : json
  return defined({
    detail: string(error["message"]) ?? string(json["error"]) ?? string(json["detail"]),
    code: string(error["code"]) ?? string(error["type"])
  })
}

/** `@effect/ai` holds a non-JSON body as a JSON string literal. */
const unquote = (body: string): string => {
  const json = body.startsWith('"') ? parseJson(body) : undefined
  return Predicate.isString(json) ? json : body
}

/** Gateways return HTML pages; their title is the useful part. */
const htmlTitle = (page: string): string =>
  /<title[^>]*>([^<]{1,200})/i.exec(page.slice(0, 10_000))?.[1]?.trim() ??
  "the answer is an HTML page, not an API response"

const parseJson = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Wordings of context overflow: Anthropic, OpenAI, llama.cpp, vLLM, Ollama, and compatible servers. */
const overflowWordings = [
  /prompt is too long/i,
  /exceed(?:s|ed)? (?:the )?context (?:limit|window|length|size)/i,
  /context_length_exceeded|exceed_context_size_error|model_context_window_exceeded|request_too_large/i,
  /exceeds? the (?:available )?context (?:size|window|length)/i,
  /maximum (?:context|model|prompt) length/i,
  /input length exceeds/i,
  /exceeded (?:max )?context length/i,
  /greater than the context length/i,
  /reduce the length of the (?:messages|prompt|input)/i,
  /input (?:prompt )?.{0,40}is too long/i,
  /input token count .{0,60}exceeds the maximum/i
]

/** Statuses that rule out overflow, whatever the text says: a token rate limit is not an overflow. */
const notOverflow: ReadonlySet<number> = new Set([401, 402, 403, 404, 429])

const isOverflow = (facts: Facts, text: string): boolean =>
  !(facts.status !== undefined && notOverflow.has(facts.status)) &&
  !/rate_limit/i.test(facts.code ?? "") &&
  overflowWordings.some((wording) => wording.test(text))

const retryableCodes =
  /overloaded|rate_limit|incomplete_response|^api_error$|server_error|internal_error|timeout|unavailable|^(?:ECONN\w+|ETIMEDOUT|EPIPE|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|EAI_AGAIN|UND_ERR_\w+)$/i
/** Refusals by Daybook itself: a retry would fail the same way. */
const final: ReadonlySet<string> = new Set(["redirect_refused", "answer_too_large"])
const unreached = /^(?:ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|EAI_AGAIN|UND_ERR_CONNECT_TIMEOUT)$/i
const transportWords =
  /fetch failed|socket hang up|other side closed|^terminated$|network error|connection (?:reset|refused|closed)/i

const isRetryable = (facts: Facts, text: string): boolean => {
  if (final.has(facts.code ?? "")) return false
  if (facts.transport === true) return true
  // An account without credit also gets 429, and waiting does not help.
  if (/insufficient_quota|billing_hard_limit/i.test(text)) return false
  const status = facts.status
  if (status !== undefined && status >= 400) return status === 408 || status === 429 || status >= 500
  if (facts.transport === false || facts.transport === "unsent") return false
  return retryableCodes.test(facts.code ?? "") || transportWords.test(facts.detail ?? "")
}

const messageOf = (facts: Facts, modelID: string | undefined): string => {
  // Either the path or the model is wrong, so the message names both.
  const absent = facts.status === 404
  const where = facts.host === undefined ? "the provider" : `${facts.host}${absent ? (facts.path ?? "") : ""}`
  const asked = absent && modelID !== undefined ? ` to a request for the model ${modelID}` : ""
  const status = facts.status !== undefined && facts.status >= 400 ? ` answered HTTP ${facts.status}${asked}` : ""
  const detail = facts.detail ?? facts.code ?? (facts.body === undefined ? "no further details" : facts.body)
  return bounded(redactSecrets(`${where}${status}: ${detail.trim()}`), maxMessageChars)
}

const shownHeaders =
  /^(?:retry-after|retry-after-ms|content-type|date|request-id|x-request-id|cf-ray|(?:anthropic-|x-)?ratelimit-[\w-]+)$/

const allowedHeaders = (headers: Facts["headers"]): Record<string, string> | undefined => {
  const shown: Record<string, string> = {}
  for (const [name, value] of Object.entries(headers ?? {})) {
    const key = name.toLowerCase()
    if (Predicate.isString(value) && shownHeaders.test(key)) shown[key] = bounded(redactSecrets(value), 256)
  }
  return Object.keys(shown).length === 0 ? undefined : shown
}

type Wait = Pick<ProviderFailure, "retryAfterMs" | "retryAtMs">

/**
 * The delay that the provider asks for: `retry-after-ms`, else `retry-after`, else, after a 429, the latest reset of an
 * exhausted rate limit. Invalid values are ignored (MD-35).
 */
const retryWait = ({ headers, status }: Facts): Wait => {
  const all = new Map(
    Object.entries(headers ?? {}).flatMap(([name, value]) =>
      Predicate.isString(value) ? [[name.toLowerCase(), value.trim()] as const] : []
    )
  )
  const date = dateOf(all.get("date"))
  const until = (at: number): Wait =>
    date === undefined ? { retryAtMs: at } : { retryAfterMs: Math.max(0, at - date) }
  const ms = amount(all.get("retry-after-ms"))
  if (ms !== undefined) return { retryAfterMs: Math.ceil(ms) }
  const after = all.get("retry-after")
  const seconds = amount(after)
  if (seconds !== undefined) return { retryAfterMs: Math.ceil(seconds * 1000) }
  const at = dateOf(after)
  if (at !== undefined) return until(at)
  if (status !== 429) return {}
  const resets = [...all].flatMap(([name, value]): ReadonlyArray<Wait> => {
    const left = all.get(name.replace("reset", "remaining"))
    if (
      !/^(?:x-|anthropic-)?ratelimit-(?:[\w-]+-)?reset(?:-[\w-]+)?$/.test(name) ||
      (left !== undefined && left !== "0")
    )
      return []
    const wait = resetOf(value)
    return wait === undefined ? [] : [wait.retryAtMs === undefined ? wait : until(wait.retryAtMs)]
  })
  // Dates and durations are comparable only if the response has a date.
  const longest = (key: keyof Wait) => resets.reduce((most, wait) => Math.max(most, wait[key] ?? -1), -1)
  const [afterMs, atMs] = [longest("retryAfterMs"), longest("retryAtMs")]
  return afterMs >= 0 ? { retryAfterMs: afterMs } : atMs >= 0 ? { retryAtMs: atMs } : {}
}

/** A rate limit reset: a duration as `6m0.5s`, seconds, seconds or milliseconds since the epoch, or a date. */
const resetOf = (text: string): Wait | undefined => {
  if (/^(?:\d+(?:\.\d+)?(?:ms|s|m|h|d))+$/.test(text)) {
    const parts = [...text.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h|d)/g)]
    const total = parts.reduce((sum, [, count, unit = ""]) => sum + Number(count) * (unitMs[unit] ?? 0), 0)
    return { retryAfterMs: Math.ceil(Math.min(total, Number.MAX_SAFE_INTEGER)) }
  }
  const count = amount(text)
  if (count === undefined) {
    const at = dateOf(text)
    return at === undefined ? undefined : { retryAtMs: at }
  }
  // No delay is thirty years: larger numbers are timestamps.
  if (count > 1e11) return { retryAtMs: count }
  return count > 1e9 ? { retryAtMs: count * 1000 } : { retryAfterMs: Math.ceil(count * 1000) }
}

const unitMs: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }

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

const string = (value: unknown): string | undefined => (Predicate.isString(value) && value !== "" ? value : undefined)

const httpStatus = (value: unknown): number | undefined => {
  const status = Predicate.isString(value) && /^\d{3}$/.test(value) ? Number(value) : value
  return Predicate.isNumber(status) && Number.isInteger(status) && status >= 100 && status < 600 ? status : undefined
}

/** Omits the query and the user of an address: they may contain a key. */
const addressOf = (url: unknown): Pick<Facts, "host" | "path"> => {
  if (!Predicate.isString(url) || !URL.canParse(url)) return {}
  const { host, pathname } = new URL(url)
  return { host, path: pathname }
}

const bounded = (text: string, max: number): string =>
  text.length <= max ? text : `${text.slice(0, max)}… (${text.length} characters)`

/** Drops undefined fields, as `exactOptionalPropertyTypes` requires. */
const defined = <A extends object>(fields: A): { [K in keyof A]?: Exclude<A[K], undefined> } =>
  // `Object.fromEntries` loses the keys' types.
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as {
    [K in keyof A]?: Exclude<A[K], undefined>
  }
