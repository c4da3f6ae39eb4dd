/** Servers that break one clause each: they pass requests on to a true server, and change what is asked or answered. */
import { type IncomingMessage, request as ask, type ServerResponse } from "node:http"
import * as Rude from "../../client/support/Rude.ts"

/** A request as it is passed on. */
export interface Asked {
  readonly method: string
  readonly url: URL
  /** Names and values in turns, as they were sent. */
  headers: ReadonlyArray<string>
  body: string
}

/** An answer that is not a stream. */
export interface Answered {
  status: number
  readonly headers: Record<string, string | ReadonlyArray<string> | undefined>
  body: string
}

/** A frame of a stream: the lines of a server-sent event, or a line of JSON. The seam has passed before the frames behind it. */
export interface Sent {
  readonly text: string
  readonly number: number
  readonly isPastSeam: boolean
  readonly asked: Asked
}

/** What a server does wrong. */
export interface Fault {
  /** Changes the request; `false` leaves it without an answer. */
  readonly asks?: (asked: Asked) => false | void
  readonly answers?: (answered: Answered, asked: Asked) => void
  /** The frames that are sent in place of one; `undefined` ends the stream. */
  readonly sends?: (sent: Sent) => ReadonlyArray<string> | undefined
  /** Changes the head of a stream. */
  readonly begins?: (headers: Record<string, string | ReadonlyArray<string> | undefined>) => void
}

export const header = ({ headers }: Asked, name: string): string | undefined =>
  headers.find((_, index) => index % 2 === 1 && headers[index - 1]?.toLowerCase() === name)

/** Gives a header this value, and takes it away without one. */
export const setHeader = (asked: Asked, name: string, value?: string): void => {
  const kept = asked.headers.filter((_, index) => asked.headers[index - (index % 2)]?.toLowerCase() !== name)
  asked.headers = value === undefined ? kept : [...kept, name, value]
}

const streaming = /^(text\/event-stream|application\/x-ndjson)/

const stream = (from: IncomingMessage, to: ServerResponse, asked: Asked, { begins, sends }: Fault): void => {
  const separator = from.headers["content-type"]?.startsWith("text") === true ? "\n\n" : "\n"
  const headers = { ...from.headers }
  begins?.(headers)
  to.writeHead(200, headers as Record<string, string>)
  let [rest, number, isPastSeam] = ["", 0, false]
  from.setEncoding("utf8").on("data", (text: string) => {
    const blocks = (rest + text).split(separator)
    rest = blocks.pop() ?? ""
    for (const block of blocks) {
      const changed = sends === undefined ? [block] : sends({ text: block, number, isPastSeam, asked })
      number++
      isPastSeam ||= block.includes("replay.complete")
      if (changed === undefined) {
        from.destroy()
        return void to.end()
      }
      for (const each of changed) to.write(each + separator)
    }
  })
  from.once("end", () => to.end())
  to.once("close", () => from.destroy())
}

/** Serves on a free port until the scope closes. */
export const serve = (trueUrl: string, fault: Fault) =>
  Rude.serve((_number, response, request) => {
    const chunks: Array<Buffer> = []
    request.on("data", (chunk: Buffer) => chunks.push(chunk))
    request.once("end", () => {
      const [own, to] = [request.headers.host ?? "", new URL(trueUrl).host]
      const isOwn = own.startsWith("127.0.0.1")
      const asked: Asked = {
        method: request.method ?? "GET",
        url: new URL(request.url ?? "/", trueUrl),
        headers: request.rawHeaders.filter(
          (_, index) => !/^(?:host|content-length|connection)$/i.test(request.rawHeaders[index - (index % 2)] ?? "")
        ),
        body: Buffer.concat(chunks).toString("utf8")
      }
      setHeader(asked, "host", isOwn ? to : own)
      if (fault.asks?.(asked) === false) return
      const body = Buffer.from(asked.body)
      const sent = ask(
        asked.url,
        { method: asked.method, headers: [...asked.headers, "content-length", String(body.length)] },
        (from) => {
          if (streaming.test(from.headers["content-type"] ?? "")) return stream(from, response, asked, fault)
          const parts: Array<Buffer> = []
          from.on("data", (part: Buffer) => parts.push(part))
          from.once("end", () => {
            const { "content-length": _, "transfer-encoding": __, connection: ___, ...headers } = from.headers
            const answered: Answered = {
              status: from.statusCode ?? 500,
              headers,
              body: Buffer.concat(parts).toString("utf8")
            }
            fault.answers?.(answered, asked)
            response.writeHead(answered.status, answered.headers as Record<string, string>)
            response.end(answered.body)
          })
        }
      )
      sent.on("error", () => response.destroy())
      response.once("close", () => sent.destroy())
      sent.end(body)
    })
  })
