/**
 * Runs `daybook serve`: the runtime on the database, the exporter of its files, a socket for each agent and model, and HTTP.
 * Spec: CL-120..CL-126, CL-300 in specs/cli.md.
 *
 *   signal -> HTTP and sockets close -> runs are interrupted -> files reach the end of the log -> the database closes
 */
import { join } from "node:path"
import { Effect, Struct } from "effect"
import { canLead } from "@daybook/core/domain/Agent"
import { Sessions } from "@daybook/core/session/Sessions"
import { Exporter } from "@daybook/files/Exporter"
import { nameFrom } from "@daybook/files/layout/Layout"
import { type Asks, NameTaken, serve, type ServedModel, type ServedSocket } from "@daybook/server"
import * as DatabasePath from "../config/DatabasePath.ts"
import { jsonLine, oneLine } from "../render/Plain.ts"
import { NotFound, UsageError } from "../support/Errors.ts"
import * as Garbage from "../support/Garbage.ts"
import * as Signal from "../support/Signal.ts"
import * as Watchdog from "../support/Watchdog.ts"
import { Output } from "../terminal/Output.ts"
import * as PermissionPrompt from "../terminal/PermissionPrompt.ts"
import * as Question from "../terminal/Question.ts"
import * as QuestionPrompt from "../terminal/QuestionPrompt.ts"
import * as ServerLog from "../terminal/ServerLog.ts"
import * as ClientAsks from "./ClientAsks.ts"
import { beside, rootOf, shared } from "./FilesHost.ts"
import * as Host from "./Host.ts"
import type { HttpAddress, HttpRequest } from "./HttpWork.ts"
import { findAgent, readModel, resolveModel, trusting, withNoSessions, withTelemetry } from "./Runtime.ts"

/** An agent or a model as typed, and the name it is served under. */
export interface Written {
  readonly text: string
  readonly alias: string | undefined
}

/** A request to serve. Names are valid; everything else is checked before anything is created. */
export interface Request {
  readonly agents: ReadonlyArray<Written>
  readonly models: ReadonlyArray<Written>
  readonly root: string | undefined
  /** By its real path. */
  readonly chroot: string | undefined
  readonly http: HttpRequest | undefined
  readonly logFormat: "text" | "json"
  /** Default: info, and at a terminal, where stdout names the listeners, warning. */
  readonly logLevel: ServerLog.Level | undefined
  /** Print the server's token also where stdout is not a terminal. */
  readonly showToken: boolean
  readonly json: boolean
}

// The build defines it.
declare const DAYBOOK_VERSION: string

const uid = process.getuid?.() ?? 0

/** The folder that an agent sees as its whole file system. */
const worldOf = ({ chroot }: Request, root: string, { alias, text }: Request["agents"][number]): string =>
  chroot ?? join(root, "home", String(uid), "agent", alias ?? text, "root")

/** Checks before anything is created that each agent and model exists and that their names are unique. */
const checked = Effect.fn("Command.serve.check")(function* (request: Request, root: string) {
  const { agents, models } = request
  for (const each of agents) {
    const { text: name } = each
    const agent = yield* findAgent(name, worldOf(request, root, each)).pipe(
      Effect.mapError(
        ({ message }) =>
          new NotFound({ message: `${message}; to serve an agent under this name: --agent build=${name}` })
      )
    )
    if (!canLead(agent)) {
      return yield* new UsageError({ message: `agent "${name}" only works for other agents, and cannot be served` })
    }
    yield* resolveModel(agent.model)
  }
  const served = yield* Effect.forEach(models, ({ alias, text }) =>
    Effect.map(readModel(text), (ref) => ({ ref, alias: alias ?? nameFrom(ref.id.split("/").at(-1) ?? ref.id) }))
  )
  for (const [kind, names] of [
    ["agent", agents.map(({ alias, text }) => alias ?? text)],
    ["model", served.map(({ alias }) => alias)]
  ] as const) {
    const twice = names.find((name, at) => names.indexOf(name) !== at)
    if (twice !== undefined) return yield* new NameTaken({ kind, name: twice })
  }
  return served
})

/** Asks clients for permissions, and also the person at the terminal if there is one: the first answer counts. */
const askerOf = (asks: Asks.Asks) => (Question.canAsk() ? asks.layerBeside(PermissionPrompt.layer) : asks.layer)

const worldsOf = (request: Request, root: string) => request.agents.map((agent) => worldOf(request, root, agent))

/** The request with its root, resolved models and open asks. */
interface Place {
  readonly request: Request
  /** The database. */
  readonly filename: string
  readonly root: string
  readonly models: ReadonlyArray<ServedModel>
  readonly asks: Asks.Asks
}

/** The sockets and the HTTP address that are served. */
interface Opened {
  readonly sockets: ReadonlyArray<ServedSocket>
  readonly http: HttpAddress | undefined
}

/** The address of HTTP as it is printed: with the token only for a person, or for a program that asked. */
const shownAddress = ({ request }: Place, { token, url }: HttpAddress, terminal: boolean) => ({
  url,
  inspector: terminal || request.showToken ? `${url}/#token=${token}` : `${url}/`
})

const socketLine = ({ kind, name, path, space }: ServedSocket): string => {
  const where = space === undefined ? "" : ` in the shared space ${space}`
  return `${kind} ${name}${where} listens at ${oneLine(path, 400)}`
}

const httpLine = ({ url }: HttpAddress): string => `HTTP listens at ${url}`

const announce = (place: Place, { http, sockets }: Opened, terminal: boolean): string => {
  const { request, root } = place
  const address = http && shownAddress(place, http, terminal)
  if (request.json) {
    const listed = sockets.map((socket) => Struct.pick(socket, "kind", "name", "space", "path"))
    return `${jsonLine({ type: "ready", root, sockets: listed, ...(address && { http: address }) }, terminal)}\n`
  }
  const lines = sockets.map((socket) => `${socketLine(socket)}\n`)
  const web = http === undefined || address === undefined ? "" : `${httpLine(http)}\nopen ${address.inspector}\n`
  return `${lines.join("")}${web}ready\n`
}

/** Logs where it listens. */
const logListeners = ({ http, sockets }: Opened) =>
  Effect.forEach([...sockets.map(socketLine), ...(http === undefined ? [] : [httpLine(http)]), "ready"], (line) =>
    Effect.logInfo(line)
  )

/** Opens the sockets, which wait for the files. */
const openSockets = ({ asks, models, request, root }: Place) =>
  Effect.gen(function* () {
    return yield* serve({
      root,
      uid,
      agents: request.agents.map(({ alias, text }) => ({ name: text, alias, chroot: request.chroot })),
      models,
      shared: yield* shared,
      asks,
      temp: Host.layerInMemory(askerOf(asks), root, worldsOf(request, root))
    })
  })

/** Opens HTTP, if it is wanted. */
const openHttp = ({ asks, filename, request: { http } }: Place) =>
  http === undefined
    ? Effect.succeed(undefined)
    : Effect.flatMap(
        Effect.promise(() => import("./HttpWork.ts")),
        ({ serve }) => serve(http, filename, asks)
      )

// Serving continues without a reader of stdout. Any other failed write is an error: a caller would wait for `ready` for ever.
const ready = (place: Place, opened: Opened) =>
  Effect.gen(function* () {
    const output = yield* Output
    yield* Effect.catchTag(output.write(announce(place, opened, output.terminal)), "OutputClosed", () => Effect.void)
    yield* logListeners(opened)
  })

/** Opens the sockets and HTTP, and announces them once the files are current. */
const open = Effect.fn("Command.serve.open")(function* (place: Place) {
  const opened = { sockets: yield* openSockets(place), http: yield* openHttp(place) }
  yield* QuestionPrompt.atTerminal
  yield* (yield* Exporter).catchUp
  yield* ready(place, opened)
  yield* Garbage.started
})

/** Opens HTTP alone: no files are kept. */
const openAlone = Effect.fn("Command.serve.openAlone")(function* (place: Place) {
  const http = yield* openHttp(place)
  yield* QuestionPrompt.atTerminal
  yield* ready(place, { sockets: [], http })
  yield* Garbage.started
})

/** Serves until the signal, then ends what runs. */
const until = <A, E, R>(opening: Effect.Effect<A, E, R>, signal: Effect.Effect<Signal.Name>) =>
  Effect.gen(function* () {
    const stopped = Effect.tap(signal, (name) => Effect.logInfo(`stopping: ${name}`))
    yield* Effect.raceFirst(Effect.scoped(Effect.zipRight(opening, Effect.never)), stopped)
    const sessions = yield* Sessions
    yield* Effect.forEach(yield* sessions.active, (id) => sessions.interrupt(id), { concurrency: 16, discard: true })
  })

/** Serves until the signal, and returns when the files say so too. */
const serving = (place: Place, signal: Effect.Effect<Signal.Name>) =>
  Effect.zipRight(
    until(open(place), signal),
    Effect.flatMap(Exporter, (exporter) => exporter.reached(Number.MAX_SAFE_INTEGER))
  ).pipe(Effect.provide(beside(place.filename, place.root)))

const isAlone = ({ agents, models }: Request) => agents.length + models.length === 0

/** Serves the request until a signal. */
export const run = Effect.fn("Command.serve")(function* (request: Request) {
  const root = yield* rootOf(request.root)
  if (request.chroot !== undefined) yield* trusting(request.chroot)
  const models = yield* withNoSessions(checked(request, root))
  const filename = yield* DatabasePath.writable
  const asks = yield* ClientAsks.make
  const place = { request, filename, root, models, asks }
  const host = {
    servers: true,
    background: true,
    asker: askerOf(asks),
    answered: request.http !== undefined,
    root,
    worlds: worldsOf(request, root)
  }
  yield* Effect.annotateLogs(Effect.logInfo(`daybook ${DAYBOOK_VERSION} starts`), { pid: process.pid, filename }).pipe(
    Effect.zipRight(
      Effect.flatMap(Signal.first, (signal) =>
        Effect.zipRight(
          Watchdog.begin(),
          isAlone(request) ? until(openAlone(place), signal) : serving(place, signal)
        ).pipe(Effect.provide(Host.layer(filename, host)))
      )
    ),
    Effect.zipRight(Effect.logInfo("stopped")),
    Effect.scoped,
    withTelemetry,
    Effect.provide(ServerLog.layer(request.logFormat, request.logLevel))
  )
})
