/**
 * The pack: what the last step was shown, as items that name where each part is stored. Every part of the request is in
 * exactly one item, in request order. Pure. Spec: FI-45..FI-47, FI-50..FI-52 in specs/files.md (PK-2, PK-5).
 */
import { createHash } from "node:crypto"
import { Chunk, Predicate } from "effect"
import { conversation, type Lowered } from "@daybook/core/request/Lowering"
import { type Sent, shownBy } from "@daybook/core/request/Recorded"
import type { FramedTool } from "@daybook/core/request/RequestFrame"
import { type Estimate, estimate, messageTokens } from "@daybook/core/request/TokenEstimate"
import { MessageID } from "@daybook/log/domain/Identifiers"
import type { Message } from "@daybook/log/domain/Message"
import type { Line, PackState } from "./PackState.ts"

// Collects contents by the hash of their bytes, each once, with their references.

/** The content's SHA-256: `sha256-` and 64 lowercase hex digits. */
export const hashOf = (content: string | Uint8Array): string =>
  `sha256-${createHash("sha256").update(content).digest("hex")}`

/** The blob's file, relative to `context/`. */
export const blobPath = (hash: string): string => `dedup/blob/${hash}`

type Blob = { readonly content: string | Uint8Array; readonly tokens: number; readonly refs: ReadonlyArray<string> }

export interface Blobs {
  readonly byHash: ReadonlyMap<string, Blob>
}

export interface BlobReference {
  readonly content: string | Uint8Array
  readonly tokens: number
  readonly ref: string
}

/** The contents in order of their first reference. */
export const blobsOf = (referred: ReadonlyArray<BlobReference>): Blobs => {
  const byHash = new Map<string, Blob>()
  for (const { content, ref, tokens } of referred) {
    const hash = hashOf(content)
    const before = byHash.get(hash)
    const refs = before?.refs ?? []
    byHash.set(hash, { content, tokens, refs: refs.includes(ref) ? refs : [...refs, ref] })
  }
  return { byHash }
}

const sizeOf = (content: string | Uint8Array): number =>
  typeof content === "string" ? Buffer.byteLength(content) : content.length

/** The lines of `dedup/index.jsonl`. */
export const blobRows = ({ byHash }: Blobs) =>
  [...byHash].map(([hash, { content, refs, tokens }]) => ({ hash, refs, bytes: sizeOf(content), tokens }))

/** A part of the request; `source` is relative to `context/`, `range` counts lines from 1. */
export interface Item {
  readonly kind: "system" | "summary" | "facts" | "recent_messages" | "child_result"
  readonly source: string
  readonly range?: string
  readonly tokens: number
}

/** One message of a request, as a provider's adapter receives it. */
export type EncodedMessage = Lowered["shown"][number]

/** A message as shown, and its lines in `messages.jsonl`; no lines if only the request has it. */
export interface ShownMessage extends Lowered {
  readonly tokens: number
  readonly lines: ReadonlyArray<Line>
}

export interface Pack {
  readonly sent: Sent
  readonly messages: ReadonlyArray<ShownMessage>
  readonly estimate: Estimate
  /** The model's window; the estimate if the window is unknown or smaller. */
  readonly budget: number
}

export const messagesSource = "../messages.jsonl"
export const summarySource = "summary.md"

/** The last step's request without its history; undefined before the first step, or if its frame was not recorded. */
export const sentOf = ({ framed: { frame }, prunedSeq, step }: PackState): Sent | undefined =>
  step === undefined || frame.system.length === 0
    ? undefined
    : {
        step: { seq: step.seq, messageID: MessageID.make(step.messageID) },
        agent: step.agent,
        model: step.model,
        frame,
        prunedSeq
      }

const sum = (sizes: ReadonlyArray<number>): number => sizes.reduce((total, size) => total + size, 0)

/** The pack of `sent` with its history in order, and the lines that existed then. */
export const makePack = (state: PackState, sent: Sent, history: ReadonlyArray<Message>): Pack => {
  const shown = shownBy(sent)
  const byMessage = new Map<string, Array<Line>>()
  for (const line of Chunk.toReadonlyArray(state.shown)) {
    if (line.line > (state.step?.lines ?? 0)) break
    const own = byMessage.get(line.message)
    if (own === undefined) byMessage.set(line.message, [line])
    else own.push(line)
  }
  const messages = conversation(history, shown).flatMap((lowered): ReadonlyArray<ShownMessage> => {
    if (lowered.shown.length === 0) return []
    const tokens = sum(lowered.shown.map((one) => messageTokens(one, undefined)))
    return [{ ...lowered, tokens, lines: byMessage.get(lowered.message.id) ?? [] }]
  })
  const { system, tools, settings } = sent.frame
  const estimated = estimate({ system, tools, messages: messages.flatMap(({ shown }) => shown) })
  const window = settings["contextWindow"]
  const budget = Predicate.isNumber(window) ? Math.max(window, estimated.total) : estimated.total
  return { sent, messages, estimate: estimated, budget }
}

export const toolsText = (tools: ReadonlyArray<FramedTool>): string => JSON.stringify(tools)

/** A message without a line, as one content. */
export const messageText = ({ shown }: ShownMessage): string => JSON.stringify(shown)

type Range = { readonly from: number; readonly to: number }

const lineItem = (lines: Range, tokens: number): { readonly item: Item; readonly lines: Range } => ({
  lines,
  item: { kind: "recent_messages", source: messagesSource, range: `${lines.from}-${lines.to}`, tokens }
})

/** Joins consecutive lines into one item. A message's tokens count in the item of its first line. */
const messageItems = (messages: ReadonlyArray<ShownMessage>): ReadonlyArray<Item> => {
  const items: Array<{ readonly item: Item; readonly lines?: Range }> = []
  for (const one of messages) {
    if (one.message.type === "compaction") {
      items.push({ item: { kind: "summary", source: summarySource, tokens: one.tokens } })
      continue
    }
    if (one.lines.length === 0) {
      const source = blobPath(hashOf(messageText(one)))
      items.push({ item: { kind: "recent_messages", source, tokens: one.tokens } })
      continue
    }
    for (const [nth, { line }] of one.lines.entries()) {
      const tokens = nth === 0 ? one.tokens : 0
      const last = items.at(-1)
      if (last?.lines?.to === line - 1)
        items.splice(-1, 1, lineItem({ ...last.lines, to: line }, last.item.tokens + tokens))
      else items.push(lineItem({ from: line, to: line }, tokens))
    }
  }
  return items.map(({ item }) => item)
}

/** The items in the order that the model saw: system texts, tools, conversation. */
export const itemsOf = ({ estimate, messages, sent: { frame } }: Pack): ReadonlyArray<Item> => [
  ...frame.system.map((text, nth): Item => ({
    kind: "system",
    source: blobPath(hashOf(text)),
    tokens: estimate.perSystem[nth] ?? 0
  })),
  ...(frame.tools.length === 0
    ? []
    : [{ kind: "system", source: blobPath(hashOf(toolsText(frame.tools))), tokens: estimate.tools } as const]),
  ...messageItems(messages)
]
