/**
 * What a session or agent asks of a request beside its prompt, in the forms of the wire. What these settings may not do
 * is decided here: they never replace the conversation, the tools or the model of a request, nor its credentials.
 * Spec: MD-47..MD-51.
 */
import type { RequestSettings } from "@daybook/core"
import type { LanguageModel } from "@effect/ai"
import { Redacted, type Effect } from "effect"
import type { Json } from "./WireFetch.ts"

/** A model whose requests can be made with settings; what it shares between them (client, connections) is made once. */
export type Configurable = (settings: RequestSettings) => Effect.Effect<LanguageModel.Service>

/** What the runtime decides, and no setting. */
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

/** The settings' own JSON fields laid over a body, whole field by whole field (MD-48). */
export const lay = (body: Json, settings: RequestSettings): Json => ({
  ...body,
  ...Object.fromEntries(Object.entries(settings.body ?? {}).filter(([name]) => !decided.has(name)))
})

/** Headers that carry credentials, and those by which the body is read. */
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

/** The headers that the settings may lay over a request's; `own` are the provider's, which stay too (MD-48). */
export const headersOf = (settings: RequestSettings, own: ReadonlyArray<string> = []): Record<string, string> => {
  const kept = new Set(own.map((name) => name.toLowerCase()))
  const laid = Object.entries(settings.headers ?? {}).map(([name, value]) => [name.toLowerCase(), value] as const)
  return Object.fromEntries(laid.filter(([name]) => !fixed.has(name) && !kept.has(name)))
}

/** A header may be a key, whatever it is called (MD-51). */
export const secretsOf = (settings: RequestSettings): ReadonlyArray<Redacted.Redacted> =>
  Object.values(settings.headers ?? {}).flatMap((value) => [Redacted.make(value), Redacted.make(value.trim())])

/** An object without the members that are undefined. */
export const defined = (fields: Json): Json =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
