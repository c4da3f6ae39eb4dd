/** Registers the host's tools, above the built-in tools and below the Location's own. Process-global. Spec: TO-15. */
import type * as Tool from "@effect/ai/Tool"
import type * as Toolkit from "@effect/ai/Toolkit"
import { Context, Effect, Layer, type Scope } from "effect"
import type { Agent } from "../domain/Agent.ts"
import { fromToolkit, provide, type RunHere, type ToolDefinition, wireTool } from "./ToolDefinition.ts"

// Keeps tools by name in layers: a registration overlays earlier ones until its scope closes (TO-15).

/** One registration of one tool. Its identity shows whether a tool changed since it was offered. */
export interface ToolEntry {
  readonly definition: ToolDefinition
  /** The tool as a request of this agent offers it. */
  readonly wire: (agent: Agent) => Tool.Any
}

export const entryOf = (definition: ToolDefinition): ToolEntry => {
  const plain = wireTool(definition.tool)
  const described = new Map<string, Tool.Any>()
  const wire = (agent: Agent): Tool.Any => {
    const description = definition.describe?.(agent)
    if (description === undefined) return plain
    const known = described.get(description) ?? wireTool(definition.tool, description)
    described.set(description, known)
    return known
  }
  return { definition, wire }
}

/** Layered registrations, by name. */
export interface ToolOverlay {
  /** Adds tools until the scope closes. Their calls get the services that the context has now. */
  readonly register: <R>(definitions: ReadonlyArray<ToolDefinition<R>>) => Effect.Effect<void, never, R | Scope.Scope>
  readonly get: (name: string) => ToolEntry | undefined
  readonly names: () => Iterable<string>
  /** Adds a source of explanations for missing tools, until the scope closes. */
  readonly explain: (source: Explanation) => Effect.Effect<void, never, Scope.Scope>
  /** Why a tool is missing, if known. */
  readonly whyMissing: Explanation
  /** Makes requests wait for tools that register later, until the scope closes. */
  readonly awaitBeforeUse: (ready: Effect.Effect<void>) => Effect.Effect<void, never, Scope.Scope>
  readonly ready: Effect.Effect<void>
}

/** Why the tool with this name is missing; undefined if unknown. */
export type Explanation = (name: string) => string | undefined

/** Holds a value in a set until the scope closes. */
const held = <A>(all: Set<A>, value: A): Effect.Effect<void, never, Scope.Scope> =>
  Effect.asVoid(
    Effect.acquireRelease(
      Effect.sync(() => all.add(value)),
      () => Effect.sync(() => all.delete(value))
    )
  )

export const makeToolOverlay = (): ToolOverlay => {
  const stacks = new Map<string, ReadonlyArray<ToolEntry>>()
  const explanations = new Set<Explanation>()
  const announced = new Set<Effect.Effect<void>>()
  const add = (entry: ToolEntry) => {
    const { name } = entry.definition.tool
    stacks.set(name, [...(stacks.get(name) ?? []), entry])
  }
  const remove = (entry: ToolEntry) => {
    const { name } = entry.definition.tool
    const rest = (stacks.get(name) ?? []).filter((other) => other !== entry)
    if (rest.length === 0) stacks.delete(name)
    else stacks.set(name, rest)
  }
  return {
    register: <R>(definitions: ReadonlyArray<ToolDefinition<R>>) =>
      Effect.asVoid(
        Effect.acquireRelease(
          Effect.contextWith((services: Context.Context<R>) => {
            const entries = definitions.map((definition) => entryOf(provide(definition, services)))
            entries.forEach(add)
            return entries
          }),
          (entries) => Effect.sync(() => entries.forEach(remove))
        )
      ),
    get: (name) => stacks.get(name)?.at(-1),
    names: () => stacks.keys(),
    explain: (source) => held(explanations, source),
    awaitBeforeUse: (ready) => held(announced, ready),
    ready: Effect.suspend(() => Effect.all([...announced], { concurrency: "unbounded", discard: true })),
    whyMissing: (name) => {
      for (const source of explanations) {
        const reason = source(name)
        if (reason !== undefined) return reason
      }
      return undefined
    }
  }
}

export class HostTools extends Context.Tag("@daybook/core/HostTools")<
  HostTools,
  /** `register` adds tools until its scope closes, which uncovers the tools below. */
  ToolOverlay
>() {}

export const layer: Layer.Layer<HostTools> = Layer.sync(HostTools, makeToolOverlay)

/** Registers tools as long as the layer lives, and provides the services that their handlers require. */
export const layerTools = <R>(
  definitions: ReadonlyArray<ToolDefinition<R>>
): Layer.Layer<never, never, HostTools | Exclude<R, Scope.Scope>> =>
  Layer.scopedDiscard(Effect.flatMap(HostTools, (host) => host.register(definitions)))

/**
 * Registers an `@effect/ai` toolkit as long as the layer lives. Its handlers come from `toolkit.toLayer`.
 *
 * @example
 * ```ts
 * import { HostTools } from "@daybook/core"
 * import * as Tool from "@effect/ai/Tool"
 * import * as Toolkit from "@effect/ai/Toolkit"
 * import { Effect, Layer, Schema } from "effect"
 *
 * const dice = Toolkit.make(
 *   Tool.make("roll", { parameters: { sides: Schema.Int }, success: Schema.Int })
 * )
 * const handlers = dice.toLayer({ roll: ({ sides }) => Effect.sync(() => 1 + Math.floor(Math.random() * sides)) })
 *
 * export const tools = HostTools.layerToolkit(dice).pipe(Layer.provide(handlers))
 * ```
 */
export const layerToolkit = <Tools extends Record<string, Tool.Any>>(
  toolkit: Toolkit.Toolkit<Tools> & RunHere<Tools>
): Layer.Layer<
  never,
  never,
  HostTools | Tool.HandlersFor<Tools> | Exclude<Tool.Requirements<Tools[keyof Tools]>, Scope.Scope>
> => Layer.unwrapEffect(Effect.map(fromToolkit(toolkit), layerTools))
