/**
 * Converts a conversation of any provider to one wire: call ids in its alphabet and length, each used once; tool names
 * as offered; results of other providers' hosted tools as text. A message's form depends only on earlier messages, so
 * that these keep their bytes. Pure. Spec: MD-24, MD-54, MD-58, MD-59.
 */
import * as Prompt from "@effect/ai/Prompt"
import { Predicate } from "effect"
import { freeName, type WireNames } from "./WireNames.ts"

/** The form of call ids in a protocol. */
export interface CallIds {
  /** Characters replaced by `_`. */
  readonly refused: RegExp
  readonly length: number
}

/** A call or a result, in either role. */
type CallPart = Prompt.ToolCallPart | Prompt.ToolResultPart

const isCallPart = (part: Prompt.AssistantMessagePart): part is CallPart =>
  part.type === "tool-call" || part.type === "tool-result"

/** Assigns ids to calls in order; a result takes the id assigned to its call. */
const makeIds = ({ length, refused }: CallIds) => {
  const used = new Set<string>()
  /** The next number to try per id, so that many calls with one id take linear time. */
  const next = new Map<string, number>()
  const waiting = new Map<string, Array<string>>()
  const plain = (id: string): string => id.replaceAll(refused, "_").slice(0, length) || "call"
  return (part: CallPart): string => {
    if (part.type === "tool-result") return waiting.get(part.id)?.shift() ?? plain(part.id)
    const base = plain(part.id)
    const from = next.get(base) ?? 2
    const id = freeName(base, length, (name) => used.has(name), from)
    if (id !== base) next.set(base, from + 1)
    used.add(id)
    waiting.set(part.id, [...(waiting.get(part.id) ?? []), id])
    return id
  }
}

/** Rewrites calls and results with wire ids and names. */
export const withWireCalls = (prompt: Prompt.Prompt, ids: CallIds, names: WireNames): Prompt.Prompt => {
  const idOf = makeIds(ids)
  const renamed = <P extends CallPart>(part: P): P => ({
    ...part,
    id: idOf(part),
    name: part.providerExecuted ? part.name : names.toWire(part.name)
  })
  return Prompt.fromMessages(
    prompt.content.map((message) => {
      if (message.role === "tool") return { ...message, content: message.content.map(renamed) }
      if (message.role !== "assistant") return message
      return { ...message, content: message.content.map((part) => (isCallPart(part) ? renamed(part) : part)) }
    })
  )
}

const resultChars = 2_000

const inWords = ({ name, result }: Prompt.ToolResultPart): Prompt.TextPart => {
  const json = Predicate.isNullable(result) ? "no result" : (JSON.stringify(result) ?? "no result")
  return Prompt.textPart({ text: `[${name}: ${json.slice(0, resultChars)}]` })
}

/** Replaces the content of each answer; an empty answer is dropped. */
export const mapAnswers = (
  prompt: Prompt.Prompt,
  replace: (content: Prompt.AssistantMessage["content"]) => Prompt.AssistantMessage["content"]
): Prompt.Prompt =>
  Prompt.fromMessages(
    prompt.content.flatMap((message): ReadonlyArray<Prompt.Message> => {
      if (message.role !== "assistant") return [message]
      const content = replace(message.content)
      return content.length === 0 ? [] : [{ ...message, content }]
    })
  )

/** Converts results of hosted tools to text if this provider does not accept them back. */
export const hostedAsText = (
  prompt: Prompt.Prompt,
  takes: (call: Prompt.ToolCallPart, result: Prompt.ToolResultPart) => boolean
): Prompt.Prompt =>
  mapAnswers(prompt, (content) => {
    const results = content.filter((part): part is Prompt.ToolResultPart => part.type === "tool-result")
    const kept = new Set<unknown>()
    for (const part of content) {
      if (part.type !== "tool-call" || !part.providerExecuted) continue
      const result = results.find(({ id }) => id === part.id)
      if (result !== undefined && takes(part, result)) kept.add(part).add(result)
    }
    return content.flatMap((part) => {
      if (kept.has(part)) return [part]
      if (part.type === "tool-result") return [inWords(part)]
      return part.type === "tool-call" && part.providerExecuted ? [] : [part]
    })
  })

/**
 * Converts system messages after the first other message to user messages: providers with a single system prompt would
 * drop them, or drop the first ones (MD-12).
 */
export const systemAsUser = (prompt: Prompt.Prompt): Prompt.Prompt => {
  const head = prompt.content.findIndex((message) => message.role !== "system")
  return Prompt.fromMessages(
    prompt.content.map((message, index) =>
      message.role === "system" && head >= 0 && index > head
        ? Prompt.userMessage({
            content: [Prompt.textPart({ text: `<system-update>\n${message.content}\n</system-update>` })]
          })
        : message
    )
  )
}
