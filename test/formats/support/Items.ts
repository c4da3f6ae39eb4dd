/** Makes the pieces of a small conversation by hand. Each item follows the one before it. */
import type { Head, Item, Piece } from "../../../packages/formats/src/conversation/Conversation.ts"

const start = 1_760_000_000_000

export const head = (id: string, dialect: Head["dialect"] = "claude-code"): Head => ({
  _tag: "Head",
  dialect,
  id,
  cwd: "/tmp",
  createdAt: start,
  record: { id }
})

/** An item without what all items have. */
export type Bare = Item extends infer One
  ? One extends Item
    ? Omit<One, "key" | "parent" | "time" | "place" | "record"> & { readonly parent?: string | null }
    : never
  : never

/** The items `k1`, `k2` and so on. A given parent moves the leaf. */
export const itemsOf = (bare: ReadonlyArray<Bare>): ReadonlyArray<Item> =>
  bare.map((item, at): Item => {
    const place = { line: at + 2, offset: 100 * (at + 1) }
    const follows = at === 0 ? null : `k${at}`
    return { parent: follows, ...item, key: `k${at + 1}`, time: start + (at + 1) * 1_000, place, record: { n: at + 1 } }
  })

export const pieces = (id: string, bare: ReadonlyArray<Bare>): ReadonlyArray<Piece> => [head(id), ...itemsOf(bare)]

const text = (words: string) => [{ type: "text" as const, text: words }]
const picture = { type: "media" as const, mime: "image/png", data: "iVBORw0=" }

export const user = (words: string, more: ReadonlyArray<typeof picture> = []): Bare => ({
  _tag: "User",
  content: [...text(words), ...more]
})

export const note = (words: string, more: ReadonlyArray<typeof picture> = []): Bare => ({
  _tag: "Note",
  content: [...text(words), ...more]
})

type Answer = Extract<Bare, { readonly _tag: "Answer" }>

export const answer = (parts: Answer["parts"], more: Partial<Answer> = {}): Bare => ({
  _tag: "Answer",
  provider: "anthropic",
  model: "claude",
  parts,
  ...more
})

export const says = (words: string, more: Partial<Answer> = {}) => answer(text(words), more)

export const call = (id: string) => ({ type: "call" as const, id, name: "bash", input: { command: "ls" } })

export const result = (callID: string, words: string, failed = false): Bare => ({
  _tag: "Result",
  callID,
  tool: "bash",
  content: text(words),
  failed
})

export { picture }
