/**
 * Applies request settings in the forms of the wire. Settings never replace the conversation, the tools or the model of
 * a request, nor its credentials.
 * Spec: MD-47..MD-51.
 */
import type * as LanguageModel from "@effect/ai/LanguageModel"
import { type Effect, Redacted } from "effect"
import type { RequestSettings } from "@daybook/core/domain/Agent"
import type { Json } from "./WireFetch.ts"

/** Makes the model with request settings; all share one client and its connections. */
export type Configurable = (settings: RequestSettings) => Effect.Effect<LanguageModel.Service>

/** Fields that only the runtime sets. */
const decided: ReadonlySet<string> = new Set([
  "input",
  "instructions",
  "messages",
  "model",
  "stream",
  "system",
  "tool_choice",
  "tools"
])

/** Merges the settings' JSON fields into a body; whole fields are replaced (MD-48). */
export const lay = (body: Json, settings: RequestSettings): Json => ({
  ...body,
  ...Object.fromEntries(Object.entries(settings.body ?? {}).filter(([name]) => !decided.has(name)))
})

/** Headers that carry credentials or define how the body is read. */
const fixed: ReadonlySet<string> = new Set([
  "api-key",
  "authorization",
  "connection",
  "content-encoding",
  "content-length",
  "content-type",
  "cookie",
  "host",
  "proxy-authorization",
  "transfer-encoding",
  "x-api-key",
  "x-goog-api-key"
])

/** The headers that the settings may set; `own` are the provider's, which stay (MD-66). */
export const headersOf = (settings: RequestSettings, own: ReadonlyArray<string> = []): Record<string, string> => {
  const kept = new Set(own.map((name) => name.toLowerCase()))
  const laid = Object.entries(settings.headers ?? {}).map(([name, value]) => [name.toLowerCase(), value] as const)
  return Object.fromEntries(laid.filter(([name]) => !fixed.has(name) && !kept.has(name)))
}

/** Any header value may be a key (MD-51). */
export const secretsOf = (settings: RequestSettings): ReadonlyArray<Redacted.Redacted> =>
  Object.values(settings.headers ?? {}).flatMap((value) => [Redacted.make(value), Redacted.make(value.trim())])

/** Drops undefined fields. */
export const defined = (fields: Json): Json =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
