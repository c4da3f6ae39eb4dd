/** Turns an entry into an item of a conversation. Spec: FM-16 in specs/formats.md. */
import { Option, Predicate, Schema } from "effect"
import { Withheld as WithheldPart } from "@daybook/log/domain/Message"
import type * as Conversation from "../conversation/Conversation.ts"
import { type AgentMessage, AgentUsage, type BlockContent, blocksOf, type MessageOf } from "./AgentMessage.ts"
import type { Body, BodyOf } from "./Entry.ts"

// The texts that the model reads in place of messages that it has no form for.

/** The summary of a compaction that stands as a message of its own (CV-1). */
const summaryText = (summary: string): string =>
  `This summary replaces the earlier part of the conversation:\n\n<summary>\n${summary}\n</summary>`

/** Files that a person mentioned (CV-3). Their pictures follow the text. */
const fileMentionText = ({ files }: MessageOf<"fileMention">): string => {
  const blocks = files.map(({ content, path }) => `<file path="${path}">\n${content}\n</file>`)
  return ["<system-reminder>", ...blocks, "</system-reminder>"].join("\n")
}

export type Base = Pick<Conversation.Item, "key" | "parent" | "time" | "place" | "record">

type Media = typeof Conversation.Media.Type

const contentOf = (content: BlockContent | null | undefined): Conversation.Content =>
  blocksOf(content).flatMap((block): Conversation.Content => {
    if (block.type === "text") return [{ type: "text", text: block.text }]
    return block.type === "image" && block.mimeType !== "" ? [mediaOf(block)] : []
  })

const mediaOf = ({ data, mimeType }: { readonly data: string; readonly mimeType: string }): Media => ({
  type: "media",
  mime: mimeType,
  data
})

const partsOf = (content: BlockContent | null | undefined): ReadonlyArray<Conversation.AnswerPart> =>
  blocksOf(content).flatMap((block): ReadonlyArray<Conversation.AnswerPart> => {
    switch (block.type) {
      case "text":
        return [{ type: "text", text: block.text }]
      case "thinking":
        return [{ type: "reasoning", text: block.thinking }]
      case "toolCall":
        return [{ type: "call", id: block.id, name: block.name, input: block.arguments }]
      case "image":
        return []
    }
  })

const count = (value: number | null | undefined): number => Math.max(0, value ?? 0)

const spentOf = (usage: AgentUsage): Conversation.Spending => ({
  input: count(usage.input),
  output: count(usage.output),
  reasoning: count(usage.reasoningTokens ?? usage.reasoning),
  cacheRead: count(usage.cacheRead),
  cacheWrite: count(usage.cacheWrite),
  cost: count(usage.cost?.total)
})

/** The spending of a record, if it says any. */
const spentIn = (usage: AgentUsage | null | undefined) =>
  Predicate.isNotNullable(usage) ? { spent: spentOf(usage) } : {}

const textOr = (text: string | null | undefined, otherwise: string): string =>
  text === null || text === undefined || text === "" ? otherwise : text

const answer = (base: Base, message: MessageOf<"assistant">): Conversation.Item => ({
  _tag: "Answer",
  ...base,
  provider: textOr(message.provider, "unknown"),
  model: textOr(message.model, "unknown"),
  parts: partsOf(message.content),
  ...(Predicate.isString(message.stopReason) ? { finish: message.stopReason } : {}),
  ...(Predicate.isString(message.errorMessage) ? { error: message.errorMessage } : {}),
  ...(message.stopReason === "aborted" ? { aborted: true as const } : {}),
  ...spentIn(message.usage)
})

const noteOf = (base: Base, content: Conversation.Content): Conversation.Item => ({ _tag: "Note", ...base, content })
const texts = (text: string): Conversation.Content => [{ type: "text", text }]

/** What the subagents of a `task` call spent (LO-12). */
const TaskDetails = Schema.Struct({ usage: AgentUsage })
const taskUsage = Schema.decodeUnknownOption(TaskDetails)

const result = (base: Base, message: MessageOf<"toolResult">): Conversation.Item => {
  const tool = message.toolName ?? ""
  const task = tool === "task" ? Option.getOrUndefined(taskUsage(message.details)) : undefined
  return {
    _tag: "Result",
    ...base,
    callID: message.toolCallId,
    tool,
    content: contentOf(message.content),
    failed: message.isError === true,
    ...spentIn(message.usage ?? task?.usage)
  }
}

const command = (
  base: Base,
  message: MessageOf<"bashExecution"> | MessageOf<"pythonExecution">
): Conversation.Item => ({
  _tag: "Command",
  ...base,
  command: message.role === "bashExecution" ? message.command : message.code,
  output: message.output ?? "",
  ...(Predicate.isNumber(message.exitCode) ? { exitCode: message.exitCode } : {}),
  cancelled: message.cancelled === true,
  hidden: message.excludeFromContext === true
})

const messageItem = (base: Base, message: AgentMessage): Conversation.Item => {
  switch (message.role) {
    // The runtime has its own instructions and tools.
    case "system":
      return { _tag: "Opaque", ...base }
    case "user":
      return message.attribution === "agent"
        ? noteOf(base, contentOf(message.content))
        : { _tag: "User", ...base, content: contentOf(message.content) }
    case "developer":
    case "custom":
    case "hookMessage":
      return noteOf(base, contentOf(message.content))
    case "assistant":
      return answer(base, message)
    case "toolResult":
      return result(base, message)
    case "bashExecution":
    case "pythonExecution":
      return command(base, message)
    case "branchSummary":
      return { _tag: "BranchSummary", ...base, summary: message.summary }
    case "compactionSummary":
      return noteOf(base, texts(summaryText(message.summary)))
    case "fileMention":
      return noteOf(base, [
        ...texts(fileMentionText(message)),
        ...message.files.flatMap(({ image }) => (Predicate.isNotNullable(image) ? [mediaOf(image)] : []))
      ])
  }
}

/** The new content of an edited entry; null removes it. */
export const replacementOf = (replacement: BodyOf<"context_edit">["replacement"]): BlockContent | null =>
  replacement !== null && typeof replacement === "object" && "content" in replacement
    ? replacement.content
    : replacement

/** Both shapes of a model change (CX-5). A model without a slash has an unknown provider. */
export const modelOf = (body: BodyOf<"model_change">): { readonly provider: string; readonly model: string } => {
  const joined = body.model ?? body.modelId ?? ""
  const slash = joined.indexOf("/")
  if (Predicate.isNotNullable(body.provider))
    return { provider: textOr(body.provider, "unknown"), model: textOr(joined, "unknown") }
  return slash > 0
    ? { provider: joined.slice(0, slash), model: textOr(joined.slice(slash + 1), "unknown") }
    : { provider: "unknown", model: textOr(joined, "unknown") }
}

const FileLists = Schema.Struct({
  readFiles: Schema.optionalWith(Schema.Array(Schema.String), { default: () => [] }),
  modifiedFiles: Schema.optionalWith(Schema.Array(Schema.String), { default: () => [] })
})
const fileLists = Schema.decodeUnknownOption(FileLists)

const RemoteCompaction = Schema.Struct({
  openaiRemoteCompaction: Schema.Struct({
    provider: Schema.NonEmptyString,
    replacementHistory: Schema.Array(Schema.Unknown)
  })
})

const remoteCompaction = Schema.decodeUnknownOption(RemoteCompaction)

/** The history that a provider keeps in place of what the summary replaces (CX-9). */
export const remoteHistoryOf = (body: BodyOf<"compaction">) =>
  Option.map(remoteCompaction(body.preserveData), ({ openaiRemoteCompaction }) => openaiRemoteCompaction)

/** Whether a provider keeps the history: the kept range is not shown again. */
export const isRemote = (body: BodyOf<"compaction">): boolean => Option.isSome(remoteHistoryOf(body))

const compaction = (base: Base, body: BodyOf<"compaction">, firstKept: string | null): Conversation.Item => {
  const files = Option.getOrElse(fileLists(body.details), () => ({ readFiles: [], modifiedFiles: [] }))
  return {
    _tag: "Compaction",
    ...base,
    summary: body.summary,
    firstKept: isRemote(body) ? null : firstKept,
    ...(Predicate.isNumber(body.tokensBefore) ? { tokensBefore: count(body.tokensBefore) } : {}),
    ...files,
    ...spentIn(body.usage)
  }
}

const edit = (base: Base, { replacement }: BodyOf<"context_edit">, target: string | null): Conversation.Item => {
  if (target === null) return { _tag: "Opaque", ...base }
  const content = replacementOf(replacement)
  if (content === null) return { _tag: "Edit", ...base, target }
  const calls = blocksOf(content).flatMap((block) =>
    block.type === "toolCall" ? [{ id: block.id, input: block.arguments }] : []
  )
  return { _tag: "Edit", ...base, target, content: contentOf(content), ...(calls.length === 0 ? {} : { calls }) }
}

const title = (base: Base, text: string | null | undefined): Conversation.Item => {
  const trimmed = (text ?? "").trim()
  return trimmed === "" ? { _tag: "Opaque", ...base } : { _tag: "Title", ...base, title: trimmed }
}

/** The item of an entry. `keyOf` finds the record that an id names, as seen from this entry; null if there is none. */
/** Of the states of extensions, Daybook's own. */
const withheldIn = Schema.decodeUnknownOption(Schema.Struct({ targetId: Schema.NonEmptyString, part: WithheldPart }))

const withheld = (
  base: Base,
  { customType, data }: BodyOf<"custom">,
  keyOf: (id: string) => string | null
): Conversation.Item => {
  const found = customType === "daybook.withheld" ? Option.getOrUndefined(withheldIn(data)) : undefined
  const target = found === undefined ? null : keyOf(found.targetId)
  return found === undefined || target === null
    ? { _tag: "Opaque", ...base }
    : { _tag: "Withheld", ...base, target, part: found.part }
}

export const itemOf = (base: Base, body: Body | undefined, keyOf: (id: string) => string | null): Conversation.Item => {
  switch (body?.type) {
    case "message":
      return messageItem(base, body.message)
    case "custom_message":
      return noteOf(base, contentOf(body.content))
    case "compaction":
      return compaction(base, body, Predicate.isString(body.firstKeptEntryId) ? keyOf(body.firstKeptEntryId) : null)
    case "branch_summary":
      if (body.summary !== "") return { _tag: "BranchSummary", ...base, summary: body.summary, ...spentIn(body.usage) }
      return Predicate.isNotNullable(body.usage)
        ? { _tag: "Usage", ...base, spent: spentOf(body.usage) }
        : { _tag: "Opaque", ...base }
    case "usage":
    case "model_usage":
      return { _tag: "Usage", ...base, spent: spentOf(body.usage) }
    case "context_edit":
      return edit(base, body, keyOf(body.targetId))
    case "model_change":
      return {
        _tag: "ModelChange",
        ...base,
        ...modelOf(body),
        ...(Predicate.isString(body.role) && body.role !== "" && body.role !== "default" ? { role: body.role } : {})
      }
    case "session_info":
      return title(base, body.name)
    case "title_change":
      return title(base, body.title)
    case "label": {
      const target = keyOf(body.targetId)
      const label = textOr(body.label, "")
      if (target === null) return { _tag: "Opaque", ...base }
      return { _tag: "Label", ...base, target, label: label === "" ? null : label }
    }
    // What follows it begins again.
    case "reset_boundary":
      return { _tag: "Opaque", ...base, parent: null }
    case "custom":
      return withheld(base, body, keyOf)
    case "thinking_level_change":
    case "ttsr_injection":
    case "session_init":
    case "mode_change":
    case "context_change":
    case "service_tier_change":
    case "mcp_tool_selection":
    case undefined:
      return { _tag: "Opaque", ...base }
  }
}
