/** Reads logs in tests and shows what came out in short form. */
import { Chunk, Effect, Stream } from "effect"
import type { Head, Item, Piece, Problem, Spending } from "../../../packages/formats/src/conversation/Conversation.ts"
import { nothing, plus } from "../../../packages/formats/src/reading/Tolerant.ts"
import { bytes as bytesOf, type Json } from "./ClaudeLogs.ts"

type Read = (bytes: Stream.Stream<Uint8Array>) => Stream.Stream<Piece>

/** The pieces of a log that arrives in chunks of a size. */
export const piecesOf = (read: Read, log: Iterable<Json> | Buffer, chunkBytes = 64 * 1024): ReadonlyArray<Piece> => {
  const bytes = Buffer.isBuffer(log) ? log : bytesOf(log)
  const chunks = Array.from({ length: Math.ceil(bytes.length / chunkBytes) }, (_, index) =>
    bytes.subarray(index * chunkBytes, (index + 1) * chunkBytes)
  )
  return Chunk.toReadonlyArray(Effect.runSync(Stream.runCollect(read(Stream.fromIterable(chunks)))))
}

export const headOf = (pieces: ReadonlyArray<Piece>): Head | undefined =>
  pieces.find((piece): piece is Head => piece._tag === "Head")

export const problemsOf = (pieces: ReadonlyArray<Piece>): ReadonlyArray<Problem> =>
  pieces.filter((piece): piece is Problem => piece._tag === "Problem")

export const kindsOf = (pieces: ReadonlyArray<Piece>): ReadonlyArray<string> =>
  problemsOf(pieces).map(({ kind }) => kind)

export const itemsOf = (pieces: ReadonlyArray<Piece>): ReadonlyArray<Item> =>
  pieces.filter((piece): piece is Item => piece._tag !== "Head" && piece._tag !== "Problem")

/** The items that show a person or a model something. */
export const shownOf = (pieces: ReadonlyArray<Piece>): ReadonlyArray<Item> =>
  itemsOf(pieces).filter(({ _tag }) => _tag !== "Opaque")

const content = (item: Extract<Item, { readonly content: unknown }>): string =>
  item.content.map((part) => (part.type === "text" ? part.text : `(${part.mime})`)).join(" | ")

/** One item as a short text. */
export const brief = (item: Item): string => {
  switch (item._tag) {
    case "User":
    case "Note":
      return `${item._tag}: ${content(item)}`
    case "Result":
      return `Result ${item.callID} ${item.tool}${item.failed ? " failed" : ""}: ${content(item)}`
    case "Answer":
      return `Answer: ${item.parts.map((part) => (part.type === "call" ? `${part.name}(${JSON.stringify(part.input)})` : `${part.type} ${part.text}`)).join(" | ")}`
    case "Command":
      return `Command: ${item.command} -> ${item.output}`
    case "Compaction":
      return `Compaction: ${item.summary}`
    case "Title":
      return `Title: ${item.title}`
    case "ModelChange":
      return `ModelChange: ${item.provider}/${item.model}`
    default:
      return item._tag
  }
}

export const briefs = (pieces: ReadonlyArray<Piece>): ReadonlyArray<string> => shownOf(pieces).map(brief)

/** The items from the root to the last item: what a reader of the session sees. */
export const pathOf = (pieces: ReadonlyArray<Piece>): ReadonlyArray<Item> => {
  const items = itemsOf(pieces)
  const byKey = new Map(items.map((item) => [item.key, item]))
  const path: Array<Item> = []
  for (let at = items.at(-1); at !== undefined; at = at.parent === null ? undefined : byKey.get(at.parent))
    path.push(at)
  return path.toReversed()
}

export const pathBriefs = (pieces: ReadonlyArray<Piece>): ReadonlyArray<string> =>
  pathOf(pieces)
    .filter(({ _tag }) => _tag !== "Opaque")
    .map(brief)

/** What all items spent. */
export const spentOf = (pieces: ReadonlyArray<Piece>): Spending =>
  itemsOf(pieces).reduce(
    (sum, item) => ("spent" in item && item.spent !== undefined ? plus(sum, item.spent) : sum),
    nothing
  )

/** Fails unless keys are unique and parents come before their children. */
export const assertTree = (pieces: ReadonlyArray<Piece>): void => {
  const seen = new Set<string>()
  for (const { key, parent } of itemsOf(pieces)) {
    if (seen.has(key)) throw new Error(`key ${key} twice`)
    if (parent !== null && !seen.has(parent)) throw new Error(`parent ${parent} of ${key} is later or absent`)
    seen.add(key)
  }
}
