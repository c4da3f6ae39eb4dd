/** Reads resources of MCP servers for prompts. By default there are no servers. Spec: PX-18. */
import { Context, Effect, Schema } from "effect"
import type { ToolContent } from "@daybook/log/domain/Values"

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
