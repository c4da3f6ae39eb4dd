/** A plain HTTP client for tests: any method and header, and streams that are read as they arrive. */
import { request, type IncomingHttpHeaders, type IncomingMessage } from "node:http"
import { Effect, type Scope } from "effect"
import { waitingFor } from "../../support/Waiting.ts"

export interface Asking {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
}

export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

const asking = (url: string, { headers = {}, method = "GET" }: Asking) =>
  request(url, { method, headers, agent: false })

/** One answer, with its whole body. */
export const ask = (url: string, options: Asking = {}): Effect.Effect<Answer> =>
  Effect.async<Answer>((resume) => {
    const sent = asking(url, options)
    sent.once("error", (error) => resume(Effect.die(error)))
    sent.once("response", (response) => {
      let body = ""
      response.setEncoding("utf8").on("data", (part: string) => (body += part))
      response.once("end", () =>
        resume(Effect.succeed({ status: response.statusCode ?? 0, headers: response.headers, body }))
      )
    })
    sent.end()
    return Effect.sync(() => sent.destroy())
  }).pipe(waitingFor(`the answer of ${url}`))

/** One event of a stream. */
export interface Received {
  readonly id: string | undefined
  readonly event: string | undefined
  readonly data: string | undefined
}

const field = (block: string, name: string): string | undefined =>
  block
    .split("\n")
    .find((line) => line.startsWith(`${name}: `))
    ?.slice(name.length + 2)

/** The events of a stream's text; comments and what is incomplete are left out. */
export const received = (text: string): ReadonlyArray<Received> =>
  text
    .split("\n\n")
    .slice(0, -1)
    .map((block) => ({ id: field(block, "id"), event: field(block, "event"), data: field(block, "data") }))
    .filter(({ data }) => data !== undefined)

export interface Reader {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** Completes when the text so far satisfies the predicate. */
  readonly until: (holds: (text: string) => boolean) => Effect.Effect<string>
  /** Completes when the server has ended the connection, with the text. */
  readonly ended: Effect.Effect<string>
  readonly pause: Effect.Effect<void>
  readonly resume: Effect.Effect<void>
}

const readerOf = (response: IncomingMessage): Reader => {
  let [text, isEnded] = ["", false]
  const watchers = new Set<() => void>()
  const look = () => [...watchers].forEach((watcher) => watcher())
  response.setEncoding("utf8").on("data", (part: string) => {
    text += part
    look()
  })
  response.on("error", () => undefined)
  response.once("close", () => {
    isEnded = true
    look()
  })
  const until = (holds: () => boolean) =>
    Effect.async<string>((resume) => {
      const watcher = () => {
        if (!holds()) return
        watchers.delete(watcher)
        resume(Effect.succeed(text))
      }
      watchers.add(watcher)
      watcher()
      return Effect.sync(() => watchers.delete(watcher))
    }).pipe(waitingFor(() => `a stream: ${text.slice(-400)}`))
  return {
    status: response.statusCode ?? 0,
    headers: response.headers,
    until: (holds) => until(() => holds(text)),
    ended: until(() => isEnded),
    pause: Effect.sync(() => void response.pause()),
    resume: Effect.sync(() => void response.resume())
  }
}

/** Opens a stream and reads it until the scope closes. */
export const read = (url: string, options: Asking = {}): Effect.Effect<Reader, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.async<{ readonly reader: Reader; readonly end: () => void }>((resume) => {
      const sent = asking(url, options)
      sent.once("error", (error) => resume(Effect.die(error)))
      sent.once("response", (response) =>
        resume(Effect.succeed({ reader: readerOf(response), end: () => void response.destroy() }))
      )
      sent.end()
    }).pipe(waitingFor(`the stream ${url}`)),
    ({ end }) => Effect.sync(end)
  ).pipe(Effect.map(({ reader }) => reader))
