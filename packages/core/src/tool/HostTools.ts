/**
 * Registers the host application's tools. They appear in every Location, above the built-in tools and below the
 * Location's own. Process-global. Spec: TO-15.
 */
import type * as Tool from "@effect/ai/Tool"
import type * as Toolkit from "@effect/ai/Toolkit"
import { Context, Effect, Layer, type Scope } from "effect"
import { fromToolkit, type RunHere, type ToolDefinition } from "./ToolDefinition.ts"
import { makeToolOverlay, type ToolOverlay } from "./ToolOverlay.ts"

/** The host's tools. */
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
