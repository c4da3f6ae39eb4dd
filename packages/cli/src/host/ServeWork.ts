/**
 * Runs `daybook serve`: the runtime on the database, the exporter of its files, and a socket for each agent and model.
 * Spec: CL-120..CL-126 in specs/cli.md.
 *
 *   signal -> sockets close -> runs are interrupted -> files reach the end of the log -> the database closes
 */
import { join } from "node:path"
import { Effect, Layer, Struct } from "effect"
import { canLead } from "@daybook/core/domain/Agent"
import { Sessions } from "@daybook/core/session/Sessions"
import { Exporter } from "@daybook/files/Exporter"
import { nameFrom } from "@daybook/files/layout/Layout"
import { Asks, NameTaken, serve, type ServedModel, type ServedSocket } from "@daybook/server"
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
import { beside, rootOf, shared } from "./FilesHost.ts"
import * as Host from "./Host.ts"
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
  readonly logFormat: "text" | "json"
  readonly logLevel: "debug" | "info" | "warning" | "error" | "none"
  readonly json: boolean
}

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
  readonly root: string
  readonly models: ReadonlyArray<ServedModel>
  readonly asks: Asks.Asks
}

const announce = ({ request, root }: Place, sockets: ReadonlyArray<ServedSocket>, terminal: boolean): string => {
  if (request.json) {
    const listed = sockets.map((socket) => Struct.pick(socket, "kind", "name", "space", "path"))
    return `${jsonLine({ type: "ready", root, sockets: listed }, terminal)}\n`
  }
  const lines = sockets.map(({ kind, name, path, space }) => {
    const where = space === undefined ? "" : ` in the shared space ${space}`
    return `${kind} ${name}${where} listens at ${oneLine(path, 400)}\n`
  })
  return `${lines.join("")}ready\n`
}

/** Opens the sockets, and announces them once the files are current. */
const open = Effect.fn("Command.serve.open")(function* (place: Place) {
  const { asks, models, request, root } = place
  const output = yield* Output
  const sockets = yield* serve({
    root,
    uid,
    agents: request.agents.map(({ alias, text }) => ({ name: text, alias, chroot: request.chroot })),
    models,
    shared: yield* shared,
    asks,
    temp: Host.layerInMemory(askerOf(asks), root, worldsOf(request, root))
  })
  yield* QuestionPrompt.atTerminal
  yield* (yield* Exporter).catchUp
  // Serving continues without a reader of stdout. Any other failed write is an error: a caller would wait for `ready` for ever.
  yield* Effect.catchTag(output.write(announce(place, sockets, output.terminal)), "OutputClosed", () => Effect.void)
  Garbage.bound()
})

/** Serves until the signal, and returns when everything has settled. */
const until = Effect.fn("Command.serve.until")(function* (place: Place, signal: Effect.Effect<void>) {
  yield* Effect.raceFirst(Effect.scoped(Effect.zipRight(open(place), Effect.never)), signal)
  const sessions = yield* Sessions
  yield* Effect.forEach(yield* sessions.active, (id) => sessions.interrupt(id), { concurrency: 16, discard: true })
  yield* (yield* Exporter).reached(Number.MAX_SAFE_INTEGER)
})

/** Serves the request until a signal. */
export const run = Effect.fn("Command.serve")(function* (request: Request) {
  const root = yield* rootOf(request.root)
  if (request.chroot !== undefined) yield* trusting(request.chroot)
  const models = yield* withNoSessions(checked(request, root))
  const filename = yield* DatabasePath.writable
  const asks = Asks.make()
  const host = { servers: true, background: true, asker: askerOf(asks), root, worlds: worldsOf(request, root) }
  yield* Effect.scoped(
    Effect.flatMap(Signal.first, (signal) =>
      Effect.zipRight(Watchdog.begin(), until({ request, root, models, asks }, signal)).pipe(
        Effect.provide(Layer.provideMerge(beside(filename, root), Host.layer(filename, host)))
      )
    )
  ).pipe(withTelemetry, Effect.provide(ServerLog.layer(request.logFormat, request.logLevel)))
})
