/**
 * Renders the files of `context/` from what the last step was shown. They change only when a step begins. Pure. Spec:
 * FI-44..FI-57, FI-109, FI-110 in specs/files.md (PK-1..PK-6).
 */
import { Predicate } from "effect"
import { shownText, isPruned } from "@daybook/core/request/Prune"
import type { Sent } from "@daybook/core/request/Recorded"
import { estimate } from "@daybook/core/request/TokenEstimate"
import type { Message } from "@daybook/log/domain/Message"
import type { TodoItem } from "@daybook/log/domain/Values"
import {
  blobPath,
  blobRows,
  type Blobs,
  blobsOf,
  type EncodedMessage,
  hashOf,
  itemsOf,
  makePack,
  messagesSource,
  messageText,
  type Pack,
  type BlobReference,
  type ShownMessage,
  summarySource,
  toolsText
} from "./Pack.ts"
import type { PackState, Swap } from "./PackState.ts"

// Renders the pack for people: everything that the model was shown, in order.

// Selects the blobs of a pack: what is stored nowhere else, media, and long results that were shown more than once.

const packSource = "pack.json"

/** The size in bytes from which a result that was shown twice becomes a blob. */
const longResult = 1_024

type BlobPart = Exclude<EncodedMessage["content"], string>[number]

const partsOf = ({ content }: EncodedMessage): ReadonlyArray<BlobPart> => (Predicate.isString(content) ? [] : content)

const tokensOf = (message: EncodedMessage): number => estimate({ system: [], tools: [], messages: [message] }).total

/** The bytes of a file that was sent with a request; undefined for a URL. */
const mediaBytes = (data: Extract<BlobPart, { readonly type: "file" }>["data"]): Uint8Array | undefined =>
  Predicate.isString(data) ? Buffer.from(data, "base64") : data instanceof URL ? undefined : data

const refOf = ({ lines }: ShownMessage, call?: string): string => {
  const line = lines.find((line) => call === undefined || line.call === call) ?? lines[0]
  return line === undefined ? packSource : `${messagesSource}:${line.line}`
}

/** The message's media, each with the line of the call that returned it. Media follow the results, in call order. */
const mediaOf = (one: ShownMessage): ReadonlyArray<BlobReference> =>
  one.shown.flatMap(partsOf).flatMap((part) => {
    const content = part.type === "file" ? mediaBytes(part.data) : undefined
    return part.type !== "file" || content === undefined
      ? []
      : [{ content, tokens: tokensOf({ role: "user", content: [part] }), ref: refOf(one) }]
  })

const resultsOf = (one: ShownMessage): ReadonlyArray<BlobReference> =>
  one.shown.flatMap((message) =>
    message.role !== "tool"
      ? []
      : message.content.flatMap(({ id, result }) =>
          Predicate.isString(result) && Buffer.byteLength(result) >= longResult
            ? [{ content: result, tokens: Math.round(result.length / 4), ref: refOf(one, id) }]
            : []
        )
  )

const repeated = (results: ReadonlyArray<BlobReference>): ReadonlyArray<BlobReference> => {
  const times = new Map<string | Uint8Array, number>()
  for (const { content } of results) times.set(content, (times.get(content) ?? 0) + 1)
  return results.filter(({ content }) => (times.get(content) ?? 0) > 1)
}

const packBlobs = ({ estimate, messages, sent: { frame } }: Pack): Blobs =>
  blobsOf([
    ...frame.system.map((content, nth) => ({ content, tokens: estimate.perSystem[nth] ?? 0, ref: packSource })),
    ...(frame.tools.length === 0 ? [] : [{ content: toolsText(frame.tools), tokens: estimate.tools, ref: packSource }]),
    ...messages.flatMap((one) =>
      one.lines.length === 0 && one.message.type !== "compaction"
        ? [{ content: messageText(one), tokens: one.tokens, ref: packSource }]
        : []
    ),
    ...messages.flatMap(mediaOf),
    ...repeated(messages.flatMap(resultsOf))
  ])

type Part = ReturnType<typeof partsOf>[number]

const section = (heading: string, body: string): string => `## ${heading}\n\n${body}\n`

const json = (value: unknown): string => `\`\`\`json\n${JSON.stringify(value, null, 2)}\n\`\`\``

const media = (part: Extract<Part, { readonly type: "file" }>): string => {
  const bytes = mediaBytes(part.data)
  const name = part.fileName ?? "file"
  return bytes === undefined
    ? `[${name}, ${part.mediaType}, at ${String(part.data)}]`
    : `[${name}, ${part.mediaType}, ${bytes.length} bytes, ${hashOf(bytes)}]`
}

const partText = (part: Part): string => {
  switch (part.type) {
    case "text":
      return part.text
    case "reasoning":
      return `(reasoning) ${part.text}`
    case "file":
      return media(part)
    case "tool-call":
      return `call of ${part.name} (${part.id})\n\n${json(part.params)}`
    case "tool-result":
      return (
        `${part.isFailure ? "failure" : "result"} of ${part.name} (${part.id})\n\n` +
        (Predicate.isString(part.result) ? part.result : json(part.result))
      )
  }
}

const body = (message: EncodedMessage): string =>
  Predicate.isString(message.content) ? message.content : partsOf(message).map(partText).join("\n\n")

const messageSections = ({ lines, message, shown, tokens }: ShownMessage): ReadonlyArray<string> => {
  const at = lines.length === 0 ? "" : `, line ${lines.map(({ line }) => line).join(", ")}`
  return shown.map((one, nth) =>
    section(`${one.role} (${message.id}${nth === 0 ? `, ${tokens} tokens` : ""}${at})`, body(one))
  )
}

const packText = (session: string, { budget, estimate, messages, sent }: Pack): string => {
  const { agent, frame, model, step } = sent
  const head = [
    "# What the model was shown\n",
    `- session: ${session}`,
    `- agent: ${agent}`,
    `- model: ${model.providerID}/${model.id}`,
    `- step: event ${step.seq}, ${step.messageID}`,
    `- tokens, estimated: ${estimate.total} of ${budget}`,
    ...(Object.keys(frame.settings).length === 0 ? [] : [`- settings: ${JSON.stringify(frame.settings)}`])
  ].join("\n")
  return [
    `${head}\n`,
    ...frame.system.map((text, nth) => section(`system ${nth + 1} (${estimate.perSystem[nth] ?? 0} tokens)`, text)),
    ...frame.tools.map(({ description, name, parameters }, nth) =>
      section(
        `tool ${name} (${estimate.perTool[nth] ?? 0} tokens)`,
        `${description === undefined ? "" : `${description}\n\n`}${json(parameters)}`
      )
    ),
    ...messages.flatMap(messageSections)
  ].join("\n")
}

// Lists what is outside the window, by lines of `messages.jsonl`: swapped ranges, placeholders, files of summaries.

/** A swap with the hash of its lines. */
type ReadSwap = Swap & { readonly sha256: string }

/** A line of `swap/index.jsonl`. */
interface SwapRow {
  readonly id: string
  readonly kind: "message_range" | "tool_output"
  readonly source: string
  readonly range?: string
  readonly tool_call_id?: string
  /** The sequence number of the event that swapped it out. */
  readonly event?: number
  readonly summary: string
  readonly tokens: number
}

const rangeRow = ({ bytes, from, seq, sha256, summary, to }: ReadSwap): SwapRow => ({
  id: `sha256-${sha256}`,
  kind: "message_range",
  source: messagesSource,
  range: `${from}-${to}`,
  event: seq,
  summary,
  tokens: Math.round(bytes / 4)
})

const outputRows =
  ({ prunedSeq }: Sent) =>
  ({ lines, message }: ShownMessage): ReadonlyArray<SwapRow> =>
    message.type !== "assistant"
      ? []
      : message.content.flatMap((part) => {
          if (part.type !== "tool" || !isPruned(message, part, prunedSeq)) return []
          const line = lines.find(({ call }) => call === part.id)
          const text = shownText(part)
          return [
            {
              id: hashOf(text),
              kind: "tool_output",
              source: messagesSource,
              ...(line === undefined ? {} : { range: `${line.line}-${line.line}` }),
              tool_call_id: part.id,
              summary: `${part.name}: ${text.length} characters`,
              tokens: Math.round(text.length / 4)
            } satisfies SwapRow
          ]
        })

/** The rows of `swap/index.jsonl`: ranges, then results. */
const swapRows = (swaps: ReadonlyArray<ReadSwap>, { messages, sent }: Pack): ReadonlyArray<SwapRow> => [
  ...swaps.map(rangeRow),
  ...messages.flatMap(outputRows(sent))
]

/** The checkpoint in force. */
const checkpointOf = ({ messages }: Pack) =>
  messages.flatMap(({ message }) => (message.type === "compaction" ? [message] : []))[0]

/** The rows of `refs.jsonl`: where to find what the summary only mentions. */
const refRows = (swaps: ReadonlyArray<ReadSwap>, pack: Pack) => {
  const checkpoint = checkpointOf(pack)
  const file = (summary: string) => (path: string) => ({ id: hashOf(path), path, kind: "file" as const, summary })
  return [
    ...swaps.map(({ from, sha256, summary, to }) => ({
      id: `sha256-${sha256}`,
      path: `${messagesSource}:${from}-${to}`,
      kind: "swap" as const,
      summary
    })),
    ...(checkpoint?.modifiedFiles ?? []).map(file("modified")),
    ...(checkpoint?.readFiles ?? []).map(file("read"))
  ]
}

export interface ContextInput {
  readonly session: string
  readonly state: PackState
  readonly sent: Sent
  /** The swaps of the state, each with the hash of its lines. */
  readonly swaps: ReadonlyArray<ReadSwap>
  readonly history: ReadonlyArray<Message>
}

/** Contents by path relative to `context/`. Any other file is removed. */
export type ContextFiles = ReadonlyMap<string, string | Uint8Array>

const marks: Record<TodoItem["status"], string> = { pending: " ", in_progress: "~", done: "x", cancelled: "-" }

const todoText = (items: ReadonlyArray<TodoItem>): string =>
  items.map(({ status, text }) => `- [${marks[status]}] ${text.replaceAll(/\s+/g, " ")}\n`).join("")

const lines = (rows: ReadonlyArray<unknown>): string => rows.map((row) => `${JSON.stringify(row)}\n`).join("")

/** Renders the files. Empty lists and an absent summary or todo list have no file. */
export const contextFiles = ({ history, sent, session, state, swaps }: ContextInput): ContextFiles => {
  const pack = makePack(state, sent, history)
  const blobs = packBlobs(pack)
  const checkpoint = checkpointOf(pack)
  const { agent, model, step } = sent
  const files: ReadonlyArray<readonly [string, string | Uint8Array]> = [
    ...[...blobs.byHash].map(([hash, { content }]) => [blobPath(hash), content] as const),
    ["dedup/index.jsonl", lines(blobRows(blobs))],
    ["swap/index.jsonl", lines(swapRows(swaps, pack))],
    ["refs.jsonl", lines(refRows(swaps, pack))],
    [
      summarySource,
      checkpoint === undefined
        ? ""
        : `${checkpoint.summary}\n${checkpoint.task === undefined ? "" : `\n# Running task\n\n${checkpoint.task}\n`}${checkpoint.recent === "" ? "" : `\n# Recent context\n\n${checkpoint.recent}\n`}`
    ],
    ["todo.md", todoText(state.todo?.items ?? [])],
    ["budget", `${pack.budget}\n`],
    ["pack.md", packText(session, pack)],
    [
      "pack.json",
      `${JSON.stringify({
        version: 1,
        session,
        agent,
        model: `${model.providerID}/${model.id}`,
        step: step.seq,
        budget_tokens: pack.budget,
        items: itemsOf(pack)
      })}\n`
    ]
  ]
  return new Map(files.filter(([path, content]) => path.startsWith("dedup/blob/") || content.length > 0))
}
