/**
 * Serves the HTTP API for `daybook serve --http`, with the server's own token: the token is a file in the person's data
 * folder, generated once. Spec: HT-22 in specs/http.md, CL-300, CL-301 in specs/cli.md.
 */
import { constants } from "node:fs"
import { open, readFile } from "node:fs/promises"
import { homedir } from "node:os"
import { join } from "node:path"
import { Context, Effect, Either, Layer, Schema, Stream } from "effect"
import { ShellsUnavailable } from "@daybook/api/wire/Access"
import * as Inspector from "@daybook/inspector/Inspector"
import { LogUnavailable } from "@daybook/log/log/EventLog"
import { Search } from "@daybook/log/search/Search"
import * as SqlSearch from "@daybook/log/search/SqlSearch"
import * as HttpServing from "@daybook/server/http/HttpServing"
import { makeFolders } from "@daybook/log/storage/PrivateFile"
import { codeOf } from "@daybook/log/support/SystemError"
import { Catalog } from "@daybook/models"
import type { Asks } from "@daybook/server"
import type { Machine } from "@daybook/server/http/ServerHandlers"
import { AccessToken, fresh } from "@daybook/server/http/AccessToken"
import * as Configuration from "../config/Configuration.ts"
import type { Place } from "../config/DatabasePath.ts"
import { oneLine } from "../render/Plain.ts"
import { FileProblem } from "../support/Errors.ts"
import { dataFolder } from "../support/Paths.ts"
import * as ModelList from "./ModelList.ts"
import * as PlaceStore from "./PlaceStore.ts"
import type { MeasuredStore } from "./StatsMeasure.ts"
import * as WholeFile from "./WholeFile.ts"

const path = Effect.sync(() => join(dataFolder(process.env, homedir()), "http-token"))

const problem = (at: string, why: string) => new FileProblem({ message: `${at}: ${why}` })

/** The longest token and a line break. */
const mostBytes = 129

/** The text of the file, if only its owner may read it; undefined if it does not exist. */
const contentOf = (at: string) =>
  Effect.tryPromise({
    try: async () => {
      const file = await open(at, constants.O_RDONLY | constants.O_NOFOLLOW)
      try {
        const { mode } = await file.stat()
        if ((mode & 0o077) !== 0) return { open: true }
        const { buffer, bytesRead } = await file.read(Buffer.alloc(mostBytes + 1), 0, mostBytes + 1)
        return { text: buffer.toString("utf8", 0, bytesRead).trimEnd() }
      } finally {
        await file.close()
      }
    },
    catch: (cause) => codeOf(cause, String(cause))
  }).pipe(
    Effect.catchAll((code) =>
      code === "ENOENT" ? Effect.succeed(undefined) : Effect.fail(problem(at, `it cannot be read (${code})`))
    )
  )

const decode = Schema.decodeUnknown(AccessToken)

/** In place of the file: servers of several machines have one token. */
const variable = "DAYBOOK_HTTP_TOKEN"

/** The token, if there is one. */
const existing = Effect.gen(function* () {
  const given = process.env[variable]?.trim() ?? ""
  if (given !== "") {
    return yield* Effect.mapError(decode(given), () =>
      problem(variable, "expected 22 to 128 letters, digits, - and _, such as those of openssl rand -hex 32")
    )
  }
  const at = yield* path
  const found = yield* contentOf(at)
  if (found === undefined) return undefined
  if (found.open === true) return yield* problem(at, "others may read it: run chmod 600, or remove it for a new token")
  return yield* Effect.mapError(decode(found.text), () => problem(at, "it has no token: remove it for a new one"))
})

/** The token, which is generated if there is none. Of concurrent callers, all get the same. */
export const ensure = Effect.gen(function* () {
  const before = yield* existing
  if (before !== undefined) return before
  const at = yield* path
  yield* Effect.tryPromise({
    try: () => makeFolders(dataFolder(process.env, homedir()), 0o700),
    catch: (cause) => problem(at, `its folder cannot be made (${codeOf(cause, String(cause))})`)
  })
  const made = yield* fresh
  return yield* WholeFile.write(at, Stream.make(`${made}\n`), { force: false }).pipe(
    Effect.as(made),
    Effect.catchAll((failed) =>
      Effect.flatMap(existing, (other) => (other === undefined ? Effect.fail(failed) : Effect.succeed(other)))
    )
  )
})

// The build defines them; the last two are the inspector's script and style.
declare const DAYBOOK_VERSION: string
declare const DAYBOOK_INSPECTOR_SCRIPT: string
declare const DAYBOOK_INSPECTOR_STYLE: string

export interface HttpRequest {
  readonly host: string
  readonly port: number
  readonly names: ReadonlyArray<string>
  /** Origins of other sites whose pages may use the server. */
  readonly origins: ReadonlyArray<string>
  /** The files of the certificate with its chain, and of its key. */
  readonly tls: { readonly cert: string; readonly key: string } | undefined
  readonly behindProxy: boolean
  /** The server's address as a node of its database. */
  readonly node: string | undefined
  /** Requests a second of one token. */
  readonly rate: number | undefined
  /** The folders that sessions may work in; every one if there is none. */
  readonly roots: ReadonlyArray<string>
}

/** Where the API is served, and the server's own token. */
export interface HttpAddress {
  readonly url: string
  readonly token: AccessToken
}

const textOf = (path: string) =>
  Effect.tryPromise({
    try: () => readFile(path, "utf8"),
    catch: (cause) =>
      new FileProblem({ message: `${oneLine(path, 400)}: it cannot be read (${codeOf(cause, String(cause))})` })
  })

const searchOf = (place: Place) =>
  place.path === ":memory:"
    ? Effect.succeed(undefined)
    : Effect.map(Layer.build(Layer.provide(SqlSearch.layer, PlaceStore.layerSearching(place))), Context.get(Search))

/** Measures a file over a connection of its own, and PostgreSQL over the server's. */
const statsOf = (place: Place) =>
  Effect.map(
    Effect.context<MeasuredStore>(),
    (context): Machine["stats"] =>
      ({ exact, sessionID }) =>
        Effect.flatMap(
          Effect.promise(() => import("./StatsMeasure.ts")),
          ({ measure, measureServer }) =>
            place._tag === "File"
              ? measure(place, { sessionID, exact })
              : Effect.provide(measureServer(place.path, { sessionID, exact }), context)
        ).pipe(
          Effect.catchIf(
            (error) => error._tag !== "SessionNotFound" && error._tag !== "LogUnavailable",
            (cause) => new LogUnavailable({ operation: "measure the database", reason: "unknown", cause })
          )
        )
  )

/** Asks the host each time: it ends when nothing uses its shells. */
const shells: Machine["shells"] = Effect.flatMap(
  Effect.promise(() => import("./ShellCalls.ts")),
  ({ open }) => open
).pipe(Effect.mapError(({ message }) => new ShellsUnavailable({ details: message })))

/** The list of `daybook models`. A name that no session can be given is left out. */
const models = Effect.map(ModelList.list(false), ({ models, silent: unreachable }) => ({
  models: models.flatMap(({ model, ...more }) =>
    Either.match(Catalog.parseModel(model), { onLeft: () => [], onRight: (ref) => [{ model: ref, ...more }] })
  ),
  unreachable
})).pipe(
  // The runtime has read the same settings at its start.
  Effect.orDie
)

/** Serves until the scope closes, and takes up what dead processes left. */
export const serve = Effect.fn("Command.serve.http")(function* (request: HttpRequest, place: Place, asks: Asks.Asks) {
  const { behindProxy, host, names, node, origins, port, rate, roots, tls } = request
  // A second connection cannot read a database in memory.
  const stats = place.path === ":memory:" ? undefined : yield* statsOf(place)
  const token = yield* ensure
  const certificate = tls && (yield* Effect.all({ cert: textOf(tls.cert), key: textOf(tls.key) }))
  const { url } = yield* HttpServing.serve({
    token,
    version: DAYBOOK_VERSION,
    asks,
    budget: (yield* Configuration.load).budget,
    search: yield* searchOf(place),
    models,
    machine: {
      shells,
      ...(stats === undefined ? {} : { stats })
    },
    node,
    host,
    port,
    names,
    origins,
    roots,
    behindProxy,
    limits: rate === undefined ? {} : { rate },
    certificate,
    accessLog: true,
    pages: Inspector.pages({ script: DAYBOOK_INSPECTOR_SCRIPT, style: DAYBOOK_INSPECTOR_STYLE })
  })
  yield* HttpServing.recover
  return { url, token } satisfies HttpAddress
})
