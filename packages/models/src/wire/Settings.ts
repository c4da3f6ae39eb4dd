/**
 * Applies request settings in the forms of the wire. Settings never replace the conversation, the tools or the model of
 * a request, nor its credentials.
 * Spec: MD-47..MD-51.
 */
import type { RequestSettings } from "@daybook/core/domain/Agent"
import type { Json } from "./Json.ts"

/** Fields that only the runtime sets. */
const decided =
  /^(?:contents|input|instructions|messages|model|stream|system|systemInstruction|toolConfig|tool_choice|tools)$/

/** Merges the settings' JSON fields into a body; whole fields are replaced (MD-48). */
export const lay = (body: Json, settings: RequestSettings): Json => ({
  ...body,
  ...Object.fromEntries(Object.entries(settings.body ?? {}).filter(([name]) => !decided.test(name)))
})

/** Headers that carry credentials or define how the body is read. */
const fixed =
  /^(?:(?:proxy-)?authorization|(?:x-|x-goog-)?api-key|cookie|host|connection|transfer-encoding|content-(?:encoding|length|type))$/

/** A list header: values are appended, not replaced. */
const listed = "anthropic-beta"

/** The headers of a request: the protocol's and the host's, and over them those that the settings may set (MD-66). */
export const headersOf = (
  settings: RequestSettings,
  own: Readonly<Record<string, string>>,
  hosts: Readonly<Record<string, string>>
): Record<string, string> => {
  const headers = new Headers({ ...own, ...hosts })
  const kept = new Set(Object.keys(hosts).map((name) => name.toLowerCase()))
  for (const [given, value] of Object.entries(settings.headers ?? {})) {
    const name = given.toLowerCase()
    if (fixed.test(name) || kept.has(name)) continue
    const under = name === listed ? headers.get(name) : null
    try {
      headers.set(name, under === null ? value : `${under},${value}`)
    } catch {
      // The platform's message would quote the value, which may be a key.
      throw new Error(`the header "${name}" of the request settings has characters that HTTP does not allow`)
    }
  }
  return Object.fromEntries(headers)
}
