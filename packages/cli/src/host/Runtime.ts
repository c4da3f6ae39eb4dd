/**
 * Provides the runtime to a verb. Heavy parts (the store, the runner, the models) are imported only when a verb needs them,
 * to keep the start fast. Spec: CL-60, CL-73 in specs/cli.md.
 */
import { Effect, type Layer, Option } from "effect"
import { Agents } from "@daybook/core/agent/Agents"
import { ModelNotSelected, ModelResolver } from "@daybook/core/model/ModelResolver"
import type { PermissionAsker } from "@daybook/core/permission/PermissionAsker"
import { SessionBusy, SessionOwner } from "@daybook/log/coordination/SessionOwner"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import type { ModelRef } from "@daybook/log/domain/Values"
import { SessionStore } from "@daybook/log/store/SessionStore"
import type { Configured } from "../config/Configuration.ts"
import { one, type Words } from "../arguments/Flags.ts"
import * as Folder from "../arguments/Folder.ts"
import * as RunMode from "../arguments/RunMode.ts"
import * as SessionReference from "../arguments/SessionReference.ts"
import * as DatabasePath from "../config/DatabasePath.ts"
import { isWanted } from "../config/TelemetryOptions.ts"
import { oneLine } from "../render/Plain.ts"
import { needsDatabase, noSessions, UsageError } from "../support/Errors.ts"
import * as Watchdog from "../support/Watchdog.ts"
import { Output } from "../terminal/Output.ts"
import * as PlaceStore from "./PlaceStore.ts"
import { Remote } from "./Remote.ts"

const host = Effect.promise(() => import("./Host.ts"))

/** Runs over the server, if one is named. */
const orRemote = <A, E, R, E2, R2>(effect: Effect.Effect<A, E, R>, local: Effect.Effect<A, E2, R2>) =>
  Effect.gen(function* () {
    const server = yield* Remote
    if (server === undefined) return yield* local
    const { layer } = yield* Effect.promise(() => import("./RemoteHost.ts"))
    return yield* Effect.provide(effect, layer(server))
  })

/** Work that only the database's own process can do. */
const locally = <A, E, R>(local: Effect.Effect<A, E, R>) =>
  Effect.flatMap(Remote, (server): Effect.Effect<A, E | UsageError, R> =>
    server === undefined ? local : Effect.fail(needsDatabase())
  )

const trust = Effect.promise(() => import("./Trusting.ts"))

/** The module that follows a run; reading verbs do not load it. */
export const runFollower = Effect.promise(() => import("./RunFollower.ts"))

/** Reads an existing database; creates none, and loads neither runner nor models. */
export const withReader = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  orRemote(
    effect,
    Effect.flatMap(DatabasePath.existing, (place) => Effect.provide(effect, PlaceStore.layerReading(place)))
  )

const at = <E, R>(place: Effect.Effect<DatabasePath.Place, E, R>) => Effect.all([place, host])

/** Runs on an existing database without the user's configuration, for work that needs no agent or model. */
export const withSessions = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  orRemote(
    effect,
    Effect.flatMap(at(DatabasePath.existing), ([place, { layerBare }]) => Effect.provide(effect, layerBare(place)))
  )

/** Runs on an existing database with the configuration; starts no MCP server. */
export const withConfigured = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  orRemote(
    effect,
    Effect.flatMap(at(DatabasePath.existing), ([place, { layer }]) =>
      Effect.provide(effect, layer(place, { servers: false }))
    )
  )

/** Exports the effect's telemetry if the environment names a collector (CL-128), under the node's name. */
export const withTelemetry = <A, E, R>(effect: Effect.Effect<A, E, R>, node?: string) =>
  isWanted(process.env)
    ? Effect.flatMap(
        Effect.promise(() => import("./Telemetry.ts")),
        ({ layer }) => Effect.provide(effect, layer(node))
      )
    : effect

/** Ctrl-C ends it also while its event loop is blocked (LM-24). */
const watched = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.scoped(Effect.zipRight(Watchdog.begin(), effect))

/** Runs on an existing database with the configuration and MCP servers, for work that runs sessions. */
export const withRunning = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  orRemote(
    effect,
    Effect.flatMap(at(DatabasePath.existing), ([place, { layer }]) =>
      withTelemetry(Effect.provide(watched(effect), layer(place, { servers: true })))
    )
  )

/** Runs on the database, which is created if it does not exist. */
export const withNewSessions = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  orRemote(
    effect,
    Effect.flatMap(at(DatabasePath.writable), ([place, { layer }]) =>
      withTelemetry(Effect.provide(watched(effect), layer(place, { servers: true })))
    )
  )

/** As `withNewSessions`; permission questions go to `asker`, and a person answers the questions of models. */
export const withAsker =
  (asker: Layer.Layer<PermissionAsker>) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>) =>
    orRemote(
      effect,
      Effect.flatMap(at(DatabasePath.writable), ([place, { layer }]) =>
        withTelemetry(Effect.provide(effect, layer(place, { servers: true, asker, answered: true })))
      )
    )

/** A runtime in memory, without sessions, for questions about configuration and agents. */
export const withNoSessions = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  locally(
    Effect.flatMap(host, ({ layer }) =>
      Effect.provide(effect, layer(DatabasePath.fileAt(":memory:"), { servers: false }))
    )
  )

/** Asks about the project of a folder if needed (CL-160). That of a session of a server is the server's. */
export const trusting = (directory: string) =>
  Effect.flatMap(Remote, (server) =>
    server === undefined ? Effect.flatMap(trust, ({ settle }) => settle(directory)) : Effect.void
  )

/** Runs a command that trusts every project if `--trust` was given. */
export const told =
  (everything: boolean) =>
  <A, E, R>(command: Effect.Effect<A, E, R>) =>
    everything ? Effect.flatMap(trust, ({ Everything }) => Effect.provideService(command, Everything, true)) : command

/** Runs a command in the mode that its options give (CL-770). Over a server the agents' own rules decide. */
export const inMode =
  (given: Parameters<typeof RunMode.read>[0]) =>
  <A, E, R>(command: Effect.Effect<A, E, R>) =>
    Effect.gen(function* () {
      const mode = yield* RunMode.read(given)
      if (!RunMode.isNone(mode) && (yield* Remote) !== undefined) {
        return yield* new UsageError({
          message:
            "the server runs the session and asks by its own rules: no --allow, --accept-edits or --read-only there"
        })
      }
      return yield* Effect.provideService(command, RunMode.CurrentRunMode, mode)
    })

/** Refuses a mode for a session that another process runs: its calls would be judged there (CL-771). */
export const modeCounts = Effect.fn("Runtime.modeCounts")(function* (sessionID: SessionID) {
  const owners = yield* Effect.serviceOption(SessionOwner)
  if (RunMode.isNone(yield* RunMode.CurrentRunMode) || Option.isNone(owners)) return
  const owner = yield* owners.value.foreign(sessionID)
  if (Option.isSome(owner)) return yield* new SessionBusy({ sessionID, ownerID: owner.value.ownerID })
})

export const configuration: Effect.Effect<Configured, UsageError> = Effect.flatMap(
  Effect.promise(() => import("../config/Configuration.ts")),
  ({ load }) => load
)

/** Loads only the models, so that their faults are reported before a database is created. */
export const withModels = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.flatMap(host, ({ models }) => Effect.provide(effect, models))

/** Parses `provider/model`; the refusal names the model that was meant, of the providers on this machine. */
export const parsedModel = Effect.fn("Runtime.parsedModel")(function* (text: string) {
  const { parseModel } = yield* host
  const remote = yield* Remote
  return yield* Effect.catchAll(parseModel(text), ({ input, message, reason }) =>
    Effect.gen(function* () {
      const { meant } = yield* Effect.promise(() => import("./ModelList.ts"))
      const near = remote === undefined ? yield* Effect.orElseSucceed(meant(input), () => undefined) : undefined
      const refusal = near === undefined ? message : `"${input}" does not name a model: ${reason}${near}`
      return yield* new UsageError({ message: refusal })
    })
  )
})

/** Parses `provider/model` and checks that the model exists; a server checks that itself. */
export const readModel = Effect.fn("Runtime.readModel")(function* (text: string) {
  const ref = yield* parsedModel(text)
  if ((yield* Remote) === undefined) yield* resolveModel(ref)
  return ref
})

/** Adds the models of the server to the error that no model is selected. */
const listed = Effect.fnUntraced(function* () {
  const { suggestion } = yield* Effect.promise(() => import("./ModelList.ts"))
  const offer = yield* suggestion
  return yield* new ModelNotSelected({ hint: `name one with --model, or keep one with daybook setup${offer}` })
})

/** The chosen or default model; the error for a missing choice lists models. */
export const chosenModel = (ref: ModelRef | undefined) =>
  Effect.flatMap(ModelResolver, (resolver) => Effect.catchTag(resolver.resolve(ref), "ModelNotSelected", listed))

/** Whether the person chose the default model. */
export const isDefaultChosen = Effect.flatMap(
  Effect.promise(() => import("./ModelList.ts")),
  ({ chosenDefault }) => Effect.map(chosenDefault, (model) => model !== undefined)
)

/** The model of the folder's project for a new session; none over a server, and none beside `DAYBOOK_MODEL` (CL-833). */
export const modelOfProject = Effect.fn("Runtime.modelOfProject")(function* (directory: string) {
  if ((yield* Remote) !== undefined || (process.env["DAYBOOK_MODEL"] ?? "").trim() !== "") return undefined
  const { projectModel } = yield* Effect.promise(() => import("../config/ProjectModel.ts"))
  return yield* projectModel(directory, yield* (yield* trust).store)
})

/** Says which model answers a new session for which none was chosen (CL-724). */
export const announceModel = Effect.fn("Runtime.announceModel")(function* () {
  if (yield* isDefaultChosen) return
  const { id, providerID } = (yield* chosenModel(undefined)).info.ref
  if (providerID === "offline") return
  const output = yield* Output
  yield* output.note(`the model is ${oneLine(`${providerID}/${id}`)}; --model or DAYBOOK_MODEL chooses another\n`)
})

/** Says why the offline model answers, and what to do (CL-723). */
export const noModel =
  "no language model is configured, so the offline model answers, a fixed program: daybook setup keeps a key, or set " +
  "ANTHROPIC_API_KEY, OPENAI_API_KEY or the key of another provider; daybook models lists the variables"

/** Checks that a session's model, or the default one, exists; a note says if it is the offline model. */
export const resolveModel = Effect.fn("Runtime.resolveModel")(function* (ref: ModelRef | undefined) {
  const { info } = yield* chosenModel(ref)
  if (info.ref.providerID === "offline") {
    const output = yield* Output
    yield* output.note(`${noModel}\n`)
  }
})

/** Checks that the agent exists; agents of the folder's project count. */
export const findAgent = (name: string | undefined, directory: string) =>
  Effect.flatMap(Agents, (agents) => agents.get(name, { directory }))

/** The agent's full name, if it exists; a server finds it itself. */
export const agentNamed = (name: string, directory: string) =>
  Effect.flatMap(Remote, (server) =>
    server === undefined ? Effect.map(findAgent(name, directory), (agent) => agent.name) : Effect.succeed(name)
  )

/** Sessions that are offered for a missing word. */
const offeredHere = 9

/**
 * The session that the words do not name: the one that the person at the terminal chooses (CL-775); elsewhere the refusal
 * names the one that is most likely meant (CL-760).
 */
const whichSession = (path: string, line: string): Effect.Effect<string, UsageError> =>
  Effect.gen(function* () {
    const folder = yield* Folder.current
    const store = yield* SessionStore
    const { items: own } = yield* store.list({ directory: folder, limit: offeredHere })
    // The folders of a server are not those of this machine.
    const [items, place] = own.length > 0 ? [own, " here"] : [(yield* store.list({ limit: offeredHere })).items, ""]
    const last = own.length > 0 ? yield* SessionReference.recent(folder) : items[0]
    if (last === undefined) return yield* noSessions()
    const shown = last.title === undefined ? last.id : `"${oneLine(last.title, 48)}" (${last.id})`
    const refusal = new UsageError({
      message: `${path} which session? the last one${place} is ${shown}: ${line}`
    })
    const ids = items.map((session) => session.id)
    return (yield* SessionReference.choose(`${path} one of the last sessions${place}`, ids, refusal)).id
  }).pipe(
    withReader,
    Effect.catchAll((error) =>
      error instanceof UsageError
        ? error
        : new UsageError({ message: `${path} which session? daybook sessions lists them` })
    )
  )

export const sessionWord: Words<string> = { ...one("SESSION"), missing: whichSession }
