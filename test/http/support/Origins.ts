/** HTTP servers on loopback, each a separate origin, that record their requests. */
import { Effect, type Scope } from "effect"
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"

export interface Asked {
  readonly method: string
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

export interface Origin {
  readonly port: number
  readonly url: string
  readonly asked: ReadonlyArray<Asked>
}

export type Answer = (request: Asked, response: ServerResponse) => void

const read = (request: IncomingMessage, done: (asked: Asked) => void) => {
  const bytes: Array<Buffer> = []
  request.on("data", (chunk: Buffer) => bytes.push(chunk))
  request.on("end", () =>
    done({
      method: request.method ?? "",
      path: request.url ?? "",
      headers: request.headers,
      body: Buffer.concat(bytes).toString("utf8")
    })
  )
}

/** A server that runs until the scope closes. */
export const origin = (answer: Answer): Effect.Effect<Origin, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.async<{ readonly port: number; readonly asked: ReadonlyArray<Asked>; readonly close: () => void }>(
        (resume) => {
          const asked: Array<Asked> = []
          const server = createServer((request, response) =>
            read(request, (one) => {
              asked.push(one)
              answer(one, response)
            })
          )
          server.listen(0, () => {
            // A listening server has an address of this form.
            const { port } = server.address() as AddressInfo
            resume(Effect.succeed({ port, asked, close: () => (server.closeAllConnections(), server.close()) }))
          })
        }
      ),
      ({ close }) => Effect.sync(close)
    ),
    ({ asked, port }) => ({ asked, port, url: `http://127.0.0.1:${port}` })
  )

/** Answers with a redirect. */
export const redirect =
  (status: number, location: string): Answer =>
  (_, response) =>
    void response.writeHead(status, { location }).end("moved")

/** Answers with success. */
export const fine: Answer = (_, response) => void response.end("fine")
