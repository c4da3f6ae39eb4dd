/**
 * A `fetch` for provider requests: without time limits (the runtime's policy sets them), and with hooks that adapt a
 * request's JSON and a streamed answer's events to the provider library. Providers add fields, events and enumeration
 * values at any time; a library that decodes strictly would end the stream on them.
 */
import { Predicate } from "effect"
import { boundedBody, isEventStream, withBody } from "@daybook/core/http/BoundedBody"
import * as Limits from "@daybook/core/support/Limits"

/** A JSON object of a wire protocol; fields are checked where they are used. */
export type Json = Readonly<Record<string, unknown>>

/** Changes to one request and its answer. Created per request, so it may keep state between events. */
export interface Wire {
  /** Returns the body to send. */
  readonly request: (body: Json) => Json
  /** Headers to merge into the request's; `body` is the body as sent. */
  readonly headers?: (body: Json) => Readonly<Record<string, string>>
  /** Returns the events that replace one event; empty drops it. If absent, the answer is unchanged. */
  readonly event?: (event: Json, request: Json) => ReadonlyArray<Json>
  /** Returns the events that replace data that is not a JSON object; if absent, the data is passed on. */
  readonly malformed?: (data: string) => ReadonlyArray<Json>
}

/** The `fetch` of undici, without its five-minute limits on headers and on silence between chunks. */
export const patientFetch = async (): Promise<typeof globalThis.fetch> => {
  const { Agent, fetch } = await import("@effect/platform-node/Undici")
  const dispatcher = new Agent({ headersTimeout: 0, bodyTimeout: 0, connect: { timeout: 30_000 } })
  const patient = (input: string, init: object) => fetch(input, { ...init, dispatcher })
  // undici's Request and Response types differ from the global ones in name only.
  return patient as unknown as typeof globalThis.fetch
}

const limits = {
  body: Limits.maxBodyBytes.provider,
  event: Limits.maxEventBytes.provider,
  stream: Limits.maxStreamBytes
}

/** Truncates the body of a failed answer. */
const cut = (left: number) =>
  new TransformStream<Uint8Array, Uint8Array>({
    transform(bytes, controller) {
      controller.enqueue(bytes.subarray(0, left))
      left -= bytes.length
      if (left <= 0) controller.terminate()
    }
  })

/** Bounds answers: an overlong failed one is truncated, any other fails with `HttpRefused` (LM-10, LM-11). */
export const boundedAnswers =
  (fetch: typeof globalThis.fetch): typeof globalThis.fetch =>
  async (input, init) => {
    const response = await fetch(input, init)
    if (response.ok || response.body === null) return boundedBody(response, limits)
    return withBody(response, response.body.pipeThrough(cut(Limits.maxErrorBytes)))
  }

/** Reports errors of `fetch` and of bodies to `note`: libraries drop their cause. */
export const noting =
  (fetch: typeof globalThis.fetch, note: (error: unknown) => void): typeof globalThis.fetch =>
  async (input, init) => {
    const noted = (error: unknown) => {
      note(error)
      throw error
    }
    const response = await fetch(input, init).catch(noted)
    if (response.body === null) return response
    const reader = response.body.getReader()
    const body = new ReadableStream<Uint8Array>({
      pull: async (controller) => {
        const { done, value } = await reader.read().catch(noted)
        if (done) controller.close()
        else controller.enqueue(value)
      },
      cancel: (reason) => reader.cancel(reason)
    })
    return withBody(response, body)
  }

/** Wraps `fetch` with the changes of `makeWire`. */
export const wired =
  (fetch: typeof globalThis.fetch, makeWire: () => Wire): typeof globalThis.fetch =>
  async (input, init) => {
    const wire = makeWire()
    const sent = parseObject(bodyText(init?.body))
    const body = sent === undefined ? undefined : wire.request(sent)
    const response = await fetch(input, {
      ...init,
      ...(body === undefined ? {} : { body: wellFormed(JSON.stringify(body)) }),
      ...(wire.headers === undefined ? {} : { headers: laidOver(init?.headers, wire.headers(body ?? {})) })
    })
    const { event, malformed } = wire
    if (event === undefined || response.body === null || !response.ok || !isEventStream(response)) return response
    return withBody(response, response.body.pipeThrough(rewriteEvents({ event, malformed }, body ?? {})))
  }

/**
 * Replaces lone surrogates, which truncated text may contain and providers reject. In such JSON every backslash starts
 * an escape, and `JSON.stringify` escapes only lone surrogates.
 */
const wellFormed = (json: string): string =>
  json.includes("\\ud")
    ? json.replaceAll(/\\(?:\\|ud[89a-f][0-9a-f]{2})/g, (at) => (at === "\\\\" ? at : "\ufffd"))
    : json

/** A list header: values are appended, not replaced. */
const listed = "anthropic-beta"

const laidOver = (
  under: ConstructorParameters<typeof Headers>[0],
  over: Readonly<Record<string, string>>
): Record<string, string> => {
  const headers = new Headers(under)
  for (const [name, value] of Object.entries(over)) {
    try {
      const under = name === listed ? headers.get(name) : null
      headers.set(name, under === null ? value : `${under},${value}`)
    } catch {
      // The platform's message would quote the value, which may be a key.
      throw new Error(`the header "${name}" of the request settings has characters that HTTP does not allow`)
    }
  }
  return Object.fromEntries(headers)
}

const bodyText = (body: unknown): string | undefined =>
  Predicate.isString(body) ? body : body instanceof Uint8Array ? new TextDecoder().decode(body) : undefined

/** Parses a JSON object; undefined for anything else. */
export const parseObject = (text: string | undefined): Json | undefined => {
  try {
    const json: unknown = text === undefined ? undefined : JSON.parse(text)
    return Predicate.isRecord(json) ? json : undefined
  } catch {
    return undefined
  }
}

interface Rewriter {
  readonly event: NonNullable<Wire["event"]>
  readonly malformed: Wire["malformed"]
}

/** An event ends at an empty line; the three line endings may be mixed. */
const eventEnd = /\r\n\r\n|\n\n|\r\r/g

const rewriteEvents = (wire: Rewriter, request: Json): TransformStream<Uint8Array, Uint8Array> => {
  const decoder = new TextDecoder()
  const encoder = new TextEncoder()
  // Pieces of an incomplete event: each piece is searched once, whatever the event's length.
  let pieces: Array<string> = []
  let tail = ""
  return new TransformStream({
    transform(bytes, controller) {
      const text = tail + decoder.decode(bytes, { stream: true })
      let begin = 0
      for (const { 0: end, index } of text.matchAll(eventEnd)) {
        const block = pieces.join("") + text.slice(begin, index)
        pieces = []
        begin = index + end.length
        for (const one of rewriteBlock(wire, request, block)) controller.enqueue(encoder.encode(one))
      }
      // A separator may be split between chunks: its possible start is searched again.
      const kept = Math.max(begin, text.length - 3)
      if (kept > begin) pieces.push(text.slice(begin, kept))
      tail = text.slice(kept)
    }
    // An incomplete event at the end is dropped, as the format requires.
  })
}

const rewriteBlock = (wire: Rewriter, request: Json, block: string): ReadonlyArray<string> => {
  const data = block
    .split(/\r\n|\n|\r/)
    .filter((line) => line.startsWith("data:"))
    .map((line) => line.slice(5).replace(/^ /, ""))
    .join("\n")
  if (data === "" || data === "[DONE]") return []
  const event = parseObject(data)
  if (event !== undefined) return wire.event(event, request).map(frame)
  return wire.malformed === undefined
    ? [`data: ${data.replaceAll("\n", "\ndata: ")}\n\n`]
    : wire.malformed(data).map(frame)
}

const frame = (event: Json): string =>
  `${Predicate.isString(event["type"]) ? `event: ${event["type"]}\n` : ""}data: ${JSON.stringify(event)}\n\n`

/** Names of the function tools in a request, in any protocol. */
export const offeredTools = (request: Json): ReadonlySet<string> =>
  new Set(
    (Array.isArray(request["tools"]) ? request["tools"] : []).flatMap((tool: unknown) =>
      Predicate.isRecord(tool) && Predicate.isString(tool["name"]) ? [tool["name"]] : []
    )
  )
