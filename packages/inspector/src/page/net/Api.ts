/**
 * Asks the server's API with the token of this tab: the address has the token once, after `#`, then the tab's storage
 * keeps it. A refusal is an `ApiError` with the server's own code and sentence. Spec: IP-4 in specs/http.md.
 */

const key = "daybook.token"

/** Takes a token out of the address; returns the tab's token, if it has one. */
export const takeToken = (): string | undefined => {
  const given = new URLSearchParams(location.hash.slice(1)).get("token")
  if (given !== null) {
    sessionStorage.setItem(key, given)
    history.replaceState(null, "", `${location.pathname}#/`)
  }
  return sessionStorage.getItem(key) ?? undefined
}

export const keepToken = (token: string): void => sessionStorage.setItem(key, token)

/** Why the server refused, or `Unreachable`. */
export class ApiError extends Error {
  readonly status: number
  readonly code: string
  /** With 410: the oldest cursor that is still served. */
  readonly floorCursor: string | undefined
  constructor(status: number, code: string, message: string, floorCursor?: string) {
    super(message)
    this.floorCursor = floorCursor
    this.status = status
    this.code = code
  }
}

export type Query = Readonly<Record<string, string | number | undefined>>

/** The path with its query, without undefined values. */
export const withQuery = (path: string, query: Query = {}): string => {
  const words = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) if (value !== undefined) words.set(name, String(value))
  return words.size === 0 ? path : `${path}${path.includes("?") ? "&" : "?"}${words}`
}

const failure = async (response: Response): Promise<ApiError> => {
  const body: unknown = await response.json().catch(() => undefined)
  const field = (name: string): string | undefined => {
    const value =
      typeof body === "object" && body !== null ? Object.entries(body).find(([key]) => key === name) : undefined
    return typeof value?.[1] === "string" ? value[1] : undefined
  }
  return new ApiError(
    response.status,
    field("_tag") ?? "HttpError",
    field("message") || `the server answered with status ${response.status}`,
    field("floorCursor")
  )
}

/** The API with the tab's token. */
export class Api {
  readonly #token: string
  readonly #base: string

  constructor(token: string, base = "") {
    this.#token = token
    this.#base = base
  }

  async open(path: string, init: RequestInit = {}): Promise<Response> {
    const headers = { authorization: `Bearer ${this.#token}`, ...Object.fromEntries(new Headers(init.headers)) }
    const response = await fetch(this.#base + path, { ...init, headers }).catch((cause: unknown) => {
      if (cause instanceof DOMException && cause.name === "AbortError") throw cause
      throw new ApiError(0, "Unreachable", "the server cannot be reached")
    })
    if (!response.ok) throw await failure(response)
    return response
  }

  /** Reads a value. The server encoded it through its schema, and no other server is asked. */
  async get<A>(path: string, query?: Query, signal?: AbortSignal): Promise<A> {
    const response = await this.open(withQuery(path, query), signal === undefined ? {} : { signal })
    const value: A = await response.json()
    return value
  }

  /** Sends a change; returns the server's value, if it has one. */
  async send<A = undefined>(method: "POST" | "PUT" | "DELETE", path: string, body?: unknown): Promise<A | undefined> {
    const init =
      body === undefined ? {} : { body: JSON.stringify(body), headers: { "content-type": "application/json" } }
    const response = await this.open(path, { method, ...init })
    if (response.status === 204) return undefined
    const text = await response.text()
    if (text === "") return undefined
    const value: A = JSON.parse(text)
    return value
  }
}
