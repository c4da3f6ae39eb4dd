/** Makes the item of a conversation from the events of one record, the reverse of `Drafts.ts`. Pure. Spec: IM-35. */
import { joined } from "@daybook/log/domain/LongText"
import type { Prompt, Tokens, ToolContent } from "@daybook/log/domain/Values"
import type { Draft, EventIn } from "@daybook/log/events/SessionEvents"
import type { AnswerPart, Content, Item, Spending } from "../conversation/Conversation.ts"
import { find, type Of, type RecordPlace } from "./EntryRecord.ts"

type Base = Pick<Item, "key" | "parent" | "time" | "place" | "record">

const media = ({ mime, uri }: { readonly mime: string; readonly uri: string }): Content[number] => ({
  type: "media",
  mime,
  data: uri.slice(uri.indexOf(",") + 1)
})

const promptContent = ({ files = [], text }: Prompt): Content => [
  ...(text === "" && files.length > 0 ? [] : [{ type: "text" as const, text }]),
  ...files.map(media)
]

const toolContent = (content: ReadonlyArray<ToolContent>): Content =>
  content.map((part) => (part.type === "text" ? { type: "text", text: part.text } : media(part)))

const spentOf = ({ cache, input, output, reasoning }: Tokens, cost: number): Spending => ({
  input: Math.max(0, input - cache.read - cache.write),
  output,
  reasoning,
  cacheRead: cache.read,
  cacheWrite: cache.write,
  cost: Math.max(0, cost)
})

const partOf = (event: Draft): AnswerPart | undefined => {
  if (event.type === "session.next.text.ended") return { type: "text", text: event.data.text }
  if (event.type === "session.next.reasoning.ended") return { type: "reasoning", text: event.data.text }
  if (event.type !== "session.next.tool.called") return undefined
  return { type: "call", id: event.data.callID, name: event.data.tool, input: event.data.input }
}

const answer = (base: Base, { data }: Of<"session.next.step.started">, events: ReadonlyArray<Draft>): Item => {
  const ended = find(events, "session.next.step.ended")?.data
  const failed = find(events, "session.next.step.failed")?.data
  const { cost = 0, tokens } = ended ?? failed ?? {}
  const parts = joined(
    events.map(partOf).filter((part) => part !== undefined),
    (part) => (part.type === "text" ? part.text : undefined),
    (part, text) => (part.type === "text" ? { ...part, text } : part)
  )
  const aborted = failed?.error.type === "aborted"
  return {
    _tag: "Answer",
    ...base,
    provider: data.model.providerID,
    model: data.model.id,
    parts,
    ...(ended === undefined ? {} : { finish: ended.finish }),
    ...(failed === undefined ? {} : { error: failed.error.message }),
    ...(aborted ? { aborted: true as const } : {}),
    ...(tokens === undefined ? {} : { spent: spentOf(tokens, cost) })
  }
}

const compaction = (base: Base, { data }: Of<"session.next.compaction.ended">, place: RecordPlace): Item => {
  const { firstKeptSeq, keptSeq = firstKeptSeq, modifiedFiles = [], readFiles = [], recent, task, text } = data
  const kept = keptSeq === undefined ? undefined : place.keyOf(keptSeq)
  return {
    _tag: "Compaction",
    ...base,
    summary: [task, text, recent].filter((part) => part !== undefined && part !== "").join("\n\n"),
    firstKept: kept ?? null,
    ...(data.tokensBefore === undefined ? {} : { tokensBefore: Math.max(0, data.tokensBefore) }),
    readFiles,
    modifiedFiles
  }
}

const result = (
  base: Base,
  { data, type }: Of<"session.next.tool.success"> | Of<"session.next.tool.failed">,
  place: RecordPlace
): Item => {
  const failed = type === "session.next.tool.failed"
  return {
    _tag: "Result",
    ...base,
    callID: data.callID,
    tool: place.toolOf(data.assistantMessageID, data.callID) ?? "",
    content: failed ? [{ type: "text", text: data.error.message }] : toolContent(data.content),
    failed
  }
}

const texts = (text: string): Content => [{ type: "text", text }]

const itemFrom = (event: Draft, events: ReadonlyArray<Draft>, base: Base, place: RecordPlace): Item | undefined => {
  switch (event.type) {
    case "session.next.prompt.admitted":
    case "session.next.prompted":
      return { _tag: "User", ...base, content: promptContent(event.data.prompt) }
    case "session.next.step.started":
      return answer(base, event, events)
    case "session.next.tool.success":
    case "session.next.tool.failed":
      return result(base, event, place)
    case "session.next.shell.started": {
      const output = find(events, "session.next.shell.ended")?.data.output ?? ""
      return { _tag: "Command", ...base, command: event.data.command, output, cancelled: false, hidden: false }
    }
    case "session.next.synthetic":
    case "session.next.context.updated":
      return { _tag: "Note", ...base, content: texts(event.data.text) }
    case "session.next.compaction.ended":
      return compaction(base, event, place)
    case "session.next.branch.summarized":
      return { _tag: "BranchSummary", ...base, summary: event.data.text }
    case "session.next.model.switched":
      return { _tag: "ModelChange", ...base, provider: event.data.model.providerID, model: event.data.model.id }
    case "session.next.renamed":
      return { _tag: "Title", ...base, title: event.data.title }
    case "session.next.context.edited":
      return { _tag: "Edit", ...base, target: place.keyOf(event.data.messageID) ?? event.data.messageID }
    case "session.next.part.withheld": {
      const { messageID, ...part } = event.data
      return { _tag: "Withheld", ...base, target: place.keyOf(messageID) ?? messageID, part }
    }
    default:
      event satisfies EventIn<
        "about" | "prompts" | "steps" | "requests" | "texts" | "calls" | "compactions" | "tree" | "decisions" | "shells"
      >
      return undefined
  }
}

/** The item of these events; one that shows nothing if they make none. */
export const eventItem = (events: ReadonlyArray<Draft>, place: RecordPlace): Item => {
  const { key, parent, time } = place
  const base: Base = { key, parent, time, place: { line: 0, offset: 0 }, record: {} }
  for (const event of events) {
    const item = itemFrom(event, events, base, place)
    if (item !== undefined) return item
  }
  return { _tag: "Opaque", ...base }
}
