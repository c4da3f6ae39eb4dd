/**
 * How a request leaves: a form as bytes. discord.js hands forms to the process's common dispatcher of undici; where another version of
 * undici made that dispatcher, it does not know discord.js's forms, and each upload would fail. Spec: DI-69 in specs/discord.md.
 */
import { DefaultRestOptions, type RESTOptions } from "discord.js"

/** Sends a request as discord.js does, a form as bytes with its type. */
export const makeRequest: RESTOptions["makeRequest"] = async (url, init) => {
  if (!(init.body instanceof FormData)) return DefaultRestOptions.makeRequest(url, init)
  const form = new Response(init.body)
  const headers = new Headers(init.headers)
  headers.set("content-type", form.headers.get("content-type") ?? "multipart/form-data")
  const body = new Uint8Array(await form.arrayBuffer())
  return DefaultRestOptions.makeRequest(url, { ...init, body, headers: Object.fromEntries(headers) })
}
