/**
 * Serves the routes over HTTP. A request passes, in this order: the faults before it, the token, the limits, the route, the
 * faults after it. Spec of the routes: `Routes.ts`; of the faults: `Faults.ts`.
 */
import { Effect, Either, Schema } from "effect"
import type { IncomingMessage, ServerResponse } from "node:http"
import { setTimeout as sleep } from "node:timers/promises"
import type { Fault } from "./Faults.ts"
import type { File } from "./Messages.ts"
import * as RateLimits from "./RateLimits.ts"
import * as Refusal from "./Refusal.ts"
import { match, type Route } from "./Routes.ts"
import { type Asked, changed, now, type World } from "./World.ts"

interface Reply {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  readonly json?: unknown
}

const parse = (text: string): unknown =>
  text === "" ? undefined : Either.getOrUndefined(Schema.decodeUnknownEither(Schema.parseJson())(text))

/** The JSON of a request and its files; discord.js sends both as a form. */
const read = async (
  request: IncomingMessage
): Promise<{ readonly body: unknown; readonly files: ReadonlyArray<File> }> => {
  const parts: Array<Uint8Array> = []
  for await (const part of request) parts.push(part)
  const bytes = Buffer.concat(parts)
  const type = request.headers["content-type"] ?? ""
  if (!type.startsWith("multipart/form-data")) return { body: parse(bytes.toString("utf8")), files: [] }
  const form = await new Response(bytes, { headers: { "content-type": type } }).formData()
  const files: Array<File> = []
  let body: unknown
  for (const [field, value] of form) {
    if (typeof value !== "string")
      files.push({
        field,
        filename: value.name,
        contentType: value.type === "" ? "application/octet-stream" : value.type,
        bytes: new Uint8Array(await value.arrayBuffer())
      })
    else if (field === "payload_json") body = parse(value)
  }
  return { body, files }
}

const refused = ({ code, errors, message, status }: Refusal.Refusal): Reply => ({
  status,
  json: { message, code, ...(errors === undefined ? {} : { errors }) }
})

const failure = (status: number): Reply => ({ status, json: { message: "Upstream error", code: 0 } })

const limited = (seconds: number, global: boolean, headers: Readonly<Record<string, string>> = {}): Reply => ({
  status: 429,
  headers: { "retry-after": String(Math.ceil(seconds)), "x-ratelimit-scope": "shared", ...headers },
  json: { message: "You are being rate limited.", retry_after: seconds, global }
})

/** What a fault answers instead of the route. */
const insteadOf = (fault: Fault | undefined): Reply | undefined => {
  if (fault?.kind === "failed") return failure(fault.status)
  if (fault?.kind !== "limited") return undefined
  return limited(fault.seconds, fault.global === true, fault.global === true ? { "x-ratelimit-global": "true" } : {})
}

const send = (response: ServerResponse, { headers = {}, json, status }: Reply): void => {
  // A 204 with a content type of JSON would fail in the client, which reads a body then.
  response.writeHead(status, { ...(json === undefined ? {} : { "content-type": "application/json" }), ...headers })
  response.end(json === undefined ? undefined : JSON.stringify(json))
}

const majorOf = (params: Readonly<Record<string, string>>) =>
  params["channel"] ?? params["guild"] ?? params["token"] ?? "global"

interface Input {
  readonly world: World
  readonly method: string
  readonly url: URL
  readonly token: string | undefined
  readonly body: unknown
  readonly files: ReadonlyArray<File>
}

/** Runs the route, after the token and the limits. */
const answer = ({ body, files, method, token, url, world }: Input): Reply => {
  const found = match(method, url.pathname.replace(/^\/api\/v10/, ""))
  if (found === undefined) return refused(Refusal.unknownRoute())
  const { params, route }: { route: Route; params: Readonly<Record<string, string>> } = found
  if (!route.open && token !== `Bot ${world.settings.token}`) return refused(Refusal.unauthorized())
  const verdict = RateLimits.count(world, { method, route: route.path, major: majorOf(params), exempt: route.open })
  if (verdict.retryAfter !== undefined) return limited(verdict.retryAfter, verdict.global, verdict.headers)
  const made = Effect.runSync(Effect.either(route.answer({ world, params, query: url.searchParams, body, files })))
  const reply = Either.match(made, {
    onLeft: refused,
    onRight: (json): Reply => (json === undefined ? { status: 204 } : { status: 200, json })
  })
  return { ...reply, headers: verdict.headers }
}

const serveAttachment = (world: World, path: string, response: ServerResponse): boolean => {
  const id = /^\/attachments\/\d+\/(\d+)\//.exec(path)?.[1]
  const attachment = id === undefined ? undefined : world.attachments.get(id)
  if (attachment === undefined) return false
  response.writeHead(200, { "content-type": attachment.contentType, "content-length": attachment.bytes.length })
  response.end(attachment.bytes)
  return true
}

const serve = async (world: World, request: IncomingMessage, response: ServerResponse): Promise<void> => {
  const url = new URL(request.url ?? "/", "http://127.0.0.1")
  if (serveAttachment(world, url.pathname, response)) return
  const { body, files } = await read(request)
  const method = request.method ?? "GET"
  const fault = world.faults.ofRequest(method, url.pathname)
  const asked: Asked = { at: now(world), method, path: url.pathname, body, status: 0, fault: fault?.kind }
  world.asked.push(asked)
  changed(world)
  if (fault?.kind === "refused") return void request.socket.destroy()
  if (fault?.kind === "late") await sleep(fault.millis)
  const token = request.headers.authorization
  const reply = insteadOf(fault) ?? answer({ world, method, url, token, body, files })
  // The plan's losses come after the effect, and not with a refusal, which has none.
  if (fault?.kind === "lost") request.socket.destroy()
  else if (fault?.kind === "garbled") request.socket.end("nothing that is HTTP\r\n\r\n")
  else if (fault?.kind !== "silent") {
    const sent = fault?.kind === "failedAfter" ? failure(fault.status) : reply
    asked.status = sent.status
    send(response, sent)
  }
  changed(world)
}

/** Handles requests; a defect of the loopback is kept for the laws and answered as a 500. */
export const handler = (world: World) => (request: IncomingMessage, response: ServerResponse) => {
  serve(world, request, response).catch((defect: unknown) => {
    // A client that is killed breaks off its request.
    if (request.destroyed && !request.complete) return
    world.defects.push(defect)
    if (!response.headersSent) send(response, failure(500))
    changed(world)
  })
}
