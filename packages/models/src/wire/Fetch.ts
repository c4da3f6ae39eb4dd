/**
 * Sends the requests of models: without undici's five-minute limits, because the runtime's policy sets them, and through the proxy
 * that `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY` name. An answer is read as the socket brings it. Spec: MD-97, MD-800..
 * MD-802 in specs/models.md.
 */
import { Readable } from "node:stream"
import { createBrotliDecompress, createUnzip } from "node:zlib"
import { Agent, type Dispatcher, EnvHttpProxyAgent, fetch } from "@effect/platform-node/Undici"
import { present } from "@daybook/log/support/Optional"

/** What comes next of a body: bytes, or its end, with the cause if it broke off. */
export type Piece =
  | { readonly _tag: "Bytes"; readonly bytes: Uint8Array }
  | { readonly _tag: "End" }
  | { readonly _tag: "Broken"; readonly cause: unknown }

/** A body that is read piece by piece. */
export interface Body {
  /** Calls `give` once with what has come, at once or when it comes. One call at a time. */
  readonly next: (give: (piece: Piece) => void) => void
  readonly cancel: () => Promise<void>
}

/** The answer to a request. */
export interface Answered {
  readonly ok: boolean
  readonly status: number
  readonly headers: Headers
  readonly body: Body
}

export type Send = (url: URL, init: RequestInit) => Promise<Answered>

const limits = { headersTimeout: 0, bodyTimeout: 0, connect: { timeout: 30_000 } } as const

const variable = (name: string): string | undefined => {
  const value = process.env[name.toLowerCase()] ?? process.env[name]
  return value === undefined || value.trim() === "" ? undefined : value.trim()
}

const dispatcherOf = (): Dispatcher => {
  const all = variable("ALL_PROXY")
  const httpProxy = variable("HTTP_PROXY") ?? all
  const httpsProxy = variable("HTTPS_PROXY") ?? all
  if (httpProxy === undefined && httpsProxy === undefined) return new Agent(limits)
  return new EnvHttpProxyAgent({ ...limits, ...present({ httpProxy, httpsProxy }) })
}

/** Bytes that wait for their reader, above which the server waits. */
const waitingLimit = 65_536

/** Holds what came of a body until it is asked for. `hold` and `release` let the server wait. */
const makePieces = (hold: () => void, release: () => void) => {
  let [waiting, length, held]: [Array<Uint8Array>, number, boolean] = [[], 0, false]
  let last: Piece | undefined
  let asked: ((piece: Piece) => void) | undefined
  const take = (): Piece | undefined => {
    const [first] = waiting
    if (first === undefined) return last
    const bytes = waiting.length === 1 ? first : Buffer.concat(waiting)
    waiting = []
    length = 0
    return { _tag: "Bytes", bytes }
  }
  const answer = () => {
    const give = asked
    const piece = give === undefined ? undefined : take()
    if (give === undefined || piece === undefined) return
    asked = undefined
    give(piece)
  }
  return {
    add: (bytes: Uint8Array): void => {
      waiting.push(bytes)
      length += bytes.length
      answer()
      if (held || length <= waitingLimit) return
      held = true
      hold()
    },
    end: (piece: Piece): void => {
      last ??= piece
      answer()
    },
    next: (give: (piece: Piece) => void): void => {
      asked = give
      answer()
      if (!held || length > waitingLimit) return
      held = false
      // More may come within this call.
      release()
    }
  }
}

type Pieces = ReturnType<typeof makePieces>

const decoders: ReadonlyMap<string, () => ReturnType<typeof createUnzip>> = new Map([
  ["gzip", createUnzip],
  ["x-gzip", createUnzip],
  ["deflate", createUnzip],
  ["br", createBrotliDecompress]
])

/** The pieces of a compressed body as they are when it is unpacked. */
const unpacked = (encoding: string, pieces: Pieces): Omit<Pieces, "next"> => {
  const decoder = decoders.get(encoding.trim().toLowerCase())?.()
  if (decoder === undefined) return pieces
  decoder
    .on("data", pieces.add)
    .on("end", () => pieces.end({ _tag: "End" }))
    .on("error", (cause) => pieces.end({ _tag: "Broken", cause }))
  return {
    add: (bytes) => void decoder.write(bytes),
    end: (piece) => (piece._tag === "End" ? void decoder.end() : pieces.end(piece))
  }
}

const headersFrom = (raw: Record<string, string | Array<string> | undefined>): Headers => {
  const headers = new Headers()
  for (const [name, value = []] of Object.entries(raw)) for (const each of [value].flat()) headers.append(name, each)
  return headers
}

/** The name under which undici's `fetch` asks: some servers refuse a request without one. */
const userAgent = "undici"

/**
 * A body that forgets its text once it is read: undici keeps the body of a request until the answer has ended. It ends with
 * its first piece, so undici knows its length.
 */
const readOnce = (text: string): Readable => {
  let rest: string | undefined = text
  return new Readable({
    read() {
      const all = rest
      rest = undefined
      if (all !== undefined) this.push(all)
      this.push(null)
    }
  })
}

type Request = Pick<Dispatcher.DispatchOptions, "origin" | "path" | "method" | "headers" | "body">

const requestOf = (
  { origin, pathname, search }: URL,
  { body, headers, method = "GET" }: Omit<RequestInit, "signal">
): Request => {
  const own = new Headers(headers)
  if (!own.has("user-agent")) own.set("user-agent", userAgent)
  const request: Request = { origin, path: pathname + search, method, headers: Object.fromEntries(own) }
  return typeof body !== "string" || body === "" ? request : { ...request, body: readOnce(body) }
}

/** What undici calls. It lives as long as the answer, and does not hold the request. */
const handlerOf = (
  signal: AbortSignal | null | undefined,
  resolve: (answered: Answered) => void,
  reject: (cause: unknown) => void
): Dispatcher.DispatchHandler => {
  let controller: Dispatcher.DispatchController | undefined
  const pieces = makePieces(
    () => controller?.pause(),
    () => controller?.resume()
  )
  let into: Omit<Pieces, "next"> = pieces
  const abort = () => {
    const reason = signal?.reason ?? new Error("the request was cancelled")
    controller?.abort(reason)
    reject(reason)
  }
  signal?.addEventListener("abort", abort, { once: true })
  const over = () => signal?.removeEventListener("abort", abort)
  return {
    onRequestStart: (started) => {
      controller = started
      if (signal?.aborted === true) abort()
    },
    onResponseStart: (started, status, raw) => {
      if (status < 200) return
      const given = headersFrom(raw)
      // undici keeps them with the answer: a buffer for each name and value, views of the memory that the socket read into.
      Object.assign(started, { rawHeaders: null })
      into = unpacked(given.get("content-encoding") ?? "", pieces)
      const cancel = async () => started.abort(new Error("the answer is not read"))
      resolve({ ok: status < 300, status, headers: given, body: { next: pieces.next, cancel } })
    },
    onResponseData: (_, bytes) => into.add(bytes),
    onResponseEnd: () => {
      over()
      into.end({ _tag: "End" })
    },
    onResponseError: (_, cause) => {
      over()
      reject(cause)
      into.end({ _tag: "Broken", cause })
    }
  }
}

const sending =
  (dispatcher: Dispatcher): Send =>
  (url, { signal, ...init }) =>
    new Promise((resolve, reject) => {
      dispatcher.dispatch(requestOf(url, init), handlerOf(signal, resolve, reject))
    })

const webBody = (body: ReadableStream<Uint8Array> | null): Body => {
  const reader = body?.getReader()
  return {
    next: (give) => {
      if (reader === undefined) return give({ _tag: "End" })
      void reader.read().then(
        ({ done, value }) => give(done ? { _tag: "End" } : { _tag: "Bytes", bytes: value }),
        (cause: unknown) => give({ _tag: "Broken", cause })
      )
    },
    cancel: async () => reader?.cancel()
  }
}

const viaFetch =
  (own: typeof globalThis.fetch): Send =>
  async (url, init) => {
    const { body, headers, ok, status } = await own(url, init)
    return { ok, status, headers, body: webBody(body) }
  }

let dispatcher: Dispatcher | undefined

const shared = (): Dispatcher => (dispatcher ??= dispatcherOf())

/** How a provider's requests leave: by the host's own `fetch`, if it has one. */
export const sender = (own: typeof globalThis.fetch | undefined): Send =>
  own === undefined ? sending(dispatcherOf()) : viaFetch(own)

/** The `fetch` of requests whose answers are short. */
export const sharedFetch = (): typeof globalThis.fetch => {
  const patient = (input: string, init: object) => fetch(input, { ...init, dispatcher: shared() })
  // undici's Request and Response types differ from the global ones in name only.
  return patient as unknown as typeof globalThis.fetch
}
