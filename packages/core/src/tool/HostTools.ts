/**
 * Registers the host application's tools. They appear in every Location, above the built-in tools and below the
 * Location's own. Process-global. Spec: TO-15.
 */
import { Context, Layer } from "effect"
import { makeToolOverlay, type ToolOverlay } from "./ToolOverlay.ts"

/** The host's tools. */
export class HostTools extends Context.Tag("@daybook/core/HostTools")<
  HostTools,
  /** `register` adds tools until its scope closes, which uncovers the tools below. */
  ToolOverlay
>() {}

export const layer: Layer.Layer<HostTools> = Layer.sync(HostTools, makeToolOverlay)
