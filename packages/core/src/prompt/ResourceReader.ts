/** Reads resources of MCP servers for prompts. A host without servers has none. Spec: PX-18. */
import { Context, Effect, Layer, Schema } from "effect"
import { Mcp } from "../mcp/Mcp.ts"
import type { ToolContent } from "../session/Schemas.ts"

/** A resource cannot be read; `message` is a sentence for the model. */
export class ResourceUnreadable extends Schema.TaggedError<ResourceUnreadable>("@daybook/core/ResourceUnreadable")(
  "ResourceUnreadable",
  { message: Schema.String }
) {}

export interface Reader {
  /** The names of the available servers. */
  readonly servers: Effect.Effect<ReadonlyArray<string>>
  readonly read: (server: string, uri: string) => Effect.Effect<ReadonlyArray<ToolContent>, ResourceUnreadable>
}

export class ResourceReader extends Context.Reference<ResourceReader>()("@daybook/core/ResourceReader", {
  defaultValue: (): Reader => ({
    servers: Effect.succeed([]),
    read: (server) => new ResourceUnreadable({ message: `there is no MCP server "${server}"` })
  })
}) {}

/** Resources of the configured MCP servers. */
export const layer: Layer.Layer<never, never, Mcp> = Layer.effect(
  ResourceReader,
  Effect.map(Mcp, (mcp) => ({
    servers: Effect.map(mcp.status, (all) => all.map(({ name }) => name)),
    read: (server: string, uri: string) =>
      Effect.mapError(mcp.readResource(server, uri), ({ message }) => new ResourceUnreadable({ message }))
  }))
)
