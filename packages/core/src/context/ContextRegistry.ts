/** The context sources of one Location: built-in ones, the host's, and those registered here. Observes them all. */
import { Clock, Context, DateTime, Effect, Layer, Schema, type Scope } from "effect"
import { CurrentLocation } from "../session/CurrentLocation.ts"
import { absent, SourceKey, text, unavailable, type Observation, type Observed } from "./SystemContext.ts"

/** A source of privileged text. `load` looks once; a failure to look is `Unavailable`, nothing to say is `Absent`. */
export interface ContextSource {
  /** `area/name`, lower case. */
  readonly key: string
  readonly load: Effect.Effect<Observation>
}

/** Sources of the host, for every Location. A host registers here; the scope takes them away again. */
export class HostContext extends Context.Tag("@daybook/core/HostContext")<
  HostContext,
  {
    /** Adds a source until the scope closes. A key that is taken is a defect: two parts of a host disagree. */
    readonly register: (source: ContextSource) => Effect.Effect<void, never, Scope.Scope>
    readonly sources: Effect.Effect<ReadonlyArray<ContextSource>>
  }
>() {}

const isSourceKey = Schema.is(SourceKey)

const makeSources = (): Context.Tag.Service<typeof HostContext> => {
  const sources = new Map<string, ContextSource>()
  return {
    register: (source) =>
      Effect.acquireRelease(
        Effect.suspend(() => {
          if (!isSourceKey(source.key)) {
            return Effect.dieMessage(`"${source.key}" is no key of a context source: use area/name, lower case`)
          }
          if (sources.has(source.key)) return Effect.dieMessage(`context source ${source.key} is registered already`)
          sources.set(source.key, source)
          return Effect.void
        }),
        () => Effect.sync(() => sources.delete(source.key))
      ),
    sources: Effect.sync(() => [...sources.values()])
  }
}

/** No host sources until they are registered. */
export const layerHost = Layer.sync(HostContext, makeSources)

export class ContextRegistry extends Context.Tag("@daybook/core/ContextRegistry")<
  ContextRegistry,
  {
    readonly register: (source: ContextSource) => Effect.Effect<void, never, Scope.Scope>
    /** Looks at all sources at once. */
    readonly observe: Effect.Effect<Observed>
  }
>() {}

/** Where the session works and on what. */
const environment = (directory: string): ContextSource => ({
  key: "daybook/environment",
  load: Effect.sync(() =>
    text(`You work in the folder ${directory} on ${process.platform}. Paths you give to tools are relative to it.`)
  )
})

/** The host's date, in its own time zone. */
const date: ContextSource = {
  key: "daybook/date",
  load: Effect.map(Clock.currentTimeMillis, (now) =>
    text(`Today's date is ${DateTime.formatIsoDate(DateTime.setZone(DateTime.unsafeMake(now), localZone))}.`)
  )
}

const localZone = DateTime.zoneMakeLocal()

/** The registry of the current Location. */
export const layer = Layer.effect(
  ContextRegistry,
  Effect.gen(function* () {
    const { directory } = yield* CurrentLocation
    const host = yield* HostContext
    const own = makeSources()
    const builtin = [environment(directory), date]
    const observe = Effect.gen(function* () {
      const sources = [...builtin, ...(yield* host.sources), ...(yield* own.sources)]
      const observed = yield* Effect.forEach(
        sources,
        ({ key, load }) =>
          Effect.map(
            Effect.catchAllDefect(load, (defect) =>
              Effect.as(Effect.logWarning(`context source ${key} failed`, defect), unavailable)
            ),
            // Empty text is nothing to say.
            (observation) =>
              [key, observation._tag === "Text" && observation.text === "" ? absent : observation] as const
          ),
        { concurrency: "unbounded" }
      )
      return new Map(observed)
    })
    return ContextRegistry.of({ register: own.register, observe })
  })
)
