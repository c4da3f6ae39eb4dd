/** The server under test: requests, and the frames of its streams. Knows nothing of Daybook's code. */
import { request as rawRequest } from "node:http"
import { request as secureRequest } from "node:https"
import { Schema } from "effect"

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

/** The JSON of a successful answer. */
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

/** All frames of a stream that ends. */
export const allFrames = (...given: Parameters<typeof texts>): Promise<ReadonlyArray<Frame>> =>
  framesUntil(() => false, ...given)
