/**
 * Tools of the host application: they appear in every Location, above the built-in tools and below the Location's own.
 * Process-global. Spec: TO-15.
 */
import { Context, Layer } from "effect"
import { makeToolOverlay, type ToolOverlay } from "./ToolOverlay.ts"

/** The host's tools: `register` adds some for as long as a scope. */
export class HostTools extends Context.Tag("@daybook/core/HostTools")<
  HostTools,
  /** `register` lasts as long as the scope it is used in; closing it shows again what lay below. */
  ToolOverlay
>() {}

export const layer: Layer.Layer<HostTools> = Layer.sync(HostTools, makeToolOverlay)
