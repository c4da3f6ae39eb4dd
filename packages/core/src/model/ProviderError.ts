/**
 * What a provider's failure means to the runtime: may it be tried again, after how long, is the context too long, and
 * what may be shown and stored. A pure function over `@effect/ai` errors and the unknown values of error parts; it
 * decides nothing about retries itself. Spec: MD-30..MD-35 in specs/models.md.
 */
import { AiError } from "@effect/ai"
import { Predicate } from "effect"

/** A provider failure, safe to store and show: no credential, bounded. */
export interface ProviderFailure {
  /** One sentence for a person. */
  readonly message: string
  /** Whether the same request may succeed later. Never true together with `overflow`. */
  readonly retryable: boolean
  /** Whether the request was too long for the model's context window. */
  readonly overflow: boolean
  readonly statusCode?: number
  /** How long the provider asks to wait. */
  readonly retryAfterMs?: number
  /** Only headers that help to understand the failure (request ids, rate limits). */
  readonly responseHeaders?: Readonly<Record<string, string>>
  /** The start of the response body. */
  readonly responseBody?: string
}

const maxBodyChars = 4096
const maxMessageChars = 1000

/** Says what an `AiError` of a failed request, or the `error` of a stream's error part, means (MD-30). */
export const classifyError = (error: unknown): ProviderFailure => {
  const facts = factsOf(error, 0)
  const text = [facts.detail, facts.body, facts.code].filter(Predicate.isString).join("\n")
  const overflow = isOverflow(facts, text)
  const status = facts.status
  const headers = allowedHeaders(facts.headers)
  const retryAfterMs = retryAfter(facts.headers)
  const retryable = !overflow && isRetryable(facts, text)
  return {
    message: messageOf(facts),
    retryable,
    overflow,
    ...(status === undefined ? {} : { statusCode: status }),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    ...(headers === undefined ? {} : { responseHeaders: headers }),
    ...(facts.body === undefined ? {} : { responseBody: bounded(redactSecrets(facts.body), maxBodyChars) })
  }
}

/** Replaces what looks like a credential by `<redacted>`; `known` values are replaced wherever they occur (MD-34). */
export const redactSecrets = (text: string, known: ReadonlyArray<string> = []): string =>
  known
    .filter((secret) => secret.length >= 4)
    .reduce((rest, secret) => rest.replaceAll(secret, "<redacted>"), text)
    .replaceAll(/\b(?:sk|rk|pk|gsk|xai|key)-[\w*.-]{6,}/g, "<redacted>")
    .replaceAll(/\bAIza[\w-]{20,}/g, "<redacted>")
    .replaceAll(/\b(Bearer|Basic)\s+[\w.~+/=*-]{6,}/gi, "$1 <redacted>")

/** What is known of a failure, whatever form it came in. */
interface Facts {
  readonly detail?: string
  readonly body?: string
  /** The provider's own kind of error: `overloaded_error`, `context_length_exceeded`, `ECONNRESET`. */
  readonly code?: string
  readonly status?: number
  readonly headers?: Readonly<Record<string, unknown>>
  readonly host?: string
  /** The connection broke or never stood; or the request could not be made at all. */
  readonly transport?: boolean
}

const maxDepth = 6

const factsOf = (error: unknown, depth: number): Facts => {
  if (AiError.isAiError(error)) return factsOfAiError(error, depth)
  if (Predicate.isString(error)) return factsOfText(error)
  if (!Predicate.isRecord(error) || depth > maxDepth) return {}
  // An AI SDK APICallError, a provider's error object, an event that holds one, or any Error.
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
      host: hostOf(error["url"])
    }),
    ...nested,
    ...(body === undefined ? {} : { body })
  }
}

const factsOfAiError = (error: AiError.AiError, depth: number): Facts => {
  switch (error._tag) {
    case "HttpRequestError":
      return defined({
        detail: error.description ?? factsOf(error.cause, depth + 1).detail ?? reasons[error.reason],
        code: factsOf(error.cause, depth + 1).code,
        host: hostOf(error.request.url),
        transport: error.reason === "Transport"
      })
    case "HttpResponseError": {
      const body = error.body === undefined || error.body === "undefined" ? undefined : unquote(error.body)
      const fromBody = body === undefined || error.reason !== "StatusCode" ? {} : factsOfText(body)
      return defined({
        detail: fromBody.detail ?? (error.reason === "StatusCode" ? undefined : broken),
        code: fromBody.code,
        status: error.response.status,
        headers: error.response.headers,
        host: hostOf(error.request.url),
        // A good status whose body could not be read to its end: the connection broke.
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

/** A body that is text, not JSON, is held as a JSON string literal by `@effect/ai`. */
const unquote = (body: string): string => {
  const json = body.startsWith('"') ? parseJson(body) : undefined
  return Predicate.isString(json) ? json : body
}

/** Gateways answer with pages; their title says as much as a person needs. */
const htmlTitle = (page: string): string =>
  /<title[^>]*>([^<]{1,200})/i.exec(page.slice(0, 10_000))?.[1]?.trim() ?? "the answer is a page and not an API's"

const parseJson = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The wordings of context overflow: Anthropic, OpenAI, llama.cpp, vLLM, Ollama, and servers that follow them. */
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

/** Statuses that say something else, whatever words come with them: a token rate limit is no overflow. */
const notOverflow: ReadonlySet<number> = new Set([401, 402, 403, 404, 429])

const isOverflow = (facts: Facts, text: string): boolean =>
  !(facts.status !== undefined && notOverflow.has(facts.status)) &&
  !/rate_limit/i.test(facts.code ?? "") &&
  overflowWordings.some((wording) => wording.test(text))

const retryableCodes =
  /overloaded|rate_limit|incomplete_response|^api_error$|server_error|internal_error|timeout|unavailable|^(?:ECONN\w+|ETIMEDOUT|EPIPE|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|EAI_AGAIN|UND_ERR_\w+)$/i
const transportWords =
  /fetch failed|socket hang up|other side closed|^terminated$|network error|connection (?:reset|refused|closed)/i

const isRetryable = (facts: Facts, text: string): boolean => {
  if (facts.transport === true) return true
  // An account without money is refused with 429 as well, and waiting does not help.
  if (/insufficient_quota|billing_hard_limit/i.test(text)) return false
  const status = facts.status
  if (status !== undefined && status >= 400) return status === 408 || status === 429 || status >= 500
  if (facts.transport === false) return false
  return retryableCodes.test(facts.code ?? "") || transportWords.test(facts.detail ?? "")
}

const messageOf = (facts: Facts): string => {
  const where = facts.host === undefined ? "the provider" : facts.host
  const status = facts.status !== undefined && facts.status >= 400 ? ` answered HTTP ${facts.status}` : ""
  const detail = facts.detail ?? facts.code ?? (facts.body === undefined ? "no further details" : facts.body)
  return bounded(redactSecrets(`${where}${status}: ${detail.trim()}`), maxMessageChars)
}

const shownHeaders =
  /^(?:retry-after|retry-after-ms|content-type|date|request-id|x-request-id|cf-ray|anthropic-ratelimit-[\w-]+|x-ratelimit-[\w-]+)$/

const allowedHeaders = (headers: Facts["headers"]): Record<string, string> | undefined => {
  const shown: Record<string, string> = {}
  for (const [name, value] of Object.entries(headers ?? {})) {
    const key = name.toLowerCase()
    if (Predicate.isString(value) && shownHeaders.test(key)) shown[key] = bounded(redactSecrets(value), 256)
  }
  return Object.keys(shown).length === 0 ? undefined : shown
}

/** `retry-after-ms`, or `retry-after` in seconds or as a date, read against the response's own `date`. */
const retryAfter = (headers: Facts["headers"]): number | undefined => {
  const get = (name: string) =>
    string(Object.entries(headers ?? {}).find(([key]) => key.toLowerCase() === name)?.[1])?.trim()
  const ms = number(get("retry-after-ms"))
  if (ms !== undefined) return ms
  const after = get("retry-after")
  const seconds = number(after)
  if (seconds !== undefined) return Math.round(seconds * 1000)
  const wait = Date.parse(after ?? "") - Date.parse(get("date") ?? "")
  return Number.isFinite(wait) ? Math.max(0, wait) : undefined
}

const number = (text: string | undefined): number | undefined => {
  const value = text === undefined || text === "" ? Number.NaN : Number(text)
  return Number.isFinite(value) && value >= 0 ? value : undefined
}

const string = (value: unknown): string | undefined => (Predicate.isString(value) && value !== "" ? value : undefined)

const httpStatus = (value: unknown): number | undefined => {
  const status = Predicate.isString(value) && /^\d{3}$/.test(value) ? Number(value) : value
  return Predicate.isNumber(status) && Number.isInteger(status) && status >= 100 && status < 600 ? status : undefined
}

/** Only the host: an address may carry a key in its query or user part. */
const hostOf = (url: unknown): string | undefined => {
  if (!Predicate.isString(url) || !URL.canParse(url)) return undefined
  return new URL(url).host
}

const bounded = (text: string, max: number): string =>
  text.length <= max ? text : `${text.slice(0, max)}… (${text.length} characters)`

/** Leaves out what is undefined, as `exactOptionalPropertyTypes` asks for. */
const defined = <A extends object>(fields: A): { [K in keyof A]?: Exclude<A[K], undefined> } =>
  // `Object.fromEntries` forgets the keys' types.
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as {
    [K in keyof A]?: Exclude<A[K], undefined>
  }
