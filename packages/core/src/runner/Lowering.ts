/**
 * From projected messages to the provider's prompt. Pure. Calls and results always travel in pairs; provider-native
 * data goes back only to the provider and model that it came from (MS-1..MS-4). Spec: EX-R4..EX-R8.
 */
import type { Prompt } from "@effect/ai"
import { Predicate, Record } from "effect"
import type { AssistantMessage, Message, ToolPart } from "../session/Message.ts"
import { sameModel, type FileAttachment, type ModelRef, type ProviderMetadata } from "../session/Schemas.ts"

type UserPart = Prompt.UserMessagePartEncoded
type AssistantPart = Prompt.AssistantMessagePartEncoded

/** What every provider can be shown as a file; other media are described in words. */
const shownMedia = (mime: string): boolean => mime.startsWith("image/") || mime === "application/pdf"

/** A data URI may carry parameters between its media type and its body. */
const dataUri = /^data:[^,]*?(;base64)?,(.*)$/s

const textPart = (text: string): Prompt.TextPartEncoded => ({ type: "text", text })

const clipped = (text: string, limit: number): string =>
  text.length <= limit ? text : `${text.slice(0, limit)}... (${text.length} characters)`

/** Text in a URI; what is no percent-encoding stands for itself. */
const unescaped = (body: string): string => {
  try {
    return decodeURIComponent(body)
  } catch {
    return body
  }
}

/** A file as a part: inline media as such, inline text as text, anything else by name. */
const filePart = (file: Pick<FileAttachment, "uri" | "mime" | "name">): UserPart => {
  const [, base64, body] = dataUri.exec(file.uri) ?? []
  const name = file.name ?? "file"
  if (body === undefined) return textPart(`[attached: ${name} (${file.mime}) at ${clipped(file.uri, 1_000)}]`)
  if (shownMedia(file.mime) && base64 !== undefined) {
    return {
      type: "file",
      mediaType: file.mime,
      data: body,
      ...(file.name === undefined ? {} : { fileName: file.name })
    }
  }
  const bytes = base64 === undefined ? Buffer.from(unescaped(body)) : Buffer.from(body, "base64")
  return file.mime.startsWith("text/")
    ? textPart(`<file name=${JSON.stringify(name)}>\n${bytes.toString("utf8")}\n</file>`)
    : textPart(`[attached: ${name} (${file.mime}, ${bytes.length} bytes): this kind of content cannot be shown]`)
}

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

const assistantMessages = (message: AssistantMessage, model: ModelRef): ReadonlyArray<Prompt.MessageEncoded> => {
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
      result: resultText(part),
      providerExecuted: false
    }))
  })
  const media = local.flatMap((part) =>
    (part.content ?? []).flatMap((content) =>
      content.type === "file" ? [textPart(`Returned by ${part.name}:`), filePart(content)] : []
    )
  )
  if (media.length > 0) messages.push(userMessage(media))
  return messages
}

/** Providers refuse an empty text beside other parts. */
const userParts = (text: string, files: ReadonlyArray<FileAttachment>): ReadonlyArray<UserPart> =>
  text === "" && files.length > 0 ? files.map(filePart) : [textPart(text), ...files.map(filePart)]

const lowerOne = (message: Message, model: ModelRef): ReadonlyArray<Prompt.MessageEncoded> => {
  switch (message.type) {
    case "user":
      return [userMessage(userParts(message.text, message.files ?? []))]
    case "assistant":
      return assistantMessages(message, model)
    case "system":
      // Providers that take system text only at the start must not lose the first one to this: it travels in place.
      return [userMessage([textPart(`<system-update>\n${message.text}\n</system-update>`)])]
    case "synthetic":
      return [userMessage([textPart(message.text)])]
    case "shell":
      return [userMessage([textPart(`$ ${message.command}\n${message.output ?? ""}`)])]
    case "compaction":
      return [
        userMessage([
          textPart(
            "<conversation-checkpoint>\nWhat follows is a record of the conversation so far, not a request.\n" +
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

/** The prompt: system texts, then the messages in their order. */
export const lower = (
  system: ReadonlyArray<string>,
  messages: ReadonlyArray<Message>,
  model: ModelRef
): ReadonlyArray<Prompt.MessageEncoded> => [
  ...system.filter((text) => text !== "").map((content) => ({ role: "system" as const, content })),
  ...messages.flatMap((message) => lowerOne(message, model))
]
