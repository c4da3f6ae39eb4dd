/** `daybook serve`: serves agents and models on sockets and over HTTP, and keeps their files current. Spec: CL-120..CL-126, CL-300. */
import { resolve } from "node:path"
import { Effect } from "effect"
import { isName, nameRule } from "@daybook/log/domain/Address"
import { originOf } from "@daybook/server/http/Site"
import * as Flags from "../arguments/Flags.ts"
import * as Folder from "../arguments/Folder.ts"
import { verb } from "../arguments/Verb.ts"
import { told } from "../host/Runtime.ts"
import type { HttpRequest } from "../host/HttpWork.ts"
import type { Written } from "../host/ServeWork.ts"
import { oneLine } from "../render/Plain.ts"
import { UsageError } from "../support/Errors.ts"

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
const model = Flags.repeated<Written>(
  "model",
  "P/M[=ALIAS]",
  "serve this model, provider/model, under ALIAS (default: its name); may be repeated",
  withAlias
)
const root = Flags.text(
  "root",
  "DIR",
  "the folder of sockets and files (default: DAYBOOK_ROOT, else ctx beside the database)"
)
const chroot = Flags.text("chroot", "DIR", "the folder that agents see as / (default: one each, below the root)")

const http = Flags.value("http", "HOST:PORT", "serve sessions over HTTP at this address", (text) => {
  const [, given = "", port = ""] = /^(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):(\d{1,5})$/.exec(text) ?? []
  const host = given.replaceAll(/[[\]]/g, "")
  return host === "" || Number(port) > 65_535
    ? Effect.fail("an address with a port, such as 127.0.0.1:4310")
    : Effect.succeed({ host, port: Number(port) })
})
const httpName = Flags.repeated<string>(
  "http-name",
  "NAME",
  "answer under this host name too; may be repeated",
  (text) => (/^[A-Za-z0-9._-]+(?::\d{1,5})?$/.test(text) ? Effect.succeed(text) : Effect.fail("a host name"))
)
const httpOrigin = Flags.repeated<string>(
  "http-origin",
  "ORIGIN",
  "let pages of this other origin use the server, such as https://app.example; may be repeated",
  (text) => {
    const origin = originOf(text)
    return origin === undefined
      ? Effect.fail("an origin, such as https://app.example:8443: no path, and no `*`")
      : Effect.succeed(origin)
  }
)
const httpRoot = Flags.repeated<string>(
  "http-root",
  "DIR",
  "sessions of HTTP clients work only in this folder and below; may be repeated",
  (text) => (text === "" ? Effect.fail("a folder") : Effect.succeed(text))
)
const httpRate = Flags.integer("http-rate", "N", "requests a second that one token may send (default: 4000)", 1)
const tlsCert = Flags.text("tls-cert", "FILE", "the certificate of HTTPS with its chain, as PEM")
const tlsKey = Flags.text("tls-key", "FILE", "the key of the certificate, as PEM")
const behindProxy = Flags.toggle("behind-proxy", "a proxy with TLS stands before HTTP")

const showToken = Flags.toggle("show-token", "print the server's token also when stdout is not a terminal")

const logFormats = ["text", "json"] as const
const logLevels = ["debug", "info", "warning", "error", "none"] as const
const logFormat = Flags.choice("log-format", logFormats, "the format of the log on stderr (default: text)")
const logLevel = Flags.choice(
  "log-level",
  logLevels,
  "the lowest level that is logged (default: info; at a terminal: warning)"
)

/** The options of HTTP, which come together. */
const httpOf = (given: {
  readonly http: { readonly host: string; readonly port: number } | undefined
  readonly httpName: ReadonlyArray<string>
  readonly httpOrigin: ReadonlyArray<string>
  readonly httpRoot: ReadonlyArray<string>
  readonly httpRate: number | undefined
  readonly tlsCert: string | undefined
  readonly tlsKey: string | undefined
  readonly behindProxy: boolean
  readonly showToken: boolean
}): Effect.Effect<HttpRequest | undefined, UsageError> => {
  const [cert, key] = [given.tlsCert, given.tlsKey]
  const { behindProxy, httpName: names, httpOrigin: origins, httpRoot, showToken } = given
  const rate = given.httpRate
  if ((cert === undefined) !== (key === undefined)) {
    return new UsageError({ message: "--tls-cert and --tls-key come together: give both" })
  }
  if (given.http === undefined) {
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
  return Effect.succeed({ ...given.http, names, origins, roots, rate, tls, behindProxy })
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
      "immediately. Agents work in a folder of their own, which clients see as /; --chroot selects another. Permissions are " +
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
  given: {
    words: Flags.many("WORD"),
    agent,
    model,
    http,
    httpName,
    httpOrigin,
    httpRoot,
    httpRate,
    tlsCert,
    tlsKey,
    behindProxy,
    root,
    chroot,
    trust: Flags.trust,
    showToken,
    logFormat,
    logLevel,
    json: Flags.json
  },
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
      if (given.agent.length + given.model.length === 0 && web === undefined) {
        return yield* new UsageError({
          message: "nothing to serve: give --agent NAME, --model PROVIDER/MODEL or --http HOST:PORT, or several of them"
        })
      }
      const world = given.chroot
      const { run } = yield* Effect.promise(() => import("../host/ServeWork.ts"))
      yield* run({
        agents: given.agent,
        models: given.model,
        root: given.root,
        chroot: world === undefined ? undefined : yield* Folder.given(world, "--chroot"),
        http: web,
        logFormat: given.logFormat ?? "text",
        logLevel: given.logLevel,
        showToken: given.showToken,
        json: given.json
      })
    }).pipe(told(given.trust))
})
