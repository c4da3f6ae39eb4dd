/**
 * Provides a `fetch` that follows redirects only within the request's origin, so that keys, configured headers and
 * prompts reach only the configured server. Daybook uses no other `fetch`. Spec: LM-1..LM-4.
 */
import { Predicate } from "effect"
import { maxRedirects } from "../support/Limits.ts"

/** A refused HTTP response: a redirect to another origin, or a body beyond its limit. Spec: LM-1, LM-10. */
export class HttpRefused extends Error {
  override readonly name = "HttpRefused"
  readonly code: "redirect_refused" | "answer_too_large"

  constructor(code: HttpRefused["code"], message: string) {
    super(message)
    this.code = code
  }
}

const maxDepth = 6

/** Finds a refusal in an error or its causes, because libraries wrap what `fetch` throws. */
export const refusalIn = (error: unknown, depth = 0): HttpRefused | undefined => {
  if (error instanceof HttpRefused) return error
  return depth < maxDepth && Predicate.hasProperty(error, "cause") ? refusalIn(error.cause, depth + 1) : undefined
}

/** Creates a refusal. The message may name origins, never a path, a query or a user. */
const refused = (message: string) => new HttpRefused("redirect_refused", message)

const redirects: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])

/** Does not compare `URL.origin`: a `blob:` URL has the origin of the URL inside it. */
const isSameOrigin = (a: URL, b: URL): boolean => a.protocol === b.protocol && a.host === b.host

const originOf = ({ host, protocol }: URL): string => `${protocol}//${host}`

/** A redirect's target; throws if it may not be followed. */
const targetOf = (from: URL, location: string): URL => {
  const refusedTo = (what: string) =>
    refused(`${originOf(from)} answered with a redirect to ${what}: it was not followed`)
  if (!URL.canParse(location, from.href)) throw refusedTo("an address that is not valid")
  const to = new URL(location, from.href)
  if (!isSameOrigin(from, to)) throw refusedTo(`${originOf(to).slice(0, 300)}, which is another origin`)
  if (to.username !== "" || to.password !== "") throw refusedTo("an address with a user name or password")
  return to
}

const bodyHeaders = ["content-encoding", "content-language", "content-location", "content-type", "content-length"]

/** The next request by the fetch standard: 303, and 301 and 302 after a POST, continue as a GET. */
const nextInit = (from: URL, status: number, init: RequestInit): RequestInit => {
  const method = (init.method ?? "GET").toUpperCase()
  const becomesGet = status === 303 ? method !== "GET" && method !== "HEAD" : status < 303 && method === "POST"
  if (becomesGet) {
    const { body: _, ...rest } = init
    const headers = new Headers(init.headers)
    for (const name of bodyHeaders) headers.delete(name)
    return { ...rest, method: "GET", headers }
  }
  if (init.body instanceof ReadableStream) {
    throw refused(`${originOf(from)} answered with a redirect, but the request's body cannot be sent again`)
  }
  return init
}

/** A request that can be repeated at another URL; a stream body cannot be repeated. */
const startOf = (input: Parameters<typeof fetch>[0], init: RequestInit = {}): readonly [URL, RequestInit] => {
  if (!(input instanceof Request)) return [new URL(input), init]
  const { body, headers, method, signal } = input
  return [new URL(input.url), { method, headers, signal, ...(body === null ? {} : { body, duplex: "half" }), ...init }]
}

/** What is read of a response to follow its redirect. */
interface Redirecting {
  readonly status: number
  readonly headers: { readonly get: (name: string) => string | null }
  readonly body: { readonly cancel: () => Promise<void> } | null
}

/**
 * Restricts a `fetch` to one origin. Rejects with `HttpRefused` for a refused redirect, and with `TypeError` for a URL
 * with a user name or password.
 */
export const sameOrigin =
  <Answered extends Redirecting>(fetch: (url: URL, init: RequestInit) => Promise<Answered>) =>
  async (input: Parameters<typeof globalThis.fetch>[0], asked?: RequestInit): Promise<Answered> => {
    let [url, init] = startOf(input, asked)
    // The platform's error message would quote the URL with its password.
    if (url.username !== "" || url.password !== "") {
      throw new TypeError(`the address at ${originOf(url)} has a user name or password: name it in a header instead`)
    }
    for (let followed = 0; ; followed++) {
      const response = await fetch(url, { ...init, redirect: "manual" })
      const location = redirects.has(response.status) ? response.headers.get("location") : null
      if (location === null) return response
      // The connection is reusable once the body is read or cancelled.
      await response.body?.cancel().catch(() => undefined)
      const to = targetOf(url, location)
      if (followed === maxRedirects) {
        throw refused(`${originOf(url)} redirects more than ${maxRedirects} times`)
      }
      init = nextInit(url, response.status, init)
      url = to
    }
  }

/** The platform's `fetch`, looked up on each call and restricted to one origin. */
export const safeFetch = sameOrigin((input, init) => globalThis.fetch(input, init))
