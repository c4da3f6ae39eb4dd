/**
 * The runtime behind a command. What is heavy (the store, the runner, the models) is imported when a command needs it
 * and not before: the start of the command is its own. Spec: CL-60, CL-73 in specs/cli.md.
 */
import { Agents, ModelNotSelected, ModelResolver, Store, type ModelRef } from "@daybook/core"
import { Effect } from "effect"
import type { Configured } from "./Configuration.ts"
import * as DatabasePath from "./DatabasePath.ts"
import { UsageError } from "./Errors.ts"
import { Output } from "./Output.ts"
import { isWanted } from "./TelemetryOptions.ts"
import * as Watchdog from "./Watchdog.ts"

const host = Effect.promise(() => import("./Host.ts"))

/** What follows a run; the reading verbs follow none. */
export const turn = Effect.promise(() => import("./Turn.ts"))

/** Reads the database that is there; creates none, and loads neither runner nor models. */
export const withReader = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const filename = yield* DatabasePath.existing
    return yield* Effect.provide(effect, Store.layer({ filename }))
  })

/** Runs on the database that is there, without the user's configuration: for what no agent or model is asked about. */
export const withSessions = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const filename = yield* DatabasePath.existing
    const { layerBare } = yield* host
    return yield* Effect.provide(effect, layerBare(filename))
  })

/** The same with the configuration; no MCP server is started. */
export const withConfigured = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const filename = yield* DatabasePath.existing
    const { layer } = yield* host
    return yield* Effect.provide(effect, layer(filename, { servers: false }))
  })

/** Exports what the effect does where the environment names a place for it (CL-128). */
export const withTelemetry = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  isWanted(process.env)
    ? Effect.flatMap(
        Effect.promise(() => import("./Telemetry.ts")),
        ({ layer }) => Effect.provide(effect, layer)
      )
    : effect

/** Ctrl-C ends it also while its event loop is blocked (LM-24). */
const watched = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.scoped(Effect.zipRight(Watchdog.begin(), effect))

/** The same with the configured MCP servers: for what runs sessions. */
export const withRunning = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const filename = yield* DatabasePath.existing
    const { layer } = yield* host
    return yield* withTelemetry(Effect.provide(watched(effect), layer(filename, { servers: true })))
  })

/** Runs on the database, which is made when it is not there. */
export const withNewSessions = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const { layer } = yield* host
    const filename = yield* DatabasePath.writable
    return yield* withTelemetry(Effect.provide(watched(effect), layer(filename, { servers: true })))
  })

/** A runtime without sessions, and without a trace: for what is asked about configuration and agents. */
export const withNoSessions = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.flatMap(host, ({ layer }) => Effect.provide(effect, layer(":memory:", { servers: false })))

const trust = Effect.promise(() => import("./Trusting.ts"))

/** Asks about the project of a folder, where that is needed (CL-160). */
export const trusting = (directory: string) => Effect.flatMap(trust, ({ settle }) => settle(directory))

/** A command that was told with `--trust` to trust every project. */
export const told =
  (everything: boolean) =>
  <A, E, R>(command: Effect.Effect<A, E, R>) =>
    everything ? Effect.flatMap(trust, ({ Everything }) => Effect.provideService(command, Everything, true)) : command

/** What the user configured. */
export const configuration: Effect.Effect<Configured, UsageError> = Effect.flatMap(
  Effect.promise(() => import("./Configuration.ts")),
  ({ load }) => load
)

/** Looks at the models only: what is wrong with one is said before a database is made. */
export const withModels = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.flatMap(host, ({ models }) => Effect.provide(effect, models))

/** Reads `provider/model` and makes sure that it is there. */
export const readModel = Effect.fn("Runtime.readModel")(function* (text: string) {
  const { parseModel } = yield* host
  const ref = yield* Effect.mapError(parseModel(text), ({ message }) => new UsageError({ message }))
  yield* resolveModel(ref)
  return ref
})

/** What a server offers belongs to the advice to choose a model of it. */
const listed = (error: ModelNotSelected) =>
  Effect.gen(function* () {
    const { suggestion } = yield* Effect.promise(() => import("./ModelList.ts"))
    const offer = yield* suggestion
    return yield* new ModelNotSelected({ hint: `${error.hint ?? "name one with --model"}${offer}` })
  })

/** The model that is meant; where none is, what there is to choose from. */
export const chosenModel = (ref: ModelRef | undefined) =>
  Effect.flatMap(ModelResolver, (resolver) => Effect.catchTag(resolver.resolve(ref), "ModelNotSelected", listed))

/** Makes sure that a session's model, or the default one, is there, and says so when it is the offline model. */
export const resolveModel = Effect.fn("Runtime.resolveModel")(function* (ref: ModelRef | undefined) {
  const { info } = yield* chosenModel(ref)
  if (info.ref.providerID === "offline") {
    const output = yield* Output
    yield* output.note(
      "no language model is configured, so the offline model answers: set ANTHROPIC_API_KEY or OPENAI_API_KEY\n"
    )
  }
})

/** Makes sure that the agent is there, also as one of the project of a folder. */
export const findAgent = (name: string | undefined, directory: string) =>
  Effect.flatMap(Agents, (agents) => agents.get(name, { directory }))
