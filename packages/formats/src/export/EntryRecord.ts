/**
 * Makes the record of an entry log from the events of one message, result or change. An import compares its source's
 * records with these, and stores the difference; an export writes them. Pure. Spec: IM-20, IM-30 to IM-33.
 */
import { joined } from "@daybook/log/domain/LongText"
import type { Tokens, ToolContent } from "@daybook/log/domain/Values"
import type { Draft } from "@daybook/log/events/SessionEvents"
import type { Json, JsonObject } from "./Difference.ts"

/** Who writes the log: the dialects differ in a few records. */
export type EntryDialect = "pi" | "xcsh" | "omp"

export const isEntryDialect = (dialect: string): dialect is EntryDialect =>
  dialect === "pi" || dialect === "xcsh" || dialect === "omp"

/** What a record needs beside its events. */
export interface RecordPlace {
  readonly dialect: EntryDialect
  readonly key: string
  readonly parent: string | null
  /** Milliseconds since the epoch. */
  readonly time: number
  readonly toolOf: (messageID: string, callID: string) => string | undefined
  readonly keyOf: (target: string | number) => string | undefined
  readonly resultOf: (messageID: string, callID: string) => string | undefined
}

/** A draft of this type. */
export type Of<Type extends Draft["type"]> = Extract<Draft, { readonly type: Type }>

/** The first draft of this type. */
export const find = <Type extends Draft["type"]>(events: ReadonlyArray<Draft>, type: Type): Of<Type> | undefined =>
  events.find((event): event is Of<Type> => event.type === type)

const base = (type: string, { key, parent, time }: RecordPlace): JsonObject => ({
  type,
  id: key,
  parentId: parent,
  timestamp: new Date(time).toISOString()
})

const dataUri = /^data:([^;,]*);base64,/

const block = (part: ToolContent): JsonObject => {
  if (part.type === "text") return { type: "text", text: part.text }
  const [prefix = "", mime = part.mime] = dataUri.exec(part.uri) ?? []
  return { type: "image", data: part.uri.slice(prefix.length), mimeType: mime }
}

const message = (place: RecordPlace, fields: JsonObject): JsonObject => ({
  ...base("message", place),
  message: { ...fields, timestamp: place.time }
})

const user = (
  place: RecordPlace,
  { data }: Of<"session.next.prompt.admitted"> | Of<"session.next.prompted">
): JsonObject => {
  const { files = [], text } = data.prompt
  const texts = text === "" && files.length > 0 ? [] : [block({ type: "text", text })]
  const media = files.map(({ mime, uri }) => block({ type: "file", mime, uri }))
  return message(place, { role: "user", content: [...texts, ...media] })
}

const usage = (tokens: Tokens, cost: number): JsonObject => {
  const { cache, input, output } = tokens
  const fresh = input - cache.read - cache.write
  return {
    input: fresh,
    output,
    cacheRead: cache.read,
    cacheWrite: cache.write,
    totalTokens: input + output,
    cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: cost }
  }
}

const nothing: Tokens = { input: 0, output: 0, reasoning: 0, cache: { read: 0, write: 0 } }

const stops: Readonly<Record<string, string>> = {
  stop: "stop",
  "tool-calls": "toolUse",
  length: "length",
  "content-filter": "stop"
}

const textIn = (block: JsonObject): string | undefined =>
  block["type"] === "text" && typeof block["text"] === "string" ? block["text"] : undefined

const blockOf = (event: Draft): JsonObject | undefined => {
  if (event.type === "session.next.text.ended") return { type: "text", text: event.data.text }
  if (event.type === "session.next.reasoning.ended") return { type: "thinking", thinking: event.data.text }
  if (event.type !== "session.next.tool.called") return undefined
  const { callID, input, tool } = event.data
  // A payload is JSON.
  return { type: "toolCall", id: callID, name: tool, arguments: input as Json }
}

const blocks = (events: ReadonlyArray<Draft>): ReadonlyArray<JsonObject> =>
  joined(
    events.map(blockOf).filter((block) => block !== undefined),
    textIn,
    (first, text) => ({ ...first, text })
  )

const assistant = (
  place: RecordPlace,
  { data: started }: Of<"session.next.step.started">,
  events: ReadonlyArray<Draft>
): JsonObject => {
  const ended = find(events, "session.next.step.ended")?.data
  const failed = find(events, "session.next.step.failed")?.data
  const { cost = 0, tokens = nothing } = ended ?? failed ?? {}
  const aborted = failed?.error.type === "aborted"
  return message(place, {
    role: "assistant",
    content: blocks(events),
    provider: started.model.providerID,
    model: started.model.id,
    usage: usage(tokens, cost),
    stopReason: failed === undefined ? (stops[ended?.finish ?? "stop"] ?? "stop") : aborted ? "aborted" : "error",
    ...(failed === undefined || aborted ? {} : { errorMessage: failed.error.message })
  })
}

const result = (
  place: RecordPlace,
  { data, type }: Of<"session.next.tool.success"> | Of<"session.next.tool.failed">
): JsonObject => {
  const failed = type === "session.next.tool.failed"
  const content: ReadonlyArray<ToolContent> = failed ? [{ type: "text", text: data.error.message }] : data.content
  const [only] = content
  const isEmpty = content.length === 1 && only?.type === "text" && only.text === ""
  return message(place, {
    role: "toolResult",
    toolCallId: data.callID,
    toolName: place.toolOf(data.assistantMessageID, data.callID) ?? "unknown",
    content: isEmpty ? [] : content.map(block),
    isError: failed
  })
}

const shell = (
  place: RecordPlace,
  { data: { command } }: Of<"session.next.shell.started">,
  events: ReadonlyArray<Draft>
): JsonObject => {
  const output = find(events, "session.next.shell.ended")?.data.output ?? ""
  return message(place, { role: "bashExecution", command, output, cancelled: false, truncated: false })
}

const compaction = (place: RecordPlace, { data }: Of<"session.next.compaction.ended">): JsonObject => {
  const { firstKeptSeq, keptSeq = firstKeptSeq, modifiedFiles, readFiles, recent, task, text, tokensBefore } = data
  const files = {
    ...(readFiles === undefined ? {} : { readFiles }),
    ...(modifiedFiles === undefined ? {} : { modifiedFiles })
  }
  const kept = keptSeq === undefined ? undefined : place.keyOf(keptSeq)
  return {
    ...base("compaction", place),
    summary: [task, text, recent].filter((part) => part !== undefined && part !== "").join("\n\n"),
    // Its own id is not before it: nothing is kept.
    firstKeptEntryId: kept ?? place.key,
    tokensBefore: tokensBefore ?? 0,
    ...(Object.keys(files).length === 0 ? {} : { details: files })
  }
}

const change = (place: RecordPlace, model: { readonly providerID: string; readonly id: string }): JsonObject => ({
  ...base("model_change", place),
  ...(place.dialect === "pi"
    ? { provider: model.providerID, modelId: model.id }
    : { model: `${model.providerID}/${model.id}` })
})

const customMessage = (place: RecordPlace, text: string): JsonObject => ({
  ...base("custom_message", place),
  customType: "daybook",
  content: text,
  display: true
})

const label = (
  place: RecordPlace,
  { data: { label, messageID } }: { readonly data: { readonly label?: string; readonly messageID: string } }
): JsonObject => ({
  ...base("label", place),
  targetId: place.keyOf(messageID) ?? messageID,
  ...(label === undefined ? {} : { label })
})

/** Tools that do not know edits keep the record, so that Daybook finds it again. */
const edit = (place: RecordPlace, { data }: Of<"session.next.context.edited">): JsonObject => {
  const { callID, calls = [], content, messageID } = data
  const target = callID === undefined ? place.keyOf(messageID) : place.resultOf(messageID, callID)
  const kept = calls.map(({ callID, input }): JsonObject => ({
    type: "toolCall",
    id: callID,
    name: place.toolOf(messageID, callID) ?? "unknown",
    // A payload is JSON.
    arguments: input as Json
  }))
  return {
    ...base("context_edit", place),
    targetId: target ?? messageID,
    replacement: content === undefined ? null : { content: [...content.map(block), ...kept] }
  }
}

/** A state of an extension to other tools: they show the model the part. */
const withheld = (place: RecordPlace, { data }: Of<"session.next.part.withheld">): JsonObject => {
  const { messageID, model, ...part } = data
  const { id, providerID, variant } = model
  return {
    ...base("custom", place),
    customType: "daybook.withheld",
    data: {
      targetId: place.keyOf(messageID) ?? messageID,
      part: { ...part, model: { providerID, id, ...(variant === undefined ? {} : { variant }) } }
    }
  }
}

type Maker<Type extends Draft["type"]> = (
  place: RecordPlace,
  event: Of<Type>,
  events: ReadonlyArray<Draft>
) => JsonObject

/** The record that begins with an event. Events inside records, and those that records do not have, make none. */
const makers: { readonly [Type in Draft["type"]]?: Maker<Type> } = {
  "session.next.prompt.admitted": user,
  "session.next.prompted": user,
  "session.next.step.started": assistant,
  "session.next.tool.success": result,
  "session.next.tool.failed": result,
  "session.next.shell.started": shell,
  "session.next.synthetic": (place, { data }) => customMessage(place, data.text),
  "session.next.context.updated": (place, { data }) => customMessage(place, data.text),
  "session.next.compaction.ended": compaction,
  "session.next.branch.summarized": (place, { data }) => ({
    ...base("branch_summary", place),
    fromId: place.parent ?? "root",
    summary: data.text
  }),
  "session.next.model.switched": (place, { data }) => change(place, data.model),
  "session.next.agent.switched": (place, { data }) => ({
    ...base("custom", place),
    customType: "daybook.agent",
    data: { agent: data.agent }
  }),
  "session.next.renamed": (place, { data }) => ({ ...base("session_info", place), name: data.title }),
  "session.next.labeled": label,
  "session.next.context.edited": edit,
  "session.next.part.withheld": withheld
}

/** The record of these events; one without content if they make none. */
export const entryRecord = (events: ReadonlyArray<Draft>, place: RecordPlace): JsonObject => {
  for (const event of events) {
    // The table has the maker of the event's own type.
    const maker = makers[event.type] as Maker<Draft["type"]> | undefined
    if (maker !== undefined) return maker(place, event, events)
  }
  return base("custom", place)
}

/** A record that shows the model nothing: tools continue after the last record, which must follow the session's leaf. */
export const leafRecord = (place: RecordPlace): JsonObject => ({
  ...base("custom", place),
  customType: "daybook.leaf"
})

export const entryHead = (given: {
  readonly id: string
  readonly time: number
  readonly cwd: string
  readonly title?: string | undefined
}): JsonObject => ({
  type: "session",
  version: 3,
  id: given.id,
  timestamp: new Date(given.time).toISOString(),
  cwd: given.cwd,
  ...(given.title === undefined ? {} : { title: given.title })
})
