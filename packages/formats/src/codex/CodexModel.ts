/** Says which part of an answer a response item is. Pure. Spec: FM-153 in specs/formats.md. */
import type { AnswerPart, Content } from "../conversation/Conversation.ts"
import { contentOf, inputOf, textOf } from "./CodexContent.ts"
import type { Payload } from "./CodexRecord.ts"

/** What a model produced in one item. */
export interface Produced {
  readonly parts: ReadonlyArray<AnswerPart>
  /** The result, if the provider ran the tool itself. */
  readonly result?: {
    readonly callID: string
    readonly tool: string
    readonly content: Content
    readonly failed: boolean
  }
}

const joined = (...texts: ReadonlyArray<string>): string => texts.filter((text) => text !== "").join("\n\n")

const textParts = (type: "text" | "reasoning", text: string): ReadonlyArray<AnswerPart> =>
  text === "" ? [] : [{ type, text }]

/** A call that the provider ran: its result is part of the item. */
const providerCall = (payload: Payload, key: string, tool: string, input: unknown, content: Content): Produced => {
  const callID = payload.call_id ?? payload.id ?? key
  return {
    parts: [{ type: "call", id: callID, name: tool, input: inputOf(input) }],
    result: { callID, tool, content, failed: payload.status === "failed" || payload.status === "incomplete" }
  }
}

const call = (payload: Payload, key: string, name: string, input: unknown): Produced => ({
  parts: [{ type: "call", id: payload.call_id ?? payload.id ?? key, name, input: inputOf(input) }]
})

/** Undefined: a model did not produce the item. `key` names a call without an id. */
export const producedOf = (payload: Payload, key: string): Produced | undefined => {
  switch (payload.type) {
    case "message":
      return payload.role === "assistant" ? { parts: textParts("text", textOf(contentOf(payload.content))) } : undefined
    case "reasoning":
      // The readable part. The encrypted one stays in the record.
      return {
        parts: textParts("reasoning", joined(textOf(contentOf(payload.summary)), textOf(contentOf(payload.content))))
      }
    case "function_call":
      return call(payload, key, payload.name ?? "unknown", payload.arguments)
    case "custom_tool_call":
      return call(payload, key, payload.name ?? "unknown", payload.input)
    case "local_shell_call":
      return call(payload, key, "local_shell", payload.action)
    case "tool_search_call":
      return call(payload, key, "tool_search", payload.arguments)
    case "web_search_call":
      return providerCall(payload, key, "web_search", payload.action, [])
    case "image_generation_call":
      return providerCall(
        payload,
        key,
        "image_generation",
        payload.revised_prompt === undefined ? {} : { prompt: payload.revised_prompt },
        payload.result ? [{ type: "media", mime: "image/png", data: payload.result }] : []
      )
    default:
      return undefined
  }
}
