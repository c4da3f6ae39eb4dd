/** What an entry log shows the model at a leaf: seed 002's `buildSessionContext`. Pure. Spec: FM-30..FM-38. */
import { Option, Predicate, Schema } from "effect"
import { AgentMessage, type BlockContent, type MessageOf, System } from "./AgentMessage.ts"
import type { BodyOf, Entry } from "./Entry.ts"
import { isRemote, modelOf, remoteHistoryOf, replacementOf } from "./EntryItem.ts"

// The tree of a log's entries: ids may repeat, parents may be missing, and cycles exist, so a walk visits an entry
// once.

/** An entry with its children, oldest first. */
export interface Node {
  readonly entry: Entry
  readonly children: Array<Node>
}

/** The entries of a log. `add` is the only change, and costs the same at any length. */
export interface EntryTree {
  /** All entries in file order, also those whose id a later entry repeats. */
  readonly entries: ReadonlyArray<Entry>
  readonly get: (id: string) => Entry | undefined
  readonly last: () => Entry | undefined
  readonly add: (entry: Entry) => void
  /** The label of an entry, if it has one. */
  readonly label: (id: string) => string | undefined
  /** From the root to the entry. A missing parent and a repeated entry end the walk. */
  readonly path: (leaf: Entry) => ReadonlyArray<Entry>
  /** Every entry once: the roots and, if no root leads to a cycle, the first of its entries. */
  readonly roots: () => ReadonlyArray<Node>
}

const isOlder = (one: Entry, other: Entry): number => (one.time ?? 0) - (other.time ?? 0)

const isRoot = (entry: Entry, byId: ReadonlyMap<string, Entry>): boolean =>
  entry.parentId === null || entry.parentId === entry.id || !byId.has(entry.parentId)

const sorted = (nodes: Array<Node>): Array<Node> => nodes.sort((one, other) => isOlder(one.entry, other.entry))

const rootsOf = (byId: ReadonlyMap<string, Entry>): ReadonlyArray<Node> => {
  const children = new Map<string, Array<Entry>>()
  for (const entry of byId.values()) {
    if (isRoot(entry, byId) || entry.parentId === null) continue
    const siblings = children.get(entry.parentId)
    if (siblings === undefined) children.set(entry.parentId, [entry])
    else siblings.push(entry)
  }
  const seen = new Set<Entry>()
  const grown = (root: Entry): Node => {
    seen.add(root)
    const top: Node = { entry: root, children: [] }
    for (const waiting = [top]; ;) {
      const node = waiting.pop()
      if (node === undefined) return top
      for (const entry of children.get(node.entry.id) ?? []) {
        if (seen.has(entry)) continue
        seen.add(entry)
        const child: Node = { entry, children: [] }
        node.children.push(child)
        waiting.push(child)
      }
      sorted(node.children)
    }
  }
  const all = [...byId.values()]
  const roots = all.filter((entry) => isRoot(entry, byId)).map(grown)
  for (const entry of all) if (!seen.has(entry)) roots.push(grown(entry))
  return sorted(roots)
}

export const make = (initial: Iterable<Entry> = []): EntryTree => {
  const entries: Array<Entry> = []
  const byId = new Map<string, Entry>()
  const labels = new Map<string, string>()

  const add = (entry: Entry): void => {
    entries.push(entry)
    byId.set(entry.id, entry)
    const { body } = entry
    if (body?.type !== "label") return
    const label = (body.label ?? "").trim()
    if (label === "") labels.delete(body.targetId)
    else labels.set(body.targetId, label)
  }
  for (const entry of initial) add(entry)

  const path = (leaf: Entry): ReadonlyArray<Entry> => {
    const seen = new Set<Entry>()
    for (let at: Entry | undefined = leaf; at !== undefined && !seen.has(at);) {
      seen.add(at)
      at = at.parentId === null ? undefined : byId.get(at.parentId)
    }
    return [...seen].toReversed()
  }

  return {
    entries,
    get: (id) => byId.get(id),
    last: () => entries.at(-1),
    add,
    label: (id) => labels.get(id),
    path,
    roots: () => rootsOf(byId)
  }
}

export interface Model {
  readonly provider: string
  readonly modelId: string
}

/** The settings that the path to the leaf ends with. */
export interface Settings {
  readonly thinkingLevel: string
  /** By role. `default` is the model of answers. */
  readonly models: Readonly<Record<string, Model>>
  readonly injectedTtsrRules: ReadonlyArray<string>
  readonly mode: string
  readonly modeData?: unknown
  readonly serviceTier?: string | undefined
  readonly selectedToolNames?: ReadonlyArray<string>
  readonly contextName?: string | undefined
  readonly tenant?: string | undefined
}

export interface SessionContext extends Settings {
  readonly messages: ReadonlyArray<AgentMessage>
}

/** Default: a model change decides the default model; `compat`: an answer's model does too, the last one wins (D-3). */
export interface Options {
  readonly compat?: boolean
}

const none: Settings = { thinkingLevel: "off", models: {}, injectedTtsrRules: [], mode: "none" }

/** An answer's own model, if it names one. */
const answeredBy = (entry: Entry): Model | undefined => {
  const { body } = entry
  if (body?.type !== "message" || body.message.role !== "assistant") return undefined
  const { model, provider } = body.message
  return Predicate.isString(provider) && Predicate.isString(model) ? { provider, modelId: model } : undefined
}

const roleOf = (body: BodyOf<"model_change">): string => {
  const { role } = body
  return role === null || role === undefined || role === "" ? "default" : role
}

/** The settings of a path, from the root. What precedes a compaction counts too (CX-3). */
const settingsOf = (path: ReadonlyArray<Entry>, compat: boolean): Settings => {
  let settings = none
  let answered: Model | undefined
  const models = new Map<string, Model>()
  const rules = new Set<string>()
  for (const entry of path) {
    const { body } = entry
    const answering = answeredBy(entry)
    if (answering !== undefined) {
      answered = answering
      if (compat) models.set("default", answering)
    }
    if (body?.type === "thinking_level_change") settings = { ...settings, thinkingLevel: body.thinkingLevel ?? "off" }
    else if (body?.type === "model_change") {
      const { model, provider } = modelOf(body)
      models.set(roleOf(body), { provider, modelId: model })
    } else if (body?.type === "ttsr_injection") for (const rule of body.injectedRules) rules.add(rule)
    else if (body?.type === "mode_change") settings = { ...settings, mode: body.mode, modeData: body.data }
    else if (body?.type === "service_tier_change")
      settings = { ...settings, serviceTier: body.serviceTier ?? undefined }
    else if (body?.type === "mcp_tool_selection") settings = { ...settings, selectedToolNames: body.selectedToolNames }
    else if (body?.type === "context_change") {
      settings = { ...settings, contextName: body.contextName ?? undefined, tenant: body.tenant ?? undefined }
    }
  }
  if (answered !== undefined && !models.has("default")) models.set("default", answered)
  return { ...settings, models: Object.fromEntries(models), injectedTtsrRules: [...rules] }
}

const timeOf = ({ time }: Entry): number => time ?? 0

const summary = (entry: Entry, body: BodyOf<"compaction">): MessageOf<"compactionSummary"> => ({
  role: "compactionSummary",
  summary: body.summary,
  ...(body.shortSummary === undefined ? {} : { shortSummary: body.shortSummary }),
  tokensBefore: body.tokensBefore ?? 0,
  ...Option.match(remoteHistoryOf(body), {
    onNone: () => ({}),
    onSome: ({ provider, replacementHistory }) => ({
      providerPayload: { type: "openaiResponsesHistory", provider, items: replacementHistory }
    })
  }),
  timestamp: timeOf(entry)
})

/** A message that lacks its content has an empty one. */
const withWords = (message: AgentMessage): AgentMessage => {
  switch (message.role) {
    case "system":
      return Predicate.isNullable(message.content) ? { ...message, content: "" } : message
    case "user":
    case "assistant":
    case "toolResult":
      return Predicate.isNullable(message.content) ? { ...message, content: [] } : message
    default:
      return message
  }
}

/** What an entry itself shows the model. A compaction's summary comes first, wherever it stands (CX-6). */
const messagesOf = (entry: Entry): ReadonlyArray<AgentMessage> => {
  const { body } = entry
  switch (body?.type) {
    case "message":
      return [withWords(body.message)]
    case "custom_message":
      return [
        {
          role: "custom",
          customType: body.customType,
          content: body.content,
          display: body.display ?? false,
          ...(body.details === undefined ? {} : { details: body.details }),
          ...(body.attribution === undefined ? {} : { attribution: body.attribution }),
          timestamp: timeOf(entry)
        }
      ]
    case "branch_summary":
      return body.summary === ""
        ? []
        : [
            {
              role: "branchSummary",
              summary: body.summary,
              fromId: body.fromId ?? "root",
              timestamp: timeOf(entry)
            }
          ]
    case "compaction":
    case "usage":
    case "model_usage":
    case "reset_boundary":
    case "context_edit":
    case "custom":
    case "label":
    case "thinking_level_change":
    case "model_change":
    case "session_info":
    case "title_change":
    case "ttsr_injection":
    case "session_init":
    case "mode_change":
    case "context_change":
    case "service_tier_change":
    case "mcp_tool_selection":
    case undefined:
      return []
  }
}

type Edits = ReadonlyMap<string, BodyOf<"context_edit">>

const editsIn = (entries: ReadonlyArray<Entry>): Edits =>
  new Map(entries.flatMap(({ body }) => (body?.type === "context_edit" ? [[body.targetId, body] as const] : [])))

/** Answers and results hold lists of blocks. */
const listOf = (content: BlockContent): BlockContent =>
  typeof content === "string" ? [{ type: "text", text: content }] : content

const withContent = (message: AgentMessage, content: BlockContent): AgentMessage => {
  switch (message.role) {
    case "user":
    case "custom":
      return { ...message, content }
    case "assistant":
    case "toolResult":
      return { ...message, content: listOf(content) }
    default:
      return message
  }
}

/** What an entry shows the model after the edits of its branch. */
const editedBy =
  (edits: Edits) =>
  (entry: Entry): ReadonlyArray<AgentMessage> => {
    const messages = messagesOf(entry)
    const edit = edits.get(entry.id)
    if (edit === undefined) return messages
    const content = replacementOf(edit.replacement)
    return content === null ? [] : messages.map((message) => withContent(message, content))
  }

const isSystemMessage = Schema.is(System)

const isSystem = ({ body }: Entry): boolean => body?.type === "message" && body.message.role === "system"

const decodeTail = Schema.decodeUnknownOption(Schema.Array(AgentMessage), { onExcessProperty: "preserve" })

/** The messages that a compaction keeps from before it. */
const keptBy = (body: BodyOf<"compaction">, before: ReadonlyArray<Entry>): ReadonlyArray<Entry> => {
  if (isRemote(body)) return []
  const first = before.findIndex(({ id }) => id === body.firstKeptEntryId)
  // The compaction has the system message of this point.
  return first < 0 ? [] : before.slice(first).filter((entry) => !isSystem(entry))
}

const sinceReset = (path: ReadonlyArray<Entry>): ReadonlyArray<Entry> =>
  path.slice(path.findLastIndex(({ body }) => body?.type === "reset_boundary") + 1)

const messagesAlong = (path: ReadonlyArray<Entry>): ReadonlyArray<AgentMessage> => {
  const at = path.findLastIndex(({ body }) => body?.type === "compaction")
  const compaction = path[at]
  if (compaction?.body?.type !== "compaction") return path.flatMap(editedBy(editsIn(path)))
  const { body } = compaction
  const tail = decodeTail(body.retainedTail)
  const kept = Option.isSome(tail) ? [] : keptBy(body, path.slice(0, at))
  const after = path.slice(at + 1)
  const shown = editedBy(editsIn([...kept, ...after]))
  return [
    ...(isSystemMessage(body.systemMessage) ? [body.systemMessage] : []),
    summary(compaction, body),
    ...Option.getOrElse(tail, () => kept.flatMap(shown)),
    ...after.flatMap(shown)
  ]
}

const leafOf = (tree: EntryTree, leafID: string | undefined): Entry | undefined =>
  (leafID === undefined ? undefined : tree.get(leafID)) ?? tree.last()

/** The context at a leaf. `null`: before every entry. Without a known leaf, the last entry is the leaf (CX-1). */
export const at = (tree: EntryTree, leafID?: string | null, options: Options = {}): SessionContext => {
  const leaf = leafID === null ? undefined : leafOf(tree, leafID)
  const path = leaf === undefined ? [] : tree.path(leaf)
  return { messages: messagesAlong(sinceReset(path)), ...settingsOf(path, options.compat ?? false) }
}

/** The context of a list of entries: seed 002's `buildSessionContext`. */
export const build = (entries: Iterable<Entry>, leafID?: string | null, options?: Options): SessionContext =>
  at(make(entries), leafID, options)
