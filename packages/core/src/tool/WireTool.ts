/**
 * Builds the tool of a provider request: name, description and JSON schema, with a decoder that accepts anything. Input
 * is checked when the call is settled, so that bad input becomes a result for the model and does not break the
 * provider's stream (TO-107).
 */
import * as Tool from "@effect/ai/Tool"
import { Context, Schema } from "effect"

/** A tool with parameters from a JSON schema; it decodes any input and any result. */
export const jsonSchemaTool = (tool: {
  readonly name: string
  readonly description?: string | undefined
  readonly parameters: object
  readonly annotations?: Context.Context<never>
}): Tool.Any =>
  Tool.make(tool.name, {
    ...(tool.description === undefined ? {} : { description: tool.description }),
    success: Schema.Unknown,
    failure: Schema.Unknown
  })
    .setParameters(
      // The library types parameters as a struct, but at run time only requires a schema.
      Schema.Unknown.annotations({ jsonSchema: tool.parameters }) as unknown as Schema.Struct<Schema.Struct.Fields>
    )
    .annotateContext(tool.annotations ?? Context.empty())

export const wireTool = (tool: Tool.Any, description = tool.description): Tool.Any =>
  jsonSchemaTool({
    name: tool.name,
    description,
    parameters: Tool.getJsonSchemaFromSchemaAst(tool.parametersSchema.ast),
    annotations: tool.annotations
  })
