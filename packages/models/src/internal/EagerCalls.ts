/**
 * Completes each call of a chat completion as early as the protocol allows: when the next call begins, the last one
 * with the finish reason. The library waits with all of them for the end of the stream. A call whose input is not yet a
 * JSON object stays open, since a server may interleave the inputs of several calls. Spec: MD-60.
 */
import type { LanguageModelV3StreamPart } from "@ai-sdk/provider"
import { Predicate } from "effect"
import { parseObject } from "./WireFetch.ts"

type Part = LanguageModelV3StreamPart

/** Needs raw chunks (`includeRawChunks`), which the library delivers before their parts. */
export const makeEagerCalls = () => {
  const open = new Map<string, { readonly name: string; input: string }>()
  const completed = new Set<string>()
  let finished = false

  const complete = (mayBeEmpty: boolean): ReadonlyArray<Part> =>
    [...open].flatMap(([id, { input, name }]): ReadonlyArray<Part> => {
      if (parseObject(input) === undefined && !(mayBeEmpty && input === "")) return []
      open.delete(id)
      completed.add(id)
      return [
        { type: "tool-input-end", id },
        { type: "tool-call", toolCallId: id, toolName: name, input }
      ]
    })

  return (part: Part): ReadonlyArray<Part> => {
    switch (part.type) {
      case "raw": {
        const before = finished ? complete(true) : []
        finished ||= isFinish(part.rawValue)
        // A chunk with both the reason and input has parts still to come.
        return finished && !hasCalls(part.rawValue) ? [...before, ...complete(true)] : before
      }
      case "tool-input-start": {
        const before = complete(false)
        open.set(part.id, { name: part.toolName, input: "" })
        return [...before, part]
      }
      case "tool-input-delta": {
        const call = open.get(part.id)
        if (call !== undefined) call.input += part.delta
        return completed.has(part.id) ? [] : [part]
      }
      case "tool-input-end":
        return completed.has(part.id) ? [] : [part]
      case "tool-call":
        open.delete(part.toolCallId)
        return completed.has(part.toolCallId) ? [] : [part]
      default:
        return [part]
    }
  }
}

const choiceOf = (chunk: unknown): unknown =>
  Predicate.hasProperty(chunk, "choices") && Array.isArray(chunk.choices) ? chunk.choices[0] : undefined

/**
 * Finish reasons after which calls are complete: neither an empty one, which some servers send throughout, nor the
 * output limit.
 */
const whole: ReadonlySet<unknown> = new Set(["tool_calls", "function_call", "stop"])

const isFinish = (chunk: unknown): boolean => {
  const choice = choiceOf(chunk)
  return Predicate.hasProperty(choice, "finish_reason") && whole.has(choice.finish_reason)
}

const hasCalls = (chunk: unknown): boolean => {
  const choice = choiceOf(chunk)
  if (!Predicate.hasProperty(choice, "delta") || !Predicate.hasProperty(choice.delta, "tool_calls")) return false
  return Array.isArray(choice.delta.tool_calls) && choice.delta.tool_calls.length > 0
}
