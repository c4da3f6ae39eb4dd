/** Converts `@effect/ai` prompts, tools and tool choice to the AI SDK's form. Pure. Spec: MD-25. */
import type {
  JSONObject,
  JSONSchema7,
  JSONValue,
  LanguageModelV3CallOptions,
  LanguageModelV3FilePart,
  LanguageModelV3FunctionTool,
  LanguageModelV3Message,
  LanguageModelV3Prompt,
  LanguageModelV3ProviderTool,
  LanguageModelV3ReasoningPart,
  LanguageModelV3TextPart,
  LanguageModelV3ToolCallPart,
  LanguageModelV3ToolResultOutput,
  LanguageModelV3ToolResultPart
} from "@ai-sdk/provider"
import type * as LanguageModel from "@effect/ai/LanguageModel"
import type * as Prompt from "@effect/ai/Prompt"
import * as Tool from "@effect/ai/Tool"
import { Predicate } from "effect"

type ProviderOptions = { readonly providerOptions?: Record<string, JSONObject> }

export const toPrompt = (prompt: Prompt.Prompt): LanguageModelV3Prompt => prompt.content.map(toMessage)

const toMessage = (message: Prompt.Message): LanguageModelV3Message => {
  const options = providerOptions(message.options)
  switch (message.role) {
    case "system":
      return { role: "system", content: message.content, ...options }
    case "user":
      return { role: "user", content: message.content.map(userPart), ...options }
    case "assistant":
      return { role: "assistant", content: message.content.map(assistantPart), ...options }
    case "tool":
      return { role: "tool", content: message.content.map(toolResult), ...options }
  }
}

const userPart = (part: Prompt.UserMessagePart): LanguageModelV3TextPart | LanguageModelV3FilePart =>
  part.type === "text" ? { type: "text", text: part.text, ...providerOptions(part.options) } : filePart(part)

const filePart = (part: Prompt.FilePart): LanguageModelV3FilePart => ({
  type: "file",
  mediaType: part.mediaType,
  data: part.data,
  ...(part.fileName === undefined ? {} : { filename: part.fileName }),
  ...providerOptions(part.options)
})

const assistantPart = (
  part: Prompt.AssistantMessagePart
):
  | LanguageModelV3TextPart
  | LanguageModelV3FilePart
  | LanguageModelV3ReasoningPart
  | LanguageModelV3ToolCallPart
  | LanguageModelV3ToolResultPart => {
  const options = providerOptions(part.options)
  switch (part.type) {
    case "text":
      return { type: "text", text: part.text, ...options }
    case "reasoning":
      return { type: "reasoning", text: part.text, ...options }
    case "file":
      return filePart(part)
    case "tool-call":
      return {
        type: "tool-call",
        toolCallId: part.id,
        toolName: part.name,
        input: part.params,
        ...(part.providerExecuted ? { providerExecuted: true } : {}),
        ...options
      }
    case "tool-result":
      return toolResult(part)
  }
}

const toolResult = (part: Prompt.ToolResultPart): LanguageModelV3ToolResultPart => ({
  type: "tool-result",
  toolCallId: part.id,
  toolName: part.name,
  output: toolOutput(part.result, part.isFailure),
  ...providerOptions(part.options)
})

const toolOutput = (result: unknown, isFailure: boolean): LanguageModelV3ToolResultOutput =>
  Predicate.isString(result)
    ? { type: isFailure ? "error-text" : "text", value: result }
    : { type: isFailure ? "error-json" : "json", value: toJson(result) }

const toJson = (value: unknown): JSONValue => {
  const json: JSONValue = JSON.parse(JSON.stringify(value ?? null))
  return json
}

/** Provider metadata is sent back as provider options. */
const providerOptions = (options: Readonly<Record<string, unknown>>): ProviderOptions => {
  const entries = Object.entries(options).flatMap(([provider, value]) => {
    const json = toJson(value)
    return Predicate.isRecord(json) ? [[provider, json as JSONObject] as const] : []
  })
  return entries.length === 0 ? {} : { providerOptions: Object.fromEntries(entries) }
}

export const toTools = (
  options: LanguageModel.ProviderOptions
): Pick<LanguageModelV3CallOptions, "tools" | "toolChoice"> => {
  if (options.tools.length === 0) return {}
  return { tools: options.tools.map(toTool), toolChoice: toToolChoice(options.toolChoice) }
}

const toTool = (tool: Tool.Any): LanguageModelV3FunctionTool | LanguageModelV3ProviderTool => {
  if (Tool.isProviderDefined(tool)) {
    return {
      type: "provider",
      // The library types ids as strings; a provider-defined tool's id is `provider.tool`.
      id: tool.id as `${string}.${string}`,
      name: tool.providerName,
      args: Predicate.isRecord(tool.args) ? tool.args : {}
    }
  }
  return {
    type: "function",
    name: tool.name,
    ...(tool.description === undefined ? {} : { description: tool.description }),
    // Both packages describe the same JSON schema with different types.
    inputSchema: Tool.getJsonSchemaFromSchemaAst(tool.parametersSchema.ast) as JSONSchema7
  }
}

const toToolChoice = (
  choice: LanguageModel.ProviderOptions["toolChoice"]
): NonNullable<LanguageModelV3CallOptions["toolChoice"]> => {
  if (Predicate.isString(choice)) return { type: choice }
  if ("tool" in choice) return { type: "tool", toolName: choice.tool }
  return { type: choice.mode ?? "auto" }
}
