/** Errors of a provider's library, without keys and open requests; its defects become errors. Spec: MD-19 in specs/models.md. */
import * as AiError from "@effect/ai/AiError"
import { Cause, Option, Predicate, Redacted } from "effect"
import type { HttpRefused } from "@daybook/core/http/HttpRefused"
import { redactSecrets } from "@daybook/log/support/Redaction"
import { parseOrText } from "./CallInput.ts"

/** The provider of the errors, and the values that they must not show. */
export interface Owner {
  /** Used in errors: `anthropic`. */
  readonly provider: string
  /** Values that must never appear in an error. */
  readonly secrets: ReadonlyArray<Redacted.Redacted>
}

/** A refused answer as an error that `classifyError` reads. */
export const refusedError = (module: string, { code, message }: HttpRefused): AiError.AiError =>
  new AiError.UnknownError({ module, method: "streamText", description: message, cause: { code, message } })

/** Converts a library's defects to errors, keeps interruptions, and removes keys and open requests. */
export const clean = (
  owner: Owner,
  cause: Cause.Cause<AiError.AiError>,
  refused?: HttpRefused
): Cause.Cause<AiError.AiError> => {
  if (refused !== undefined && !Cause.isInterruptedOnly(cause)) return Cause.fail(refusedError(owner.provider, refused))
  const failure = Cause.failureOption(cause)
  if (Option.isSome(failure)) return Cause.fail(cleanError(owner, failure.value))
  if (Cause.isInterruptedOnly(cause)) return cause
  return Cause.fail(
    new AiError.UnknownError({
      module: owner.provider,
      method: "streamText",
      description: redact(owner, `the provider's library failed: ${describe(Cause.squash(cause))}`)
    })
  )
}

const redact = (owner: Owner, text: string): string =>
  redactSecrets(
    text,
    owner.secrets.map((secret) => Redacted.value(secret))
  )

const describe = (error: unknown): string =>
  error instanceof Error ? `${error.name}: ${error.message}` : String(error)

const maxCauseChars = 2000

/** A cause as plain data: redacted text and its code, without a reference to the request. */
const cleanCause = (owner: Owner, cause: unknown, depth = 0): unknown => {
  if (!Predicate.isObject(cause)) return Predicate.isString(cause) ? redact(owner, cause) : undefined
  const message = describe(cause).replace(/^\w*Error: /, "")
  const code = Predicate.hasProperty(cause, "code") && Predicate.isString(cause.code) ? { code: cause.code } : {}
  const inner =
    depth < 5 && Predicate.hasProperty(cause, "cause") && cause.cause !== undefined
      ? { cause: cleanCause(owner, cause.cause, depth + 1) }
      : {}
  const text = Predicate.hasProperty(cause, "message") && Predicate.isString(cause.message) ? cause.message : message
  return { message: redact(owner, text.slice(0, maxCauseChars)), ...code, ...inner }
}

const cleanError = (owner: Owner, error: AiError.AiError): AiError.AiError => {
  const at = { module: error.module, method: error.method }
  const description =
    "description" in error && error.description !== undefined ? { description: redact(owner, error.description) } : {}
  const cause = "cause" in error && error.cause !== undefined ? { cause: cleanCause(owner, error.cause) } : {}
  switch (error._tag) {
    case "HttpRequestError":
      return new AiError.HttpRequestError(
        { ...at, ...description, ...cause, reason: error.reason, request: requestOf(owner, error.request) },
        { disableValidation: true }
      )
    case "HttpResponseError":
      return new AiError.HttpResponseError(
        {
          ...at,
          ...description,
          reason: error.reason,
          request: requestOf(owner, error.request),
          response: { status: error.response.status, headers: textual(owner, error.response.headers) },
          ...(error.body === undefined ? {} : { body: redact(owner, bodyText(error.body).slice(0, maxBodyChars)) })
        },
        { disableValidation: true }
      )
    case "MalformedInput":
      return new AiError.MalformedInput({ ...at, ...description, ...cause })
    case "MalformedOutput":
      return new AiError.MalformedOutput({ ...at, ...description, ...cause })
    case "UnknownError":
      return new AiError.UnknownError({ ...at, ...description, ...cause })
  }
}

const maxBodyChars = 64 * 1024

/** Libraries hold a non-JSON body as a JSON string literal. */
const bodyText = (body: string): string => {
  const text = body.startsWith('"') ? parseOrText(body) : body
  return Predicate.isString(text) ? text : body
}

/** The address without query and user, and no request headers: they contain the key. */
const requestOf = (owner: Owner, request: AiError.HttpRequestError["request"]) => {
  const url = URL.canParse(request.url) ? new URL(request.url) : undefined
  return {
    ...request,
    url: url === undefined ? redact(owner, request.url) : `${url.origin}${url.pathname}`,
    urlParams: [],
    headers: {}
  }
}

const textual = (owner: Owner, headers: Readonly<Record<string, unknown>>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      Predicate.isString(value) ? [[name, redact(owner, value)]] : []
    )
  )

/** An error part of a stream without keys and open requests. */
export const cleanUnknown = (owner: Owner, error: unknown): unknown => {
  if (AiError.isAiError(error)) return cleanError(owner, error)
  if (Predicate.isString(error)) return redact(owner, error)
  if (error instanceof Error) return cleanCause(owner, error)
  try {
    const json: unknown = JSON.parse(redact(owner, JSON.stringify(error ?? null)))
    return json
  } catch {
    return { message: redact(owner, describe(error)) }
  }
}
