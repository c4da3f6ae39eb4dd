/** The server under test: requests, and the frames of its streams. Knows nothing of Daybook's code. */
import { Schema } from "effect"

export interface Target {
  /** For example `http://127.0.0.1:4310`. */
  readonly baseUrl: string
  /** A token that may create sessions and prompt. */
  readonly token: string
}

/** A frame of a stream: its type, its cursor, and its data. */
export interface Frame {
  readonly type: string
  readonly cursor: string | undefined
  readonly data: unknown
}

const Json = Schema.parseJson()
const json = Schema.decodeUnknownSync(Json)

/** How long a stream may keep a test waiting. */
const patience = 10_000

/** Sends a request with the token, unless another one is given. */
export const request = ({ baseUrl, token }: Target, path: string, init: RequestInit = {}): Promise<Response> =>
  fetch(`${baseUrl}${path}`, {
    signal: AbortSignal.timeout(patience),
    ...init,
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json", ...init.headers }
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

const frameOf = (block: string): Frame | undefined => {
  const fields = new Map(
    block
      .split("\n")
      .filter((line) => line !== "" && !line.startsWith(":"))
      .map((line) => {
        const at = line.indexOf(":")
        return [line.slice(0, at), line.slice(at + 1).replace(/^ /, "")] as const
      })
  )
  const data = fields.get("data")
  if (data === undefined) return undefined
  return { type: fields.get("event") ?? "message", cursor: fields.get("id"), data: json(data) }
}

/** The frames of a stream. Leaving the loop closes the connection. */
export async function* frames(
  target: Target,
  path: string,
  headers: Record<string, string> = {}
): AsyncGenerator<Frame> {
  const response = await request(target, path, { headers: { accept: "text/event-stream", ...headers } })
  if (!response.ok || response.body === null) throw new Error(`${path} answered ${response.status}`)
  let rest = ""
  for await (const text of response.body.pipeThrough(new TextDecoderStream())) {
    const blocks = (rest + text).split("\n\n")
    rest = blocks.pop() ?? ""
    for (const block of blocks) {
      const frame = frameOf(block)
      if (frame !== undefined) yield frame
    }
  }
}

/** All frames of a stream that ends. */
export const allFrames = async (...given: Parameters<typeof frames>): Promise<ReadonlyArray<Frame>> => {
  const found: Array<Frame> = []
  for await (const frame of frames(...given)) found.push(frame)
  return found
}
