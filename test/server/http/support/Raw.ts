/** Requests written byte by byte, for what `fetch` does not send. */
import { connect } from "node:net"
import { Effect } from "effect"

/** A response as it was read until the server closed the connection. */
export interface RawResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

const parsed = (text: string): RawResponse => {
  const [head = "", ...body] = text.split("\r\n\r\n")
  const [first = "", ...lines] = head.split("\r\n")
  const headers = lines.map((line) => {
    const [name = "", ...value] = line.split(":")
    return [name.toLowerCase(), value.join(":").trim()] as const
  })
  return {
    status: Number(first.split(" ")[1] ?? "0"),
    headers: Object.fromEntries(headers),
    body: body.join("\r\n\r\n")
  }
}

/** Sends the bytes, and reads until the server closes. A server that closes without a word has the status 0. */
export const raw = (url: string, bytes: string): Effect.Effect<RawResponse> =>
  Effect.async((resume) => {
    const { hostname, port } = new URL(url)
    let text = ""
    const socket = connect(Number(port), hostname, () => socket.write(bytes))
    socket.setEncoding("utf8").on("data", (part: string) => void (text += part))
    socket.on("error", () => {})
    socket.once("close", () => resume(Effect.succeed(parsed(text))))
    return Effect.sync(() => socket.destroy())
  })

/** A request without a body, whose connection the server closes after the answer. */
export const get = (url: string, path: string, headers: Readonly<Record<string, string>>, method = "GET") => {
  const lines = Object.entries({ connection: "close", ...headers }).map(([name, value]) => `${name}: ${value}\r\n`)
  return raw(url, `${method} ${path} HTTP/1.1\r\n${lines.join("")}\r\n`)
}
