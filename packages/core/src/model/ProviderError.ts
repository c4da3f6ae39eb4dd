/**
 * Classifies provider failures: retryable or not, and what may be shown and stored. `RetryWait.ts` reads the
 * requested delay. Pure, over `@effect/ai` errors and the unknown values of
 * error parts; retries are decided elsewhere. Spec: MD-30..MD-35, MD-680..MD-689, MD-782, MD-789 in specs/models.md.
 */
import * as AiError from "@effect/ai/AiError"
import { Predicate } from "effect"
import { redactSecrets } from "@daybook/log/support/Redaction"
import { present } from "@daybook/log/support/Optional"
import { networkWords } from "@daybook/log/support/SystemError"
import { type RejectedContent, rejectedContent } from "./ContentRejection.ts"
import { exceedsRate, isOverflow } from "./Overflow.ts"
import { retryWait } from "./RetryWait.ts"

/** A provider failure that is safe to store and show: without credentials, bounded. */
export interface ProviderFailure {
  /** One sentence for people. */
  readonly message: string
  /** Whether the same request may succeed later. Never true together with `overflow`. */
  readonly retryable: boolean
  /** Whether the request exceeded the model's context window. */
  readonly overflow: boolean
  /** The server was not reached, or its answer broke off. Such a request is retried less often than an overload. */
  readonly unanswered?: true
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
  readonly responseBody?: string
}

const anyOf = (...words: ReadonlyArray<string>): string => `(?:${words.join("|")})`

const maxBodyChars = 4096
const maxMessageChars = 1000

/**
 * Classifies an `AiError` of a failed request, or the `error` of a stream's error part (MD-30). `modelID` is the model
 * of the request.
 */
export const classifyError = (error: unknown, modelID?: string): ProviderFailure => {
  const facts = factsOf(error, 0)
  const text = [facts.detail, facts.body, facts.code].filter(Predicate.isString).join("\n")
  const status = facts.status
  const words = facts.detail === undefined ? text : [facts.detail, facts.code].join("\n")
  const isFaulty = faulty.test(words)
  const overflow = !isFaulty && isOverflow({ status, code: facts.code, text, words })
  const headers = allowedHeaders(facts.headers)
  const body = facts.body === undefined ? (AiError.isAiError(error) ? undefined : error) : parseJson(facts.body)
  const content = overflow || isFaulty ? undefined : rejectedContent(status, words)
  const retryable = !overflow && content === undefined && (isFaulty || isRetryable(facts, text))
  return {
    message: messageOf(facts, modelID),
    retryable,
    overflow,
    ...(retryable && isUnanswered(facts) ? { unanswered: true } : {}),
    refused:
      overflow ||
      isAnswered(facts) ||
      facts.transport === "unsent" ||
      /^(?:redirect|proxy)_refused$/.test(facts.code ?? "") ||
      unreached.test(facts.code ?? ""),
    ...present({ content, statusCode: status }),
    ...retryWait({ headers: facts.headers, status, body, text }),
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
    ...present({
      status,
      detail: fromBody.detail ?? saidIn(error),
      code: codeOf(error["code"]) ?? fromBody.code ?? cause.code ?? string(error["type"]),
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
      return present({
        detail: error.description ?? factsOf(error.cause, depth + 1).detail ?? reasons[error.reason],
        code: factsOf(error.cause, depth + 1).code,
        ...addressOf(error.request.url),
        transport: error.reason === "Transport" || ("unsent" as const)
      })
    case "HttpResponseError": {
      const body = error.body === undefined || error.body === "undefined" ? undefined : unquote(error.body)
      const fromBody = body === undefined || error.reason !== "StatusCode" ? {} : factsOfText(body)
      return present({
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
        ...present({ code: error._tag, detail: error.description ?? factsOf(error.cause, depth + 1).detail }),
        transport: false
      }
    case "UnknownError": {
      const cause = factsOf(error.cause, depth + 1)
      return { ...cause, ...present({ detail: cause.detail ?? error.description }) }
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
  const parsed = parseJson(text)
  // Gemini's compatible API answers with a list of one.
  const json: unknown = Array.isArray(parsed) ? parsed[0] : parsed
  if (!Predicate.isRecord(json)) {
    const plain = /^\s*</.test(text) ? htmlTitle(text) : text.trim()
    return plain === "" ? {} : { detail: plain }
  }
  const error = Predicate.isRecord(json["error"]) ? json["error"] : json
  return present({
    detail: saidIn(error) ?? string(json["error"]) ?? saidIn(json),
    code: codeOf(error["code"]) ?? string(error["type"]) ?? string(error["status"])
  })
}

const wordFields = ["message", "msg", "detail", "details", "description", "error_msg", "Message", "errors", "error"]

/**
 * The words of an error under the names that servers give them, also in a list of errors. Gateways put the error of the server
 * behind them, as JSON, into a text: then its words are read.
 */
const saidIn = (value: unknown, depth = 0): string | undefined => {
  if (depth > maxDepth) return undefined
  if (Predicate.isString(value)) return saidIn(wrappedIn(value), depth + 1) ?? string(value)
  if (Array.isArray(value)) return value.map((one) => saidIn(one, depth + 1)).find(Predicate.isNotUndefined)
  if (!Predicate.isRecord(value)) return undefined
  const behind = Predicate.isRecord(value["metadata"]) ? saidIn(value["metadata"]["raw"], depth + 1) : undefined
  const { loc, msg } = value
  // FastAPI's place of a fault: `body.messages.2.content: field required`.
  if (Array.isArray(loc) && Predicate.isString(msg)) return `${loc.join(".")}: ${msg}`
  return behind ?? wordFields.map((name) => saidIn(value[name], depth + 1)).find(Predicate.isNotUndefined)
}

/** The JSON object or list that is a whole text. */
const wrappedIn = (text: string): unknown => (/^\s*[[{]/.test(text) ? parseJson(text) : undefined)

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

/** Faults of the server, or of what its model wrote, under the status of a wrong request: another attempt may succeed. */
const faulty =
  /tool_use_failed|output_parse_failed|unexpected EOF|model has crashed|model (?:was |is )?unloaded|^channel error|runner process has terminated|EngineDeadError|EngineCore|capacity_exceeded|(?:upstream|gateway) .{0,20}(?:timeout|timed out|unavailable)/i

const retryableCodes =
  /overloaded|rate_limit|throttl|too_?many_?requests|slow_down|resource_exhausted|upstream_error|incomplete_response|^api_error$|server_error|internal_error|timeout|unavailable/i
/** Refusals by Daybook itself, or by a proxy: a retry would fail the same way. */
const final: ReadonlySet<string> = new Set(["redirect_refused", "answer_too_large", "proxy_refused"])
const broke =
  /^(?:incomplete_response|ECONN\w+|ETIMEDOUT|EPIPE|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|EAI_AGAIN|UND_ERR_\w+)$/i
const unreached = /^(?:ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|EAI_AGAIN|UND_ERR_CONNECT_TIMEOUT)$/i
/** The connection cannot be made safe: another attempt would fail as well. */
const unsafe = /^(?:ERR_(?:SSL|TLS)_\w+|CERT_\w+|DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_\w+)$/
const transportWords =
  /fetch failed|socket hang up|other side closed|^terminated$|network error|connection (?:reset|refused|closed)/i

/** An account without credit, whatever the status. Gemini's "check your plan and billing" is also a limit per minute. */
const unpaid = new RegExp(
  anyOf(
    "insufficient[_ ](?:user_)?(?:quota|balance|credits?|funds)",
    "billing_(?:hard_limit|not_active)",
    "exceeded_current_quota_error",
    "access_terminated",
    "\\barrearage\\b",
    "payment required",
    "(?:no|not enough|out of|exceeded your monthly included) (?:credits|extra usage)",
    "(?:credit balance|credits|free tier)\\b.{0,40}(?:too low|exhausted|depleted)",
    "credit_balance_exhausted",
    "spending limit",
    "budget has been exceeded",
    "quota is not enough",
    "欠费|余额不足|剩余额度"
  ),
  "i"
)
/** z.ai's code for an account without credit. */
const zaiUnpaid = "1113"

/** Waiting does not help: the account has no credit, or the request exceeds a whole minute's allowance. */
const isHopeless = (facts: Facts, text: string): boolean =>
  unpaid.test(text) || facts.code === zaiUnpaid || exceedsRate(text)

const isRetryable = (facts: Facts, text: string): boolean => {
  if (final.has(facts.code ?? "") || unsafe.test(facts.code ?? "")) return false
  if (facts.transport === true) return true
  if (isHopeless(facts, text)) return false
  const status = facts.status
  if (status !== undefined && status >= 400) {
    const asked = headerOf(facts, "x-should-retry")
    if (asked === "true" || asked === "false") return asked === "true"
    // 499: a gateway says that the request was cancelled, which it was not here.
    return status === 408 || status === 429 || status >= 499
  }
  if (facts.transport === false || facts.transport === "unsent") return false
  return retryableCodes.test(facts.code ?? "") || isUnanswered(facts)
}

const headerOf = ({ headers }: Facts, name: string): unknown =>
  Object.entries(headers ?? {}).find(([each]) => each.toLowerCase() === name)?.[1]

const isAnswered = ({ status }: Facts): boolean => status !== undefined && status >= 400

/** The server was not reached, or its answer broke off. */
const isUnanswered = (facts: Facts): boolean =>
  !isAnswered(facts) &&
  (facts.transport === true || broke.test(facts.code ?? "") || transportWords.test(facts.detail ?? ""))

const messageOf = (facts: Facts, modelID: string | undefined): string => {
  // Either the path or the model is wrong, so the message names both.
  const absent = facts.status === 404
  const where = facts.host === undefined ? "the provider" : `${facts.host}${absent ? (facts.path ?? "") : ""}`
  const asked = absent && modelID !== undefined ? ` to a request for the model ${modelID}` : ""
  const status = (facts.status ?? 0) >= 300 ? ` answered HTTP ${facts.status}${asked}` : ""
  const said = facts.detail ?? facts.code ?? (facts.body?.trim() || "no further details")
  const isPlain = facts.code === "ERR_SSL_WRONG_VERSION_NUMBER"
  // OpenSSL's words are for its developers.
  // Node's words for a connection that the server closed, and for one that was cut.
  const isCut = /^(?:other side closed|terminated)$/.test(said)
  const detail = isPlain
    ? "the server does not speak TLS"
    : isCut
      ? "the connection was cut before the answer was complete"
      : ((facts.status === undefined ? networkWords(facts.code ?? "") : undefined) ??
        said.replace(/; if the root CA is installed.*$/s, ""))
  const question = isPlain
    ? "; does its address begin with http: ?"
    : unsafe.test(facts.code ?? "")
      ? "; set NODE_EXTRA_CA_CERTS to the file of its authority"
      : isClosed(facts)
        ? "; is it running?"
        : unknownName.test(facts.code ?? "") && facts.status === undefined
          ? "; check the address and the network"
          : ""
  return `${bounded(redactSecrets(`${where}${status}: ${detail.trim()}`), maxMessageChars)}${question}`
}

const unknownName = /^(?:ENOTFOUND|EAI_AGAIN)$/

/** A server on this machine that does not listen. */
const isClosed = ({ code, host = "" }: Facts): boolean =>
  code === "ECONNREFUSED" && /^(?:localhost|127(?:\.\d+){3}|\[::1\])(?::\d+)?$/.test(host)

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

const string = (value: unknown): string | undefined => (Predicate.isString(value) && value !== "" ? value : undefined)

/** An error code: a word, or a number outside the HTTP statuses, as z.ai sends. */
const codeOf = (value: unknown): string | undefined =>
  Predicate.isNumber(value) && httpStatus(value) === undefined ? String(value) : string(value)

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
