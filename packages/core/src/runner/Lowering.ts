/**
 * From projected messages to the provider's prompt. Pure, but for remembering what a message came to, so that an
 * unchanged one is lowered once. Calls and results always travel in pairs; provider-native data goes back only to the
 * provider and model that it came from (MS-1..MS-4). Spec: EX-R4..EX-R8, RQ-20..RQ-24.
 */
import type { Prompt } from "@effect/ai"
import { Predicate, Record } from "effect"
import { isPruned, nothingPruned, placeholder } from "../compaction/Prune.ts"
import { clipped, filePart, textPart, type UserPart } from "../prompt/FilePart.ts"
import { expandedParts } from "../prompt/Shown.ts"
import type { AssistantMessage, Message, ToolPart, UserMessage } from "../session/Message.ts"
import { sameModel, type ModelRef, type ProviderMetadata } from "../session/Schemas.ts"

/** For whom, and how much of it. */
export interface Shown {
  readonly model: ModelRef
  /** Whether the provider takes system messages between others (RQ-22). */
  readonly systemMessages: "leading" | "anywhere"
  /** Results of tools in messages up to this place are shown as placeholders. */
  readonly prunedSeq: number
}

/** Everything, for a provider that takes system messages only at the start. */
export const shownTo = (model: ModelRef): Shown => ({ model, systemMessages: "leading", prunedSeq: nothingPruned })

type AssistantPart = Prompt.AssistantMessagePartEncoded

const userMessage = (content: ReadonlyArray<UserPart>): Prompt.MessageEncoded => ({ role: "user", content })

/** Metadata as it came, for the same provider and model only, and never from a failed answer (MS-1). */
const nativeTo = (message: AssistantMessage, model: ModelRef): boolean =>
  message.error === undefined && sameModel({ ...message.model, variant: "any" }, { ...model, variant: "any" })

/** Provider -> record is the form that the library replays; an imported session may hold something else. */
const options = (metadata: ProviderMetadata | undefined, native: boolean) =>
  native && metadata !== undefined ? { options: Record.filter(metadata, Predicate.isRecord) } : {}

const resultText = (part: ToolPart): string => {
  if (part.state === "error") return part.error?.message ?? "the tool failed"
  const texts = (part.content ?? []).flatMap((content) => (content.type === "text" ? [content.text] : []))
  if (texts.length > 0) return texts.join("\n")
  return (part.content ?? []).length > 0 ? "The content follows." : JSON.stringify(part.structured ?? {})
}

/** What is left of a provider's own result for another model: its start, in words. */
const hostedText = (part: ToolPart): string =>
  part.result === undefined ? resultText(part) : clipped(JSON.stringify(part.result), 2_000)

/** Whether the provider ran the tool: then call and result are both its own. */
const hosted = (part: ToolPart): boolean => part.provider?.executed === true

const assistantParts = (message: AssistantMessage, native: boolean): ReadonlyArray<AssistantPart> =>
  message.content.flatMap((part): ReadonlyArray<AssistantPart> => {
    if (part.type === "text") return part.text === undefined || part.text === "" ? [] : [textPart(part.text)]
    if (part.type === "reasoning") {
      const text = part.text ?? ""
      if (native && part.providerMetadata !== undefined) {
        return [{ type: "reasoning", text, ...options(part.providerMetadata, true) }]
      }
      // After a switch of models, what was visible of the reasoning stays as ordinary text (MS-2).
      return text === "" ? [] : [textPart(text)]
    }
    // A call that never came about has nothing to be paired with.
    if (part.state === "pending" || part.state === "running" || part.input === undefined) return []
    if (hosted(part) && !native) return [textPart(`[${part.name}: ${hostedText(part)}]`)]
    const call: AssistantPart = {
      type: "tool-call",
      id: part.id,
      name: part.name,
      params: part.input,
      providerExecuted: hosted(part),
      ...options(part.provider?.metadata, native)
    }
    if (!hosted(part)) return [call]
    const result: AssistantPart = {
      type: "tool-result",
      id: part.id,
      name: part.name,
      isFailure: part.state === "error",
      providerExecuted: true,
      result: part.result ?? null,
      ...options(part.provider?.resultMetadata ?? part.provider?.metadata, native)
    }
    return [call, result]
  })

const assistantMessages = (
  message: AssistantMessage,
  { model, prunedSeq }: Shown
): ReadonlyArray<Prompt.MessageEncoded> => {
  const native = nativeTo(message, model)
  const content = assistantParts(message, native)
  // An answer that said nothing is nothing to show (MS-3).
  if (content.length === 0) return []
  const local = message.content.filter(
    (part): part is ToolPart =>
      part.type === "tool" &&
      !hosted(part) &&
      part.input !== undefined &&
      (part.state === "completed" || part.state === "error")
  )
  const messages: Array<Prompt.MessageEncoded> = [{ role: "assistant", content }]
  if (local.length === 0) return messages
  messages.push({
    role: "tool",
    content: local.map((part) => ({
      type: "tool-result" as const,
      id: part.id,
      name: part.name,
      isFailure: part.state === "error",
      result: isPruned(message, part, prunedSeq) ? placeholder(part) : resultText(part),
      providerExecuted: false
    }))
  })
  const media = local.flatMap((part) =>
    (isPruned(message, part, prunedSeq) ? [] : (part.content ?? [])).flatMap((content) =>
      content.type === "file" ? [textPart(`Returned by ${part.name}:`), filePart(content)] : []
    )
  )
  if (media.length > 0) messages.push(userMessage(media))
  return messages
}

/** Privileged text in its place: as such where the provider takes it there, else marked in the user's role. */
const systemMessage = (text: string, { systemMessages }: Shown): Prompt.MessageEncoded =>
  systemMessages === "anywhere"
    ? { role: "system", content: text }
    : userMessage([textPart(`<system-update>\n${text}\n</system-update>`)])

const userMessages = (message: UserMessage, shown: Shown): ReadonlyArray<Prompt.MessageEncoded> => [
  ...(message.system === undefined || message.system === "" ? [] : [systemMessage(message.system, shown)]),
  userMessage(expandedParts(message))
]

const runningTask = (task: string): string =>
  "<running-task>\nThis prompt opened the work that is under way. Go on with it where the record ends; do not begin anew.\n" +
  `${task}\n</running-task>\n`

const lowerMessage = (message: Message, shown: Shown): ReadonlyArray<Prompt.MessageEncoded> => {
  switch (message.type) {
    case "user":
      return userMessages(message, shown)
    case "assistant":
      return assistantMessages(message, shown)
    case "system":
      return [systemMessage(message.text, shown)]
    case "synthetic":
      return [userMessage([textPart(message.text)])]
    case "shell":
      return [userMessage([textPart(`$ ${message.command}\n${message.output ?? ""}`)])]
    case "compaction":
      return [
        userMessage([
          textPart(
            "<conversation-checkpoint>\nThis is a record of the conversation so far. What it holds has happened; go on where it " +
              "ends. What was asked last in it and has no answer yet is still to be done.\n" +
              (message.task === undefined ? "" : runningTask(message.task)) +
              `<summary>\n${message.summary}\n</summary>\n<recent-context>\n${message.recent}\n</recent-context>\n` +
              "</conversation-checkpoint>"
          )
        ])
      ]
    case "agent-switched":
    case "model-switched":
      return []
  }
}

const remembered = new WeakMap<
  Message,
  { readonly key: string; readonly lowered: ReadonlyArray<Prompt.MessageEncoded> }
>()

/** What one message is shown as: the same objects again while nothing about it changed. */
export const lowerOne = (message: Message, shown: Shown): ReadonlyArray<Prompt.MessageEncoded> => {
  const { model, prunedSeq, systemMessages } = shown
  const key = `${model.providerID}/${model.id} ${systemMessages} ${message.seq <= prunedSeq}`
  const before = remembered.get(message)
  if (before?.key === key) return before.lowered
  const lowered = lowerMessage(message, shown)
  remembered.set(message, { key, lowered })
  return lowered
}

/** The messages in their order. */
export const lower = (messages: ReadonlyArray<Message>, shown: Shown): ReadonlyArray<Prompt.MessageEncoded> =>
  messages.flatMap((message) => lowerOne(message, shown))
