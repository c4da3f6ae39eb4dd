/**
 * The form of a tool in a provider request: its name, description and JSON schema, with a decoder that accepts
 * anything. Input is checked when the call is settled, so that bad input becomes a result for the model and never
 * breaks the provider's stream (TO-3).
 */
import { Tool } from "@effect/ai"
import { Schema } from "effect"

export const wireTool = (tool: Tool.Any): Tool.Any => {
  const jsonSchema = Tool.getJsonSchemaFromSchemaAst(tool.parametersSchema.ast)
  const anything = Schema.Unknown.annotations({ jsonSchema })
  return Tool.make(tool.name, {
    ...(tool.description === undefined ? {} : { description: tool.description }),
    success: Schema.Unknown,
    failure: Schema.Unknown
  })
    .setParameters(
      // The library types parameters as a struct; at run time it asks for a schema only.
      anything as unknown as Tool.AnyStructSchema
    )
    .annotateContext(tool.annotations)
}
