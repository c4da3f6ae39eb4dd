/** `daybook serve`: serves agents and models on sockets and over HTTP, and keeps their files current. Spec: CL-120..CL-126, CL-300. */
import { join, resolve } from "node:path"
import { Duration, Effect, Struct } from "effect"
import { canLead } from "@daybook/core/domain/Agent"
import { SessionExecution } from "@daybook/core/session/SessionExecution"
import { Exporter } from "@daybook/files/Exporter"
import { nameFrom } from "@daybook/files/layout/Layout"
import { isName, nameRule } from "@daybook/log/domain/Address"
import * as Garbage from "@daybook/log/support/Garbage"
import { type Asks, NameTaken, serve as listen, type ServedModel, type ServedSocket } from "@daybook/server"
import { originOf } from "@daybook/server/http/Site"
import * as Flags from "../arguments/Flags.ts"
import * as Folder from "../arguments/Folder.ts"
import { type FieldValues, verb } from "../arguments/Verb.ts"
import * as DatabasePath from "../config/DatabasePath.ts"
import type { Place } from "../config/DatabasePath.ts"
import * as ClientAsks from "../host/ClientAsks.ts"
import { beside, rootOf, shared } from "../host/FilesHost.ts"
import * as Host from "../host/Host.ts"
import type { HttpAddress, HttpRequest } from "../host/HttpWork.ts"
import { findAgent, readModel, resolveModel, told, trusting, withNoSessions, withTelemetry } from "../host/Runtime.ts"
import * as Logs from "../terminal/Logs.ts"
import { jsonLine, oneLine } from "../render/Plain.ts"
import { NotFound, UsageError } from "../support/Errors.ts"
import * as Signal from "../support/Signal.ts"
import * as Watchdog from "../support/Watchdog.ts"
import { Output } from "../terminal/Output.ts"
import * as PermissionPrompt from "../terminal/PermissionPrompt.ts"
import * as Question from "../terminal/Question.ts"
import * as QuestionPrompt from "../terminal/QuestionPrompt.ts"

/** An agent or a model as typed, and the name it is served under. */
type Written = { readonly text: string; readonly alias: string | undefined }

/** A request to serve. Names are valid; everything else is checked before anything is created. */
interface Request extends Omit<FieldValues<typeof given>, "http" | "node" | "lease" | "drain" | "logFormat"> {
  readonly http: HttpRequest | undefined
  readonly node: Host.Node | undefined
  readonly drain: number
  readonly logFormat: (typeof logFormats)[number]
}

// The build defines it.
declare const DAYBOOK_VERSION: string

const uid = process.getuid?.() ?? 0

/** The folder that an agent sees as its whole file system. */
const worldOf = ({ chroot }: Request, root: string, { alias, text }: Written): string =>
  chroot ?? join(root, "home", String(uid), "agent", alias ?? text, "root")

/** Checks before anything is created that each agent and model exists and that their names are unique. */
const checked = Effect.fn("Command.serve.check")(function* (request: Request, root: string) {
  const { agent: agents, model: models } = request
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

const worldsOf = (request: Request, root: string) => request.agent.map((agent) => worldOf(request, root, agent))

/** The request with its root, resolved models and open asks. */
interface ServeSetup {
  readonly request: Request
  readonly place: Place
  readonly root: string
  readonly models: ReadonlyArray<ServedModel>
  readonly asks: Asks.Asks
}

type OpenDoors = { readonly sockets: ReadonlyArray<ServedSocket>; readonly http: HttpAddress | undefined }

/** The address of HTTP as it is printed: with the token only for a person, or for a program that asked. */
const shownAddress = ({ request }: ServeSetup, { token, url }: HttpAddress, terminal: boolean) => ({
  url,
  inspector: terminal || request.showToken ? `${url}/#token=${token}` : `${url}/`
})

const socketLine = ({ kind, name, path, space }: ServedSocket): string => {
  const where = space === undefined ? "" : ` in the shared space ${space}`
  return `${kind} ${name}${where} listens at ${oneLine(path, 400)}`
}

const httpLine = ({ url }: HttpAddress): string => `HTTP listens at ${url}`

const announce = (place: ServeSetup, { http, sockets }: OpenDoors, terminal: boolean): string => {
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

const logListeners = ({ http, sockets }: OpenDoors) =>
  Effect.forEach([...sockets.map(socketLine), ...(http === undefined ? [] : [httpLine(http)]), "ready"], (line) =>
    Effect.logInfo(line)
  )

/** Opens the sockets, which wait for the files. */
const openSockets = Effect.fnUntraced(function* ({ asks, models, request, root }: ServeSetup) {
  return yield* listen({
    root,
    uid,
    agents: request.agent.map(({ alias, text }) => ({ name: text, alias, chroot: request.chroot })),
    models,
    shared: yield* shared,
    asks,
    temp: Host.layerInMemory(askerOf(asks), root, worldsOf(request, root))
  })
})

/** Opens HTTP, if it is wanted. */
const openHttp = ({ asks, place, request: { http } }: ServeSetup) =>
  http === undefined
    ? Effect.succeed(undefined)
    : Effect.flatMap(
        Effect.promise(() => import("../host/HttpWork.ts")),
        ({ serve }) => serve(http, place, asks)
      )

// Serving continues without a reader of stdout. Any other failed write is an error: a caller would wait for `ready` forever.
const ready = Effect.fnUntraced(function* (place: ServeSetup, opened: OpenDoors) {
  const output = yield* Output
  yield* Effect.catchTag(output.write(announce(place, opened, output.terminal)), "OutputClosed", () => Effect.void)
  yield* logListeners(opened)
})

/** Opens the sockets and HTTP, and announces them once the files are current. */
const open = Effect.fn("Command.serve.open")(function* (place: ServeSetup) {
  const opened = { sockets: yield* openSockets(place), http: yield* openHttp(place) }
  yield* QuestionPrompt.atTerminal
  yield* (yield* Exporter).catchUp
  yield* ready(place, opened)
  yield* Garbage.started
})

/** Opens HTTP alone: no files are kept. */
const openAlone = Effect.fn("Command.serve.openAlone")(function* (place: ServeSetup) {
  const http = yield* openHttp(place)
  yield* QuestionPrompt.atTerminal
  yield* ready(place, { sockets: [], http })
  yield* Garbage.started
})

/**
 * Serves until the signal. SIGTERM hands running work over to the next process, and interrupts the work that still runs after
 * the limit. Other signals interrupt all work.
 */
const until = <A, E, R>({ request }: ServeSetup, opening: Effect.Effect<A, E, R>, signal: Effect.Effect<Signal.Name>) =>
  Effect.gen(function* () {
    const execution = yield* SessionExecution
    const stopped = Effect.tap(signal, (name) =>
      Effect.zipRight(
        Effect.logInfo(`stopping: ${name}`),
        name === "SIGTERM" ? execution.leave(Duration.seconds(request.drain)) : Effect.void
      )
    )
    yield* Effect.raceFirst(Effect.scoped(Effect.zipRight(opening, Effect.never)), stopped)
    yield* execution.left
    yield* execution.stop()
  })

/** Serves until the signal, and returns when the files say so too. */
const serving = (setup: ServeSetup, signal: Effect.Effect<Signal.Name>) =>
  Effect.zipRight(
    until(setup, open(setup), signal),
    Effect.flatMap(Exporter, (exporter) => exporter.reached(Number.MAX_SAFE_INTEGER))
  ).pipe(Effect.provide(beside(setup.place, setup.root)))

const nodeName = (node: Pick<Host.Node, "host" | "port"> | undefined) => node && `${node.host}:${node.port}`

/** The database. Nodes need one that they can share. */
const placeOf = ({ node }: Request) =>
  Effect.zipRight(
    Effect.filterOrFail(
      DatabasePath.place,
      ({ _tag }) => node === undefined || _tag === "Postgres",
      ({ name }) =>
        new UsageError({
          message: `--node needs a database of PostgreSQL, and ${name} is a file: set DAYBOOK_DB to postgres://...`
        })
    ),
    DatabasePath.writable
  )

const isAlone = ({ agent, model }: Pick<Request, "agent" | "model">) => agent.length + model.length === 0

const run = Effect.fn("Command.serve")(function* (request: Request) {
  const root = yield* rootOf(request.root)
  if (request.chroot !== undefined) yield* trusting(request.chroot)
  const models = yield* withNoSessions(checked(request, root))
  const place = yield* placeOf(request)
  const asks = yield* ClientAsks.make
  const setup = { request, place, root, models, asks }
  const host = {
    servers: true,
    background: true,
    asker: askerOf(asks),
    answered: request.http !== undefined,
    node: request.node,
    recovery: request.recovery,
    root,
    worlds: worldsOf(request, root)
  }
  yield* Effect.annotateLogs(Effect.logInfo(`daybook ${DAYBOOK_VERSION} starts`), {
    pid: process.pid,
    filename: place.name
  }).pipe(
    Effect.zipRight(
      Effect.flatMap(Signal.first, (signal) =>
        Effect.zipRight(
          Watchdog.begin(),
          isAlone(request) ? until(setup, openAlone(setup), signal) : serving(setup, signal)
        ).pipe(Effect.provide(Host.layer(place, host)))
      )
    ),
    Effect.zipRight(Effect.logInfo("stopped")),
    Effect.scoped,
    (serving) => withTelemetry(serving, nodeName(request.node)),
    Effect.provide(Logs.layer(request.logFormat, request.logLevel))
  )
})

const recoveries = ["manual", "resume"] as const

const aName = (text: string) => (isName(text) ? Effect.succeed(text) : Effect.fail(nameRule))

const withAlias = (given: string): Effect.Effect<Written, string> => {
  const equals = given.lastIndexOf("=")
  if (equals < 0) return Effect.succeed({ text: given, alias: undefined })
  return Effect.map(aName(given.slice(equals + 1)), (alias) => ({ text: given.slice(0, equals), alias }))
}

const agent = Flags.repeated<Written>(
  "agent",
  "NAME[=ALIAS]",
  "serve this agent, under ALIAS (default: its name); may be repeated",
  (given) => Effect.tap(withAlias(given), ({ text }) => aName(text))
)

const addressOf = (text: string) => {
  const [, given = "", port = ""] = /^(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):(\d{1,5})$/.exec(text) ?? []
  const host = given.replaceAll(/[[\]]/g, "")
  return host === "" || Number(port) > 65_535 ? undefined : { host, port: Number(port) }
}

const http = Flags.value("http", "HOST:PORT", "serve sessions over HTTP at this address", (text) =>
  Effect.mapError(Effect.fromNullable(addressOf(text)), () => "an address with a port, such as 127.0.0.1:4310")
)
const node = Flags.value("node", "HOST:PORT", "be a node of the database; the other nodes reach it here", (text) => {
  const address = addressOf(text)
  return address === undefined || address.port === 0
    ? Effect.fail("an address of this machine with a port, such as 10.0.0.5:4311")
    : Effect.succeed(address)
})

/** Names are parts of the names of shards. */
const longestWorkspace = 30

/** The node with its lease and its workspaces, whose folders must exist. */
const nodeOf = Effect.fnUntraced(function* ({ lease, node, workspace: workspaces }: FieldValues<typeof given>) {
  if (node === undefined) {
    const lonely = lease !== undefined ? "--lease" : workspaces.length > 0 ? "--workspace" : undefined
    return lonely === undefined ? undefined : yield* new UsageError({ message: `${lonely} needs --node HOST:PORT` })
  }
  const folders = yield* Effect.forEach(workspaces, ([name, folder]) =>
    Effect.map(Folder.given(folder, "--workspace"), (real) => [name, real] as const)
  )
  return { ...node, leaseMs: lease && lease * 1_000, workspaces: Object.fromEntries(folders) }
})

const logFormats = ["text", "json"] as const
const logLevels = ["debug", "info", "warning", "error", "none"] as const

const given = {
  words: Flags.many("WORD"),
  agent,
  model: Flags.repeated<Written>(
    "model",
    "P/M[=ALIAS]",
    "serve this model, provider/model, under ALIAS (default: its name); may be repeated",
    withAlias
  ),
  http,
  node,
  workspace: Flags.repeated<readonly [string, string]>(
    "workspace",
    "NAME=DIR",
    "the node has this workspace: sessions that name it run on such nodes only; may be repeated",
    (text) => {
      const [, name = "", folder = ""] = /^([^=]*)=(.+)$/s.exec(text) ?? []
      return isName(name) && name.length <= longestWorkspace
        ? Effect.succeed([name, folder] as const)
        : Effect.fail(`NAME=DIR, with a name of at most ${longestWorkspace} letters, digits, dots and dashes`)
    }
  ),
  httpName: Flags.repeated<string>("http-name", "NAME", "answer under this host name too; may be repeated", (text) =>
    /^[A-Za-z0-9._-]+(?::\d{1,5})?$/.test(text) ? Effect.succeed(text) : Effect.fail("a host name")
  ),
  httpOrigin: Flags.repeated<string>(
    "http-origin",
    "ORIGIN",
    "let pages of this other origin use the server, such as https://app.example; may be repeated",
    (text) => {
      const origin = originOf(text)
      return origin === undefined
        ? Effect.fail("an origin, such as https://app.example:8443: no path, and no `*`")
        : Effect.succeed(origin)
    }
  ),
  httpRoot: Flags.repeated<string>(
    "http-root",
    "DIR",
    "sessions of HTTP clients work only in this folder and below; may be repeated",
    (text) => (text === "" ? Effect.fail("a folder") : Effect.succeed(text))
  ),
  httpRate: Flags.integer("http-rate", "N", "requests a second that one token may send (default: 4000)", 1),
  tlsCert: Flags.text("tls-cert", "FILE", "the certificate of HTTPS with its chain, as PEM"),
  tlsKey: Flags.text("tls-key", "FILE", "the key of the certificate, as PEM"),
  behindProxy: Flags.toggle("behind-proxy", "HTTP is behind a proxy that terminates TLS"),
  lease: Flags.integer(
    "lease",
    "SECONDS",
    "how long the sessions of a silent node stay there, the same on every node (default: 5)",
    1,
    60
  ),
  drain: Flags.integer(
    "drain",
    "SECONDS",
    "how long running turns may go on after SIGTERM before they are interrupted (default: 10)",
    0
  ),
  recovery: Flags.choice(
    "recovery",
    recoveries,
    "what becomes of turns whose process died: they wait for somebody to resume them, or go on (default: manual)"
  ),
  root: Flags.text(
    "root",
    "DIR",
    "the folder of sockets and files (default: DAYBOOK_ROOT, else ctx beside the database)"
  ),
  chroot: Flags.text("chroot", "DIR", "the folder that agents see as / (default: one each, below the root)"),
  trust: Flags.trust,
  showToken: Flags.toggle("show-token", "print the server's token also when stdout is not a terminal"),
  logFormat: Flags.choice("log-format", logFormats, "the format of the log on stderr (default: text)"),
  logLevel: Flags.choice(
    "log-level",
    logLevels,
    "the lowest level that is logged (default: info; at a terminal: warning)"
  ),
  json: Flags.json
}

/** The options of HTTP, which come together. */
const httpOf = (
  written: FieldValues<typeof given>
): Effect.Effect<Omit<HttpRequest, "node"> | undefined, UsageError> => {
  const { behindProxy, http, httpName: names, httpOrigin: origins, httpRate: rate, httpRoot, showToken } = written
  const { tlsCert: cert, tlsKey: key } = written
  if ((cert === undefined) !== (key === undefined)) {
    return new UsageError({ message: "--tls-cert and --tls-key come together: give both" })
  }
  if (http === undefined) {
    const isGiven = cert !== undefined || rate !== undefined || behindProxy || showToken
    return isGiven || names.length + origins.length + httpRoot.length > 0
      ? new UsageError({
          message:
            "--http-name, --http-origin, --http-root, --http-rate, --tls-cert, --tls-key, --behind-proxy and --show-token " +
            "need --http HOST:PORT"
        })
      : Effect.succeed(undefined)
  }
  const tls = cert === undefined || key === undefined ? undefined : { cert, key }
  const roots = httpRoot.map((root) => resolve(root))
  return Effect.succeed({ ...http, names, origins, roots, rate, tls, behindProxy })
}

export const serve = verb({
  name: "serve",
  summary: "serve agents and models on Unix sockets and over HTTP, and keep the files of sessions",
  words: "",
  details: [
    "The root contains agent/NAME.sock and model/PROVIDER/ALIAS.sock. A client writes one JSON object per line and reads " +
      "frames, one per line; specs/socket.md describes them. Every session of the database is kept as plain files below " +
      "the root, for ctx and other readers. One process per user keeps the files of a root. If several users share the " +
      "root, the sockets are in home/UID; a shared space that others may write to has sockets in shared/SPACE.",
    "It prints where it listens, and ready once the sockets accept and the files are current. Ctrl-C stops it: running " +
      "work is interrupted and its clients are told; waiting prompts run when it is served again. A second Ctrl-C exits " +
      "immediately. At SIGTERM running turns have --drain seconds to end, and the next server of the database, or one " +
      "beside, goes on with their sessions. Agents work in a folder of their own, which clients see as /; --chroot selects another. Permissions are " +
      "asked at the terminal and of the clients: the first answer counts. They wait for it without a limit, unless " +
      "permission_timeout of the configuration sets one.",
    "--http serves all sessions over HTTP, with sockets or alone (then no files are kept): /reference lists the endpoints, " +
      "/openapi.json describes them, and the printed address opens the inspector. At a terminal, or with --show-token, it " +
      "has the server's token; daybook token makes others. An address that other machines reach needs --tls-cert and " +
      "--tls-key, or --behind-proxy.",
    "stderr is its log: its start, listeners and stop, each request over HTTP, and what fails with session and cause, one " +
      "object per line with --log-format json. /health answers while the database can be written, and /metrics is for " +
      "Prometheus, with a token. With " +
      "OTEL_EXPORTER_OTLP_ENDPOINT it sends traces, metrics and logs there, and so do prompt, resume and compact."
  ],
  given,
  examples: [
    ["daybook serve --agent build", "serves the agent build, on a socket below the default root"],
    [
      `printf '{"op":"send","id":"m1","input":"hello"}\\n' | socat -t 60 - UNIX-CONNECT:ROOT/agent/build.sock`,
      "prompts it; the same line again returns the same answer without another run"
    ],
    ["daybook serve --agent build --agent plan --chroot . --root ~/ctx", "two agents that work in this folder"],
    ["daybook serve --agent build=coder", "serves the agent build under the name coder"],
    ["daybook serve --http 127.0.0.1:4310", "serves all sessions over HTTP"],
    ["daybook serve --model anthropic/claude-opus-5-5=opus", "serves a model without tools"]
  ],
  run: (given) =>
    Effect.gen(function* () {
      const [word] = given.words
      if (word !== undefined) {
        return yield* new UsageError({
          message: `daybook serve takes no words: "${oneLine(word, 80)}"; name an agent with --agent`
        })
      }
      const web = yield* httpOf(given)
      if (isAlone(given) && web === undefined) {
        return yield* new UsageError({
          message: "nothing to serve: give --agent NAME, --model PROVIDER/MODEL or --http HOST:PORT, or several of them"
        })
      }
      yield* run({
        ...given,
        chroot: given.chroot === undefined ? undefined : yield* Folder.given(given.chroot, "--chroot"),
        http: web && { ...web, node: nodeName(given.node) },
        node: yield* nodeOf(given),
        drain: given.drain ?? 10,
        logFormat: given.logFormat ?? "text"
      })
    }).pipe(told(given.trust))
})
