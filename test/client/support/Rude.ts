/** A server that does to each request what a test says, without any rule of the API. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import { Effect } from "effect"

/** Answers the request with this number, from 0. */
export type Conduct = (number: number, response: ServerResponse, request: IncomingMessage) => void

/** Serves on a free port until the scope closes; returns the address, and how many requests came. */
export const serve = (conduct: Conduct) =>
  Effect.acquireRelease(
    Effect.async<{ readonly url: string; readonly requests: () => number; readonly close: () => void }>((resume) => {
      let number = 0
      const server = createServer((request, response) => {
        conduct(number, response, request)
        number += 1
      })
      server.listen(0, "127.0.0.1", () => {
        const address = server.address()
        const port = typeof address === "object" && address !== null ? address.port : 0
        const close = () => {
          server.closeAllConnections()
          server.close()
        }
        resume(Effect.succeed({ url: `http://127.0.0.1:${port}`, requests: () => number, close }))
      })
    }),
    ({ close }) => Effect.sync(close)
  )

/** Begins a stream with these frames, and leaves it open. */
export const streams = (response: ServerResponse, ...frames: ReadonlyArray<string>): void => {
  response.writeHead(200, { "content-type": "text/event-stream" })
  response.write(`: open\n\n${frames.join("")}`)
}

/** One frame. */
export const frame = (type: string, data: unknown, id?: string): string =>
  `event: ${type}\n${id === undefined ? "" : `id: ${id}\n`}data: ${JSON.stringify(data)}\n\n`

/** An error as the API writes it. */
export const refuses = (response: ServerResponse, status: number, body: object): void => {
  response.writeHead(status, { "content-type": "application/json" })
  response.end(JSON.stringify(body))
}
