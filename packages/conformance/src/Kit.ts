/** What laws share: sessions with prompts, replays, refusals and comparisons. */
import { request as rawRequest } from "node:http"
import { request as secureRequest } from "node:https"
import { Schema } from "effect"

// The server under test: its requests, and the frames of its streams.

export interface Target {
  /** For example `http://127.0.0.1:4310`. */
  readonly baseUrl: string
  /** A token that may create sessions and prompt. */
  readonly token: string
  /** A token that may only read. Without it, scopes are not tested. */
  readonly readToken?: string | undefined
  /** Ends the requests of a law whose time is over. */
  readonly signal?: AbortSignal | undefined
}

/** A frame of a stream: its type, its cursor, and its data. */
export interface Frame {
  readonly type: string
  readonly cursor: string | undefined
  readonly data: unknown
}

const json = Schema.decodeUnknownSync(Schema.parseJson())

const anyOf = (...signals: ReadonlyArray<AbortSignal | null | undefined>): AbortSignal =>
  AbortSignal.any(signals.filter((each) => each !== undefined && each !== null))

/** Sends a request with the token, unless another one is given. */
export const request = (target: Target, path: string, init: RequestInit = {}): Promise<Response> =>
  fetch(`${target.baseUrl}${path}`, {
    ...init,
    signal: anyOf(target.signal, init.signal),
    headers: { authorization: `Bearer ${target.token}`, "content-type": "application/json", ...init.headers }
  })

/** The status of a request with headers that `fetch` does not send as they are: `host`, or one of them twice. */
export const rawStatus = ({ baseUrl, signal, token }: Target, path: string, headers: ReadonlyArray<string>) =>
  new Promise<number | undefined>((resolve, reject) => {
    const url = new URL(path, baseUrl)
    const send = url.protocol === "https:" ? secureRequest : rawRequest
    const own = headers.includes("host") ? [] : ["host", url.host]
    const sent = send(
      url,
      { signal, headers: [...own, "authorization", `Bearer ${token}`, ...headers] },
      (response) => {
        response.resume()
        resolve(response.statusCode)
      }
    )
    sent.once("error", reject).end()
  })

export const answer = async <A, I>(
  target: Target,
  schema: Schema.Schema<A, I>,
  path: string,
  init?: RequestInit
): Promise<A> => {
  const response = await request(target, path, init)
  const body = await response.text()
  if (!response.ok) throw new Error(`${path} answered ${response.status}: ${body.slice(0, 300)}`)
  return Schema.decodeUnknownSync(Schema.parseJson(schema))(body)
}

/** A frame from its lines; none from a comment alone. */
const frameOf = (lines: ReadonlyArray<string>): Frame | undefined => {
  let [type, cursor]: [string, string | undefined] = ["message", undefined]
  const data: Array<string> = []
  for (const line of lines) {
    const [, field, value = ""] = /^([^:]+)(?:: ?(.*))?$/s.exec(line) ?? []
    if (field === "event") type = value
    if (field === "id") cursor = value
    if (field === "data") data.push(value)
  }
  return data.length === 0 ? undefined : { type, cursor, data: json(data.join("\n")) }
}

/** More than this in one frame is not read. */
const mostCharacters = 64 * 1024 * 1024

/** The texts of a stream as they come. Leaving the loop closes the connection. */
export async function* texts(target: Target, path: string, headers: Record<string, string> = {}) {
  const response = await request(target, path, { headers: { accept: "text/event-stream", ...headers } })
  if (!response.ok || response.body === null) throw new Error(`${path} answered ${response.status}`)
  const type = response.headers.get("content-type")
  if (type?.split(";")[0] !== "text/event-stream") throw new Error(`${path} has the content type ${type}`)
  for await (const text of response.body.pipeThrough(new TextDecoderStream())) yield text
}

/** The frames of a stream, by the rules of server-sent events: a line may end in CR, LF or both. */
export async function* frames(...given: Parameters<typeof texts>): AsyncGenerator<Frame> {
  let rest = ""
  let lines: Array<string> = []
  for await (const text of texts(...given)) {
    rest += text
    if (rest.length > mostCharacters) throw new Error(`a line has more than ${mostCharacters} characters`)
    // A CR at the end may be half of a line's end.
    const complete = rest.split(/\r\n|\n|\r(?!$)/)
    rest = complete.pop() ?? ""
    for (const line of complete) {
      if (line !== "") {
        lines.push(line)
        continue
      }
      const frame = frameOf(lines)
      lines = []
      if (frame !== undefined) yield frame
    }
  }
}

/** Frames up to one that a predicate finds. */
export const framesUntil = async (
  isLast: (frame: Frame) => boolean,
  ...given: Parameters<typeof texts>
): Promise<ReadonlyArray<Frame>> => {
  const found: Array<Frame> = []
  for await (const frame of frames(...given)) {
    found.push(frame)
    if (found.length > 100_000) throw new Error("a stream of a small session has more than 100,000 frames")
    if (isLast(frame)) return found
  }
  return found
}

export const allFrames = (...given: Parameters<typeof texts>): Promise<ReadonlyArray<Frame>> =>
  framesUntil(() => false, ...given)

/** One clause of specs/http.md. Its test fails by throwing. */
export interface Law {
  readonly clause: string
  readonly says: string
  readonly test: (target: Target) => Promise<void>
  /** It has to wait for the server's own times, so that it runs beside the others. */
  readonly slow?: true
  /** Why the target does not permit the test, if it does not. */
  readonly untestable?: (target: Target) => string | undefined
}

export const Created = Schema.Struct({ id: Schema.String })
export const Cursored = Schema.Struct({ cursor: Schema.String })
export const End = Schema.Struct({ reason: Schema.String, cursor: Schema.optional(Schema.String) })

/** What every stored event has. */
export const Event = Schema.Struct({
  position: Schema.Int,
  seq: Schema.Int,
  id: Schema.String.pipe(Schema.startsWith("evt_")),
  sessionID: Schema.String,
  type: Schema.String,
  version: Schema.Int,
  created: Schema.Number,
  data: Schema.Unknown
})

const Failure = Schema.parseJson(
  Schema.Struct(
    { _tag: Schema.String, message: Schema.NonEmptyString },
    Schema.Record({ key: Schema.String, value: Schema.Unknown })
  )
)

export const expect = (holds: boolean, otherwise: string): void => {
  if (!holds) throw new Error(otherwise)
}

/** JSON with the fields of objects in one order: theirs says nothing. */
const canonical = (value: unknown): string =>
  JSON.stringify(value, (_, each: unknown) =>
    typeof each === "object" && each !== null && !Array.isArray(each)
      ? Object.fromEntries(Object.entries(each).sort(([a], [b]) => (a < b ? -1 : 1)))
      : each
  ) ?? "nothing"

const shown = (value: unknown): string => canonical(value).slice(0, 500)

export const same = (found: unknown, expected: unknown, what: string): void =>
  expect(canonical(found) === canonical(expected), `${what}: found ${shown(found)}, expected ${shown(expected)}`)

export const posted = (body: unknown, headers: Record<string, string> = {}, method = "POST"): RequestInit => ({
  method,
  body: JSON.stringify(body),
  headers
})

export const aPrompt = (text: string, more: object = {}) => ({ prompt: { text }, resume: false, ...more })

export const say = (target: Target, sessionID: string, text: string, more: object = {}, headers = {}) =>
  answer(target, Created, `/sessions/${sessionID}/prompts`, posted(aPrompt(text, more), headers))

/** A new session with so many prompts that nothing runs. */
export const session = async (target: Target, prompts: number): Promise<string> => {
  const { id } = await answer(target, Created, "/sessions", posted({ location: { directory: "/" } }))
  for (let n = 1; n <= prompts; n++) await say(target, id, `prompt ${n} \u{1F4D3} ${"é".repeat(n)}`)
  return id
}

export const events = (of: ReadonlyArray<Frame>): ReadonlyArray<Frame> => of.filter(({ type }) => type === "event")

const decodeEvent = Schema.decodeUnknownSync(Event)
export const eventOf = ({ data }: Frame) => decodeEvent(data)
export const seqOf = (frame: Frame): number => eventOf(frame).seq

/** The texts of the prompts that a session's events admit. */
export const admitted = (of: ReadonlyArray<Frame>): ReadonlyArray<unknown> =>
  events(of).flatMap((frame) => {
    const { data, type } = eventOf(frame)
    return type === "session.next.prompt.admitted" ? [data] : []
  })

/** A stream of a session as it is stored. */
export const replay = (target: Target, id: string, query = "", headers: Record<string, string> = {}) =>
  allFrames(target, `/sessions/${id}/events?follow=0${query}`, headers)

export const after = (cursor: string | number | undefined): string => `&after=${encodeURIComponent(cursor ?? "")}`

export const refusal = async (target: Target, path: string, status: number, init?: RequestInit) => {
  const response = await request(target, path, init)
  same(response.status, status, `status of ${init?.method ?? "GET"} ${path}`)
  const text = await response.text()
  same(response.headers.get("content-type")?.split(";")[0], "application/json", `content type of ${path}`)
  const fields = Schema.decodeUnknownSync(Failure)(text)
  return { code: fields._tag, message: fields.message, fields, text, response }
}

export const refuses = async (target: Target, path: string, status: number, code: string, init?: RequestInit) => {
  const refused = await refusal(target, path, status, init)
  same(refused.code, code, `code of ${path}`)
  return refused
}

/** Whether numbers are 0, 1, 2 and so on. */
export const counts = (numbers: ReadonlyArray<number>, from = 0): void =>
  same(
    numbers,
    numbers.map((_, index) => from + index),
    "sequence numbers"
  )
