/**
 * Renders the files of `context/` from what the last step was shown. They change only when a step begins. Pure. Spec:
 * FI-44..FI-57 in specs/files.md (PK-1..PK-6).
 */
import type { Sent } from "@daybook/core/request/Recorded"
import type { Message } from "@daybook/log/domain/Message"
import type { TodoItem } from "@daybook/log/domain/Todo"
import { blobPath, blobRows } from "./Blobs.ts"
import { itemsOf, makePack, summarySource } from "./Pack.ts"
import { packBlobs } from "./PackBlobs.ts"
import type { PackState } from "./PackState.ts"
import { packText } from "./PackText.ts"
import { checkpointOf, type ReadSwap, refRows, swapRows } from "./Swapped.ts"

/** The input of the rendering. */
export interface ContextInput {
  /** The session's name in its address. */
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
