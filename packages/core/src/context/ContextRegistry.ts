/**
 * Holds the context sources of one Location: built-in ones, the host's, and those registered here. Reads all sources
 * concurrently; a source that fails or times out counts as unavailable. Spec: CX-10..CX-13, CX-20..CX-22 in
 * specs/context.md (EP-6).
 */
import { Array as Arr, Clock, Context, Effect, Layer, Metric, Schema, type Scope } from "effect"
import { CurrentLocation, ModelRef } from "@daybook/log/domain/Values"
import * as Metrics from "@daybook/log/support/Metrics"
import { quotedPath } from "../support/TextFile.ts"
import { ProjectTrust } from "../trust/ProjectTrust.ts"
import * as InstructionDiscovery from "./InstructionDiscovery.ts"
import {
  configuredInstructions,
  nestedInstructions,
  projectInstructions,
  userInstructions
} from "./InstructionDiscovery.ts"
import { makeReader } from "./InstructionFile.ts"
import * as Skills from "./Skills.ts"
import { skillGuidance } from "./Skills.ts"
import {
  available,
  ContextSettings,
  type ContextSource,
  type ContextTurn,
  type Look,
  type Observed,
  source,
  SourceKey,
  unavailable
} from "./SystemContext.ts"
import { isAddress, remoteInstructions } from "./Instructions.ts"
import { spanned } from "@daybook/log/support/Spans"

// Tells which model answers, for every turn. The first baseline does not wait for the model: an unresolved model fails
// the turn anyway.

const Identity = Schema.Struct({ ref: ModelRef, name: Schema.String })
type Identity = typeof Identity.Type

const nameOf = ({ name, ref: { id, providerID, variant } }: Identity) => {
  const reference = variant === undefined ? `${providerID}/${id}` : `${providerID}/${id}, ${variant}`
  return name === "" || name === `${providerID}/${id}` ? reference : `${name} (${reference})`
}

const modelIdentity: ContextSource = source({
  key: "daybook/model",
  schema: Identity,
  optional: true,
  load: ({ model }) =>
    Effect.succeed(model === undefined ? unavailable : available({ ref: model.ref, name: model.name })),
  baseline: (model) => `You answer as the model ${nameOf(model)}.`,
  update: (_, model) => `From here on you answer as the model ${nameOf(model)}; earlier answers were another model's.`
})

// The host's date, in the host's time zone.

const twoDigits = (part: number): string => String(part).padStart(2, "0")

const today = Effect.map(Clock.currentTimeMillis, (now) => {
  const date = new Date(now)
  return [String(date.getFullYear()), twoDigits(date.getMonth() + 1), twoDigits(date.getDate())].join("-")
})

export const hostDate: ContextSource = source({
  key: "daybook/date",
  schema: Schema.String,
  load: () => Effect.map(today, available),
  baseline: (date) => `Today's date is ${date}.`,
  update: (_, date) => `Today's date is ${date} now.`
})

// The session's folder and platform.

const Environment = Schema.Struct({ directory: Schema.String, platform: Schema.String })
type Environment = typeof Environment.Type

const place = ({ directory, platform }: Environment) => `in the folder ${quotedPath(directory)} on ${platform}`
const paths = "Paths you give to tools are relative to it."

/** A source for the Location's folder and the platform. */
const makeEnvironment = (directory: string): ContextSource =>
  source({
    key: "daybook/environment",
    schema: Environment,
    load: () => Effect.succeed(available({ directory, platform: process.platform })),
    baseline: (here) => `You work ${place(here)}. ${paths}`,
    update: (_, here) => `You work ${place(here)} now. ${paths}`
  })

/** What `HostContext` offers. */
export interface HostContextService {
  /**
   * Adds a source until the scope closes; then sessions that were told its text are told that it is gone. A duplicate
   * key is a defect: two parts of the host disagree.
   */
  readonly register: (source: ContextSource) => Effect.Effect<void, never, Scope.Scope>
  readonly sources: Effect.Effect<ReadonlyArray<ContextSource>>
}

/** Sources of the host, for every Location. They are removed when their scope closes. */
export class HostContext extends Context.Tag("@daybook/core/HostContext")<HostContext, HostContextService>() {}

const isSourceKey = Schema.is(SourceKey)

const makeSources = (reserved: ReadonlyArray<ContextSource> = []): Context.Tag.Service<typeof HostContext> => {
  const sources = new Map<string, ContextSource>()
  const taken = (key: string) => sources.has(key) || reserved.some((source) => source.key === key)
  return {
    register: (source) =>
      Effect.acquireRelease(
        Effect.suspend(() => {
          if (!isSourceKey(source.key)) {
            return Effect.dieMessage(`"${source.key}" is not a valid context source key: use area/name in lower case`)
          }
          if (taken(source.key)) return Effect.dieMessage(`context source ${source.key} is already registered`)
          sources.set(source.key, source)
          return Effect.void
        }),
        () => Effect.sync(() => sources.delete(source.key))
      ),
    sources: Effect.sync(() => [...sources.values()])
  }
}

/** A registry that starts without host sources. */
export const layerHost = Layer.sync(HostContext, () => makeSources())

/**
 * Registers sources as long as the layer lives.
 *
 * @example
 * ```ts
 * import { ContextRegistry, SystemContext } from "@daybook/core"
 * import { Effect, Schema } from "effect"
 *
 * export const sources = ContextRegistry.layerSources([
 *   SystemContext.source({
 *     key: "shop/hours",
 *     schema: Schema.String,
 *     load: () => Effect.succeed(SystemContext.available("9 to 5")),
 *     baseline: (hours) => `The shop is open from ${hours}.`,
 *     update: (_, hours) => `The shop is open from ${hours} now.`
 *   })
 * ])
 * ```
 */
export const layerSources = (sources: ReadonlyArray<ContextSource>): Layer.Layer<never, never, HostContext> =>
  Layer.scopedDiscard(
    Effect.flatMap(HostContext, ({ register }) => Effect.forEach(sources, register, { discard: true }))
  )

/** What `ContextRegistry` offers. */
export interface ContextRegistryService {
  readonly register: (source: ContextSource) => Effect.Effect<void, never, Scope.Scope>
  readonly observe: (turn: ContextTurn) => Effect.Effect<Observed>
}

/** The context sources of the current Location (CX-10). */
export class ContextRegistry extends Context.Tag("@daybook/core/ContextRegistry")<
  ContextRegistry,
  ContextRegistryService
>() {}

/** A source that takes longer counts as failed. */
const patience = "10 seconds"

const failed: Look = { _tag: "Unavailable", optional: false }

/** Reads the sources concurrently, under one timer. The looks are in the order of the sources. */
const lookAt = Effect.fnUntraced(function* (sources: ReadonlyArray<ContextSource>, turn: ContextTurn) {
  const found = new Map<string, Look>()
  const look = ({ key, load }: ContextSource) =>
    Effect.matchCauseEffect(
      Effect.suspend(() => load(turn)),
      {
        onSuccess: (seen) => Effect.sync(() => found.set(key, seen)),
        onFailure: (cause) =>
          Effect.as(Effect.logWarning(`context source ${key} could not be read`, cause), found.set(key, failed))
      }
    )
  yield* Effect.timeoutOption(Effect.forEach(sources, look, { concurrency: "unbounded", discard: true }), patience)
  const seen = new Map<string, Look>()
  for (const { key } of sources) {
    const one = found.get(key)
    if (one === undefined) yield* Effect.logWarning(`context source ${key} took longer than ${patience}`)
    seen.set(key, one ?? failed)
    if ((one ?? failed)._tag === "Unavailable") {
      yield* Metric.increment(Metric.tagged(Metrics.contextUnavailable, "source", key))
    }
  }
  return seen
})

const builtins = Effect.gen(function* () {
  const { directory } = yield* CurrentLocation
  const settings = yield* ContextSettings
  const trust = yield* ProjectTrust
  const { known } = yield* InstructionDiscovery.InstructionDiscovery
  const reader = makeReader()
  const [addresses, patterns] = Arr.partition(settings.instructions, (each) => !isAddress(each))
  return [
    hostDate,
    makeEnvironment(directory),
    modelIdentity,
    userInstructions(reader, settings.userFolder),
    configuredInstructions(reader, directory, patterns, trust),
    yield* remoteInstructions(addresses),
    ...(settings.projectConfig
      ? [projectInstructions(reader, directory, trust), nestedInstructions(reader, directory, known, trust)]
      : []),
    skillGuidance(yield* Skills.Skills)
  ]
})

export const layer = Layer.effect(
  ContextRegistry,
  Effect.gen(function* () {
    const host = yield* HostContext
    const builtin = yield* builtins
    const own = makeSources(builtin)
    const observe = spanned(
      "ContextRegistry.observe",
      Effect.fnUntraced(function* (turn: ContextTurn) {
        const began = yield* Clock.currentTimeMillis
        // For duplicate keys, the narrower source wins.
        const sources = new Map(
          [...(yield* host.sources), ...builtin, ...(yield* own.sources)].map((each) => [each.key, each])
        )
        const observed = yield* lookAt([...sources.values()], turn)
        yield* Metric.update(Metrics.contextTime, (yield* Clock.currentTimeMillis) - began)
        return observed
      })
    )
    return ContextRegistry.of({ register: own.register, observe })
  })
).pipe(Layer.provide([InstructionDiscovery.layer, Skills.layer]))
