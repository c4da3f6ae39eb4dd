/** A request that the model was shown, as blocks of text, and the difference between two. Pure. Spec: IP-13. */
import type { ShownRequest } from "@daybook/core/request/Recorded"
import { diffArrays, diffLines } from "diff"

export type EncodedRequest = typeof ShownRequest.Encoded
type EncodedMessage = EncodedRequest["messages"][number]

export interface Block {
  readonly kind: "system" | "tool" | "settings" | "message"
  readonly title: string
  readonly text: string
  /** Estimated tokens. */
  readonly tokens: number | undefined
}

const json = (value: unknown): string => JSON.stringify(value, undefined, 2) ?? ""

const partText = (part: Exclude<EncodedMessage["content"], string>[number]): string => {
  switch (part.type) {
    case "text":
      return part.text
    case "reasoning":
      return `[reasoning]\n${part.text}`
    case "file":
      return `[file ${part.fileName ?? ""} ${part.mediaType}]`
    case "tool-call":
      return `[call ${part.name}]\n${json(part.params)}`
    case "tool-result":
      return `[${part.isFailure ? "failed " : ""}result of ${part.name}]\n${
        typeof part.result === "string" ? part.result : json(part.result)
      }`
    default:
      part satisfies never
      return json(part)
  }
}

const messageText = ({ content }: EncodedMessage): string =>
  typeof content === "string" ? content : content.map(partText).join("\n")

export const blocksOf = ({ estimate, frame, messages }: EncodedRequest): ReadonlyArray<Block> => [
  ...frame.system.map((text, index): Block => ({
    kind: "system",
    title: frame.system.length === 1 ? "System" : `System ${index + 1}`,
    text,
    tokens: estimate.perSystem[index]
  })),
  ...messages.map((message, index): Block => ({
    kind: "message",
    title: message.role,
    text: messageText(message),
    tokens: estimate.perMessage[index]
  })),
  ...frame.tools.map((tool, index): Block => ({
    kind: "tool",
    title: tool.name,
    text: `${tool.description ?? ""}\n${json(tool.parameters)}`,
    tokens: estimate.perTool[index]
  })),
  { kind: "settings", title: "Settings", text: json(frame.settings), tokens: undefined }
]

export interface Line {
  readonly change: "same" | "added" | "removed"
  readonly text: string
}

/** What became of a block: `changed` has its lines. */
export interface BlockChange {
  readonly change: "same" | "added" | "removed" | "changed"
  readonly block: Block
  readonly lines: ReadonlyArray<Line>
}

/** More edits than this are shown as a whole removal and a whole addition. */
const mostEdits = 2_000

const linesOf = (before: string, after: string): ReadonlyArray<Line> =>
  (
    diffLines(before, after, { maxEditLength: mostEdits }) ?? [
      { removed: true, added: false, value: before },
      { removed: false, added: true, value: after }
    ]
  ).flatMap(({ added, removed, value }) =>
    value
      .replace(/\n$/, "")
      .split("\n")
      .map((text): Line => ({ change: added ? "added" : removed ? "removed" : "same", text }))
  )

const isSame = (a: Block, b: Block): boolean => a.kind === b.kind && a.title === b.title && a.text === b.text

/** A removed and an added block of one kind and title in the same place are one changed block. */
const paired = (removed: ReadonlyArray<Block>, added: ReadonlyArray<Block>): ReadonlyArray<BlockChange> => {
  const rest = [...removed]
  const changes = added.map((block): BlockChange => {
    const at = rest.findIndex(({ kind, title }) => kind === block.kind && title === block.title)
    const [before] = at < 0 ? [] : rest.splice(at, 1)
    return before === undefined
      ? { change: "added", block, lines: [] }
      : { change: "changed", block, lines: linesOf(before.text, block.text) }
  })
  return [...rest.map((block): BlockChange => ({ change: "removed", block, lines: [] })), ...changes]
}

/** What changed from one request to the next, in the order of the next. */
export const changesOf = (before: ReadonlyArray<Block>, after: ReadonlyArray<Block>): ReadonlyArray<BlockChange> => {
  const parts = diffArrays([...before], [...after], { comparator: isSame })
  const changes: Array<BlockChange> = []
  let removed: ReadonlyArray<Block> = []
  for (const { added, removed: isRemoved, value } of parts) {
    if (isRemoved) removed = value
    else {
      changes.push(...paired(removed, added ? value : []))
      if (!added) changes.push(...value.map((block): BlockChange => ({ change: "same", block, lines: [] })))
      removed = []
    }
  }
  return [...changes, ...paired(removed, [])]
}
