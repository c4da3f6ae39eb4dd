/**
 * Failures of a request as errors that `classifyError` reads, without keys and addresses' secrets; and the errors that servers
 * report with a success status. Pure. Spec: MD-16, MD-17, MD-19, MD-93, MD-793 in specs/models.md.
 */
import * as AiError from "@effect/ai/AiError"
import { Option, Predicate, Redacted } from "effect"
import { refusalIn } from "@daybook/core/http/SameOrigin"
import { redactSecrets } from "@daybook/log/support/Redaction"
import { present } from "@daybook/log/support/Optional"
import { count, type Json, many, parse, record, text, wordsOf } from "./Json.ts"

/** Whose errors these are, and the values that they must not show. */
export interface Owner {
  /** Used in errors: `anthropic`. */
  readonly provider: string
  readonly secrets: ReadonlyArray<Redacted.Redacted>
}

const redact = (owner: Owner, source: string): string => redactSecrets(source, owner.secrets.map(Redacted.value))

const maxCauseChars = 2000
const maxDepth = 5

/** A thrown value as plain data: redacted texts and codes, without a reference to the request. */
const cleanCause = (owner: Owner, thrown: unknown, depth = 0): unknown => {
  if (!Predicate.isObject(thrown)) return Predicate.isString(thrown) ? redact(owner, thrown) : undefined
  // An error's own fields are not enumerable.
  const { cause, code, message }: { cause?: unknown; code?: unknown; message?: unknown } = thrown
  return present({
    message: redact(owner, String(message ?? "").slice(0, maxCauseChars)),
    code: text(code),
    cause: depth < maxDepth ? cleanCause(owner, cause, depth + 1) : undefined
  })
}

/** The address without query and user: they may contain the key. */
const requestOf = (owner: Owner, url: string) => {
  const parsed = URL.canParse(url) ? new URL(url) : undefined
  return {
    method: "POST" as const,
    url: parsed === undefined ? redact(owner, url) : `${parsed.origin}${parsed.pathname}`,
    urlParams: [],
    hash: Option.none(),
    headers: {}
  }
}

const method = "streamText"

export const unsent = (owner: Owner, url: string, cause: unknown): AiError.AiError => {
  const refused = refusalIn(cause)
  if (refused !== undefined) return unknown(owner, refused.message, { code: refused.code, message: refused.message })
  const clean = record(cleanCause(owner, cause))
  const [, proxied] = /Proxy response \((\d+)\)/.exec(JSON.stringify(clean)) ?? []
  const said = `the proxy answered HTTP ${proxied}`
  if (proxied !== undefined && Number(proxied) < 500 && proxied !== "429") {
    const message = proxied === "407" ? `${said}; does its address hold the user and the password?` : said
    return unknown(owner, message, { code: "proxy_refused", message })
  }
  return new AiError.HttpRequestError(
    {
      module: owner.provider,
      method,
      reason: "Transport",
      request: requestOf(owner, url),
      description:
        proxied === undefined
          ? (text(record(clean["cause"])["message"]) ?? text(clean["message"]) ?? "the connection failed")
          : said,
      cause: clean
    },
    { disableValidation: true }
  )
}

/** An answer with an error status. Google wraps its error in a list: `[{"error": ...}]`. */
export const rejected = (
  owner: Owner,
  url: string,
  { headers, status }: Pick<Response, "headers" | "status">,
  body: string
): AiError.AiError => {
  const [listed] = body.startsWith("[") ? many(parse(body)) : []
  return new AiError.HttpResponseError(
    {
      module: owner.provider,
      method,
      reason: "StatusCode",
      request: requestOf(owner, url),
      response: {
        status,
        headers: Object.fromEntries([...headers].map(([name, value]) => [name, redact(owner, value)]))
      },
      body: redact(owner, Predicate.isRecord(listed) ? JSON.stringify(listed) : body)
    },
    { disableValidation: true }
  )
}

/** Any other failure, with a cause that `classifyError` reads. */
export const unknown = (owner: Owner, description: string, cause: unknown): AiError.AiError =>
  new AiError.UnknownError({
    module: owner.provider,
    method,
    description: redact(owner, description),
    cause: cleanUnknown(owner, cause)
  })

export const cleanUnknown = (owner: Owner, error: unknown): unknown =>
  error instanceof Error ? cleanCause(owner, error) : (parse(redact(owner, JSON.stringify(error ?? null))) ?? null)

/**
 * The error that an event, or a whole body with a success status, reports: `{error}`, OpenAI's and Anthropic's `error` events,
 * vLLM's `{object: "error"}`, z.ai's `{code, msg}`, Qianfan's `{error_code, error_msg}`, MiniMax's `{base_resp}`, OpenRouter's in a
 * choice. `name` is the event's. Undefined if it is none.
 */
export const errorIn = (event: Json, name = ""): unknown => {
  const { base_resp, choices, detail, error_code, error_msg, message, msg, object, success, type } = event
  const code = event["code"] ?? error_code
  const error = event["error"] ?? record(many(choices)[0])["error"]
  if (Predicate.isRecord(error) && Object.keys(error).length > 0) return error
  if (text(error) !== undefined) return present({ message: error, code, status: event["status"] })
  const [first] = Array.isArray(event["errors"]) ? event["errors"] : []
  if (Predicate.isRecord(first)) return first
  if (type === "error" || object === "error" || name === "error")
    return { ...event, message: text(message) ?? "the server reported an error" }
  const base = record(base_resp)
  if ((count(base["status_code"]) ?? 0) > 0)
    return { code: `status ${String(base["status_code"])}`, message: base["status_msg"] }
  const words = text(msg) ?? text(message) ?? text(detail) ?? text(error_msg)
  if (words === undefined || Array.isArray(choices) || type !== undefined) return undefined
  return success === false || error === true || detail !== undefined || (count(code) ?? 0) > 0
    ? { code: String(code ?? ""), message: words }
    : undefined
}

/** What stands in a body that is neither an event stream nor JSON. */
export const notAnAnswer = (body: string): { readonly code: string; readonly message: string } => {
  const [, title] = /<title[^>]*>\s*([^<]{1,200})/i.exec(body.slice(0, 10_000)) ?? []
  const page = `an HTML page${title === undefined ? "" : ` (${title.trim()})`}`
  const json = parse(body)
  const words = wordsOf(record(json)["message"] ?? record(json)["msg"])?.slice(0, 200)
  const about = words === undefined ? "" : ` (${words})`
  const other = Predicate.isRecord(json) ? `JSON that is no answer${about}` : "text that is not JSON"
  const what = /^\s*</.test(body) ? page : body.trim() === "" ? "an empty body" : other
  return { code: "not_an_answer", message: `the server sent ${what} instead of an answer: check its address` }
}
